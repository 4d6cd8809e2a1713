#pragma once

#include "inference/engine.hpp"
#include "inference/engine/draw_observer.hpp"
#include "inference/engine/scheduler.hpp"
#include "inference/engine/slot_estimate.hpp"
#include "inference/quirks.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace parley::inference {

namespace speech {
struct voice;
}

/// How to set up an engine with a loaded model.
struct engine_options {
  engine_info info;
  quirks how;
  std::optional<std::uint64_t> seed; ///< for sessions without their own seed; none = random
  int threads = 0;                   ///< intra-op; 0 = torch's default
  pass_limits limits;
  std::shared_ptr<const speech::voice> default_voice; ///< null: sessions without a voice get text only
  std::size_t kept_voices = 16;
  std::size_t kept_prompts = inference::kept_prompts;
  int most_sessions = 0;                           ///< slots that memory allows; 0 = info.slots
  std::optional<slot_estimate> slots_by_pace;      ///< none: the number of slots is fixed at info.slots
  std::function<double(int sessions)> time_second; ///< to measure again while idle; none = it is not
  std::function<void(int before, int now, const step_cost& cost)> slots_measured; ///< for the log
  std::function<bool()> device_works; ///< asked after an exception (session_table); empty = it always does
  int picture_threads = 2;
  std::shared_ptr<draw_observer> draws; ///< receives every draw; may be null
};

} // namespace parley::inference
