#pragma once

#include "inference/thinker.hpp"
#include "inference/verify/golden_set.hpp"
#include "inference/verify/report.hpp"

namespace parley::inference::verify {

/// One half-duplex session (THINKER.md 6.5): a message a call, answers in between.
void replay_half_duplex(golden_set& files, const thinker& model, const nlohmann::json& session, case_check& check);

} // namespace parley::inference::verify
