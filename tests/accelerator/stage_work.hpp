#pragma once

#include "inference/engine/synthetic_sessions.hpp"
#include "inference/talker.hpp"
#include "inference/thinker.hpp"
#include "tests/accelerator/pretend_device.hpp"

#include <cstdint>
#include <memory>

namespace parley::inference::testing {

/// The embedded models on the pretend device, and the work of one call of each stage for so many sessions.
class staged_model {
public:
  staged_model();

  /// So many rows of each session, whose prompts have 100 rows and whose caches have 140 more; then what draws a token
  /// for each. In float32 or bfloat16.
  struct llm_call {
    synthetic::prompt of = synthetic::prompt::own;
    std::int64_t rows = 1;
    bool halves = false; ///< bfloat16
  };
  device_work llm_step(int sessions, const llm_call& how) const;

  /// One speech token of each, chosen by the host, and as many as a pass has, chosen by the device.
  device_work tts_step(int sessions) const;
  device_work tts_pass(int sessions) const;

  /// A second of sound of each, heard.
  device_work hear(int sessions) const;

  enum class windows { equal, uneven };

  /// A window of speech tokens of each, as sound, late in a turn: all alike, or of different lengths and every fourth one
  /// the last of its turn.
  device_work window(int sessions, windows of) const;

  /// The same of the trained model, whose vocoder is the original one.
  device_work original_window(int sessions, windows of) const;

private:
  std::unique_ptr<const thinker> thinks_, thinks_in_halves_;
  /// A talker and a voice that it has prepared.
  struct speaker {
    std::unique_ptr<const talker> by;
    std::shared_ptr<const speech::voice> voice;

    explicit speaker(const char* folder);
    device_work window(int sessions, windows of) const;
  };

  speaker speaks_, speaks_as_before_;
};

} // namespace parley::inference::testing
