#pragma once

#include "inference/thinker.hpp"
#include "inference/verify/golden_set.hpp"
#include "inference/verify/report.hpp"

namespace parley::inference::verify {

/// One half-duplex session (docs/model/thinker.md 6.5): one message per call, with answers in between.
void replay_half_duplex(golden_set& files, const thinker& model, const nlohmann::json& session, case_check& check);

} // namespace parley::inference::verify
