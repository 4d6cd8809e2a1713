#pragma once

#include "inference/llm/shortlist.hpp"
#include "inference/random.hpp"
#include "inference/talker.hpp"
#include "inference/thinker.hpp"
#include "inference/tts/turn.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

/// Sessions without clients, for measuring one stage at a time: each class holds some sessions of equal length and makes
/// the stage's batched call for all of them. Calls return when the device has been asked to work; only those that say so
/// wait for it. They need c10::InferenceMode and throw like the stage itself.
namespace parley::inference::synthetic {

/// How the sessions' prompts lie in the pool of keys and values.
enum class prompt {
  own,   ///< each session has its own
  shared ///< all share the pages of the first one's
};

/// Sessions in the language model.
class llm_sessions {
public:
  /// Room for `rows` rows each; nothing in them yet. `model` must outlive this.
  llm_sessions(const thinker& model, int sessions, int rows);

  /// Feeds `rows` rows as the prompt of each. Call it first.
  void begin(prompt how, std::int64_t rows);

  /// Gives each session `rows` more rows, all zero, without computing them.
  void remember(std::int64_t rows);

  /// Feeds `rows` tokens to each, or `of_the_last` to the last one if that is given, and downloads what draws from each
  /// one's last row need, which waits for the device.
  void feed(std::int64_t rows, std::int64_t of_the_last = 0);

private:
  const thinker& model_;
  llm::kv_pool pool_;
  std::size_t count_;
  std::vector<llm::kv_cache> caches_;
  std::optional<llm::shortlist> shortlist_; ///< none on the CPU
};

/// Sessions that listen.
class hearing_sessions {
public:
  /// `model` must hear, and outlive this.
  hearing_sessions(const thinker& model, int sessions);

  /// The next second of sound of each: the LLM's input rows of the first session, on the device.
  at::Tensor hear();

private:
  const thinker& model_;
  std::vector<audio::mel_stream> streams_;
  std::vector<audio::encoder_cache> caches_;
  bool begun_ = false;
};

/// Sessions that choose speech tokens, in groups as long as the units of a duplex turn.
class tts_sessions {
public:
  /// `speaker` must outlive this.
  tts_sessions(const talker& speaker, int sessions, speech::tts_form form = speech::tts_form::duplex);

  /// Begins a unit of `words` words in each; `turn_begins` allows it to end early.
  void begin(std::int64_t words, bool turn_begins = false);

  bool running() const { return std::ranges::any_of(turns_, &speech::tts_turn::running); }

  /// One speech token of each, or up to `count`. If there are several, the device chooses them, where it can; the CPU waits
  /// for it.
  void step(int count = 1);

private:
  const talker& speaker_;
  std::deque<speech::tts_turn> turns_;
  std::deque<random_stream> chances_;
  std::vector<speech::tts_step> steps_;
};

/// Sessions whose speech tokens become sound.
class sounding_sessions {
public:
  /// `speaker` must outlive this.
  sounding_sessions(const talker& speaker, const std::shared_ptr<const speech::voice>& voice, int sessions);

  /// A full window of each, as sound on the CPU, which waits for the device.
  void sound();

private:
  const talker& speaker_;
  std::vector<speech::token2wav::stream> streams_;
  std::vector<std::int64_t> tokens_;
  random_stream chance_;
};

} // namespace parley::inference::synthetic
