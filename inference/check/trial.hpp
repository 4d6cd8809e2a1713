#pragma once

#include "config/settings.hpp"
#include "inference/check/findings.hpp"

namespace parley::inference::check {

/// Starts an engine with these settings, gives it a second of silence and makes it say some words. The output must be
/// finite, not silent and not clipped.
void run_trial(const config::settings& settings, findings& out);

} // namespace parley::inference::check
