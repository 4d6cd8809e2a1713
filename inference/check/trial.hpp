#pragma once

#include "config/settings.hpp"
#include "inference/check/findings.hpp"

namespace parley::inference::check {

/// Starts an engine with these settings, gives it a second of silence, and has it say some words aloud: what comes must be
/// numbers, neither silent nor clipped.
void run_trial(const config::settings& settings, findings& out);

} // namespace parley::inference::check
