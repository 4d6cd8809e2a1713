#pragma once

#include "inference/engine/helper_threads.hpp"
#include "inference/vision/pieces.hpp"
#include "inference/vocabulary.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace parley::inference {

/// The pictures of one unit or turn on their way from files to pieces, one file a step.
struct image_job final : helper_job {
  bool work(const std::function<bool()>& wanted) noexcept override;

  std::vector<image_file> files;
  int max_slice_nums = 1;
  std::size_t most_pieces = 0; ///< more pieces do not fit into the context
  vision::slicing how;

  std::vector<vision::sliced_picture> pictures; ///< one per file, unless there is a problem
  failure_kind kind = failure_kind::invalid;    ///< the kind of problem
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
  image_preprocessor(vision::slicing how, int threads, std::size_t bound) : how_(how), threads_(threads, bound) {}

  /// Starts slicing the files of `fresh`. Returns false if too many orders are waiting.
  bool take(const std::shared_ptr<image_job>& fresh) {
    fresh->how = how_;
    return threads_.take(fresh);
  }

  /// The number of finished orders.
  std::uint64_t finished() const { return threads_.finished(); }

  /// Waits until more than `counted` orders are finished, but no longer than `most`.
  void wait(std::uint64_t counted, std::chrono::milliseconds most) { threads_.wait(counted, most); }

private:
  const vision::slicing how_;
  helper_threads threads_;
};

} // namespace parley::inference
