#pragma once

#include "inference/speech/token2wav.hpp"
#include "inference/speech/voice_cache.hpp"
#include "inference/unit.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace parley::inference {

/// Prepares reference voices on a thread of its own, one after another, so that no session waits for another one's
/// voice, and keeps those used last. Its functions are the engine thread's; at most one question of a session is open
/// at a time.
class voice_desk {
public:
  struct answer {
    session_id who;
    std::shared_ptr<const speech::voice> voice; ///< null: it could not be made,
    std::string problem;                        ///< because of this
  };

  /// `sound` outlives the desk. The destructor waits for the voice in progress. `kept`: how many voices are remembered.
  voice_desk(const speech::token2wav& sound, std::size_t kept);
  ~voice_desk();

  voice_desk(const voice_desk&) = delete;
  voice_desk& operator=(const voice_desk&) = delete;

  /// The voice of a recording (16 kHz) that `speech::voice_problem` has nothing against, if it is at hand; else null,
  /// and it is being made: `take` will have the answer. The same recording is prepared once for all who ask.
  std::shared_ptr<const speech::voice> ask(session_id who, const pcm& recording);

  /// Nobody waits for this session's voice any more. What is being made is still finished, and kept.
  void forget(session_id who);

  /// The answers that have come since the last call.
  std::vector<answer> take();

  /// Whether somebody waits.
  bool awaited() const;

  /// Waits for an answer, but no longer than this.
  void wait(std::chrono::milliseconds most);

  std::uint64_t hits() const { return cache_.hits(); }
  std::uint64_t misses() const { return cache_.misses(); }

private:
  struct order {
    pcm recording;
    std::vector<session_id> askers;
    std::shared_ptr<const speech::voice> made;
    std::string problem;
  };

  void work();
  void prepare(order& of) const noexcept;

  const speech::token2wav& sound_;
  speech::voice_cache cache_;
  std::deque<std::shared_ptr<order>> open_; ///< oldest first; askers belong to the engine's thread

  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::list<std::shared_ptr<order>> to_do_, done_; ///< what moves from one to the other needs no memory
  bool stopping_ = false;
  std::thread thread_; ///< started by the first order
};

} // namespace parley::inference
