#pragma once

#include "inference/engine/image_preprocessor.hpp"
#include "inference/vision/pieces.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace parley::inference {

/// The pictures of a unit or turn: sliced elsewhere (`stage::look`), then encoded piece by piece (`stage::see`).
class image_input {
public:
  /// `order`: the job that slices them; null = no pictures.
  explicit image_input(std::shared_ptr<image_job> order) : order_(std::move(order)) {}

  bool any() const { return order_ != nullptr; }
  const std::shared_ptr<image_job>& order() const { return order_; }

  /// Whether slicing is done; if it failed, there is a `problem`.
  bool sliced() const { return order_->done; }
  bool has_problem() const { return !order_->problem.empty(); }
  failure_kind problem_kind() const { return order_->kind; }

  /// The problem in words for the client; `what` is the name of the field with the number of the picture.
  std::string problem(const std::string& what) const { return what + ": " + order_->problem; }
  std::size_t troublemaker() const { return order_->troublemaker; }

  /// Valid once they are sliced without a problem, until `forget`.
  const std::vector<vision::sliced_picture>& pictures() const { return order_->pictures; }
  std::vector<const vision::patch_grid*> next_pieces(std::int64_t most) const;

  /// Counts the pieces. Call once they are sliced.
  void count();
  int pieces() const { return pieces_; } ///< 0 before `count`
  std::int64_t left() const { return pieces_ - seen_pieces_; }

  /// Adds the rows of the next pieces: [pieces, query_num, hidden]. Returns true when all pieces have theirs.
  bool add(at::Tensor rows);

  /// The rows of all pieces: [pieces, query_num, hidden].
  at::Tensor rows() const;

  /// Frees everything but the count.
  void forget();

private:
  std::shared_ptr<image_job> order_;
  int pieces_ = 0;
  std::int64_t seen_pieces_ = 0;
  std::vector<at::Tensor> seen_;
};

} // namespace parley::inference
