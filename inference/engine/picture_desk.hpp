#pragma once

#include "inference/unit.hpp"
#include "inference/vision/pieces.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace parley::inference {

/// The pictures of one unit or turn on their way from files to pieces. What stands below `done` may be read once it is
/// true.
struct picture_order {
  std::vector<image_file> files;
  int max_slice_nums = 1;
  std::size_t most_pieces = 0; ///< more do not fit into the context

  std::atomic<bool> done = false;
  std::vector<vision::sliced_picture> pictures; ///< as many as files, unless there is a problem
  failure kind = failure::invalid;              ///< of the problem
  std::string problem;                          ///< in words for the client; empty = none
  std::size_t troublemaker = 0;                 ///< the file that the problem is about
};

/// Decodes and cuts pictures on a few threads of its own, beside the engine's. Its functions are the engine thread's.
/// An order that nobody holds any more when its turn comes is not carried out.
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
  void work();
  void carry_out(picture_order& order) const;

  const vision::slicing how_;
  const std::size_t bound_;
  std::mutex mutex_;
  std::condition_variable wake_, one_done_;
  std::deque<std::weak_ptr<picture_order>> to_do_;
  std::atomic<std::uint64_t> finished_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

} // namespace parley::inference
