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

/// The pictures of one unit or turn on their way from files to pieces. Once `done`, other threads may read what follows
/// it.
struct image_job {
  session_id owner = 0;
  std::vector<image_file> files;
  int max_slice_nums = 1;
  std::size_t most_pieces = 0; ///< more pieces do not fit into the context

  std::atomic<bool> done = false;
  std::vector<vision::sliced_picture> pictures; ///< one per file, unless there is a problem
  failure kind = failure::invalid;              ///< the kind of problem
  std::string problem;                          ///< the problem in words for the client; empty = none
  std::size_t troublemaker = 0;                 ///< the file with the problem, or the next one
  std::size_t pieces = 0;                       ///< pieces so far
};

/// Decodes and slices pictures on a few threads of its own, next to the engine's. Only the engine's thread calls it.
/// Sessions take turns file by file, so that none waits for all pictures of another. An order that nobody holds any
/// more is abandoned, even in the middle of a file.
class image_preprocessor {
public:
  /// At most `bound` orders wait for a thread; more are rejected.
  image_preprocessor(vision::slicing how, int threads, std::size_t bound);

  /// Waits for the pictures that are being processed.
  ~image_preprocessor();

  image_preprocessor(const image_preprocessor&) = delete;
  image_preprocessor& operator=(const image_preprocessor&) = delete;

  /// Starts slicing the files of `fresh`. Returns false if too many orders are waiting.
  bool take(const std::shared_ptr<image_job>& fresh);

  /// The number of finished orders.
  std::uint64_t finished() const { return finished_; }

  /// Waits until more than `counted` orders are finished, but no longer than `most`.
  void wait(std::uint64_t counted, std::chrono::milliseconds most);

private:
  /// One session's orders, oldest first.
  struct line {
    session_id owner;
    std::deque<std::weak_ptr<image_job>> orders;
    bool busy = false; ///< a thread is processing one of its files
  };

  void work();
  bool next_file(const std::shared_ptr<image_job>& order) const noexcept;
  std::list<line>::iterator free_line();

  const vision::slicing how_;
  const std::size_t bound_;
  std::mutex mutex_;
  std::condition_variable wake_, one_done_;
  std::list<line> lines_; ///< the next one to be served comes first
  std::size_t waiting_ = 0;
  std::atomic<std::uint64_t> finished_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

} // namespace parley::inference
