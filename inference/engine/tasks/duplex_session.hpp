#pragma once

#include "inference/audio/mel_stream.hpp"
#include "inference/decoding/unit_decoder.hpp"
#include "inference/duplex/audio_intake.hpp"
#include "inference/duplex/window.hpp"
#include "inference/engine/session.hpp"
#include "inference/engine/task_context.hpp"
#include "inference/tts/duplex_speech.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace parley::inference {

/// What a duplex session carries from unit to unit. Its tasks: `opening_task`, then one `duplex_task` or `replay_task`
/// for each unit, each followed by a `window_task` if the session has a window.
struct duplex_session final : session {
  /// Only if the model `hears`.
  duplex_session(session_id number, std::uint64_t seed_of_all, llm::kv_cache keys, const duplex_options& chosen,
                 task_context& shared);
  ~duplex_session() override;

  /// From now on the session speaks, in this voice.
  void give_voice(std::shared_ptr<const speech::voice> voice);

  /// The most rows that a unit with so many pieces of pictures adds to the cache: the end of the last unit, <unit>, the
  /// pieces between their marks, the sound, the answer or a forced <|turn_eos|>; with a window also the unit's end.
  std::int64_t most_rows(int pieces) const;

  /// When a unit that arrives now is to be answered: sound that comes faster than it is heard has later seconds.
  engine_clock::time_point next_due(engine_clock::time_point arrived) const {
    return std::max(arrived, due) + std::chrono::seconds(1);
  }

  /// The state of its random streams, and restoring it.
  rng_state rng_now() const;
  void go_on_from(const rng_state& where);

  task_context& with;
  const llm::duplex_sampling sampling;
  const double speech_temperature;
  audio::mel_stream stream;
  audio::encoder_cache encoder;
  duplex::audio_intake intake;
  duplex::unit_decoder decoder;
  duplex::window window;
  engine_clock::time_point due;  ///< of the newest unit
  std::vector<token_id> history; ///< what the repetition penalty sees
  std::vector<token_id> tail;    ///< terminator and `</unit>` of the last unit, to be fed before the next one
  std::int64_t owed_text = 0;    ///< text tokens that a cut fed too late for its usage; the next unit reports them
  std::shared_ptr<random_stream> speech_chance, noise_chance; ///< set together with `speech`
  std::optional<speech::duplex_speech> speech;                ///< none: it answers with text only
};

} // namespace parley::inference
