#pragma once

#include "inference/unit.hpp"
#include "inference/vision/pieces.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace parley::inference {

/// The pictures of one unit or turn on their way from files to pieces. What stands below `done` may be read once it is
/// true.
struct picture_order {
  session_id owner = 0;
  std::vector<image_file> files;
  int max_slice_nums = 1;
  std::size_t most_pieces = 0; ///< more do not fit into the context

  std::atomic<bool> done = false;
  std::vector<vision::sliced_picture> pictures; ///< as many as files, unless there is a problem
  failure kind = failure::invalid;              ///< of the problem
  std::string problem;                          ///< in words for the client; empty = none
  std::size_t troublemaker = 0;                 ///< the file that the problem is about, or the next one
  std::size_t pieces = 0;                       ///< so far
};

/// Decodes and cuts pictures on a few threads of its own, beside the engine's. Its functions are the engine thread's.
/// Sessions take turns, one file at a time, so that nobody's pictures wait for all of another one's. An order that
/// nobody holds any more is given up, in the middle of a file if need be.
class picture_desk {
public:
  /// At most `bound` orders wait for a thread (policy: reject).
  picture_desk(vision::slicing how, int threads, std::size_t bound);

  /// Waits for the pictures in progress.
  ~picture_desk();

  picture_desk(const picture_desk&) = delete;
  picture_desk& operator=(const picture_desk&) = delete;

  /// `fresh` has its files; they are sliced from now on. False when too many orders wait.
  bool take(const std::shared_ptr<picture_order>& fresh);

  /// Grows with every order that is done.
  std::uint64_t finished() const { return finished_; }

  /// Waits until an order is done that `finished` did not count yet, but no longer than `most`.
  void wait(std::uint64_t counted, std::chrono::milliseconds most);

private:
  /// What one session waits for, oldest first.
  struct line {
    session_id owner;
    std::deque<std::weak_ptr<picture_order>> orders;
    bool busy = false; ///< some thread has one of its files
  };

  void work();
  bool next_file(const std::shared_ptr<picture_order>& order) const noexcept;
  std::list<line>::iterator free_line();

  const vision::slicing how_;
  const std::size_t bound_;
  std::mutex mutex_;
  std::condition_variable wake_, one_done_;
  std::list<line> lines_; ///< whose turn is next comes first
  std::size_t waiting_ = 0;
  std::atomic<std::uint64_t> finished_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

} // namespace parley::inference
