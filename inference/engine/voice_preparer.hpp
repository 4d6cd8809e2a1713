#pragma once

#include "inference/vocabulary.hpp"
#include "inference/vocoder/token2wav.hpp"
#include "inference/vocoder/voice_cache.hpp"

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

/// Prepares reference voices one by one on a thread of its own, so that no session waits for another one's voice, and
/// caches the most recently used ones. Only the engine's thread calls it. A session has at most one request at a time.
class voice_preparer {
public:
  struct answer {
    session_id who;
    std::shared_ptr<const speech::voice> voice; ///< null: it could not be prepared
    std::string problem;                        ///< the reason, if `voice` is null
  };

  /// `sound` must outlive this object. The destructor waits for the voice in progress. `kept`: how many voices are
  /// cached.
  voice_preparer(const speech::token2wav& sound, std::size_t kept);
  ~voice_preparer();

  voice_preparer(const voice_preparer&) = delete;
  voice_preparer& operator=(const voice_preparer&) = delete;

  /// The voice of a recording (16 kHz) that `speech::voice_problem` accepts, if it is cached. Otherwise null, and the
  /// voice is prepared: `take` will return it. A recording is prepared once for all sessions that ask for it.
  std::shared_ptr<const speech::voice> ask(session_id who, const pcm& recording);

  /// This session no longer waits for a voice. Work in progress is still finished and cached.
  void forget(session_id who);

  /// The answers since the last call.
  std::vector<answer> take();

  /// Whether any session is waiting.
  bool awaited() const;

  /// Waits for an answer, but no longer than `most`.
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
  std::deque<std::shared_ptr<order>> open_; ///< oldest first; used by the engine's thread

  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::list<std::shared_ptr<order>> to_do_, done_; ///< moving entries between these needs no memory
  bool stopping_ = false;
  std::thread thread_; ///< started by the first order
};

} // namespace parley::inference
