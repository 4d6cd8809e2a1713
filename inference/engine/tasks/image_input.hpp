#pragma once

#include "inference/engine/image_preprocessor.hpp"
#include "inference/vision/pieces.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace parley::inference {

/// The pictures of a unit or turn: sliced elsewhere (`stage::look`), then seen piece by piece (`stage::see`).
class image_input {
public:
  /// `order`: being sliced; null = there are none.
  explicit image_input(std::shared_ptr<image_job> order) : order_(std::move(order)) {}

  bool any() const { return order_ != nullptr; }

  /// Whether they are sliced, or can't be: then there is a `problem`.
  bool sliced() const { return order_->done; }
  bool has_problem() const { return !order_->problem.empty(); }
  failure problem_kind() const { return order_->kind; }

  /// The problem in words for the client; `what`: name of the field with the number of the picture in question.
  std::string problem(const std::string& what) const { return what + ": " + order_->problem; }
  std::size_t troublemaker() const { return order_->troublemaker; }

  /// Once they are sliced, without a problem, until they are forgotten.
  const std::vector<vision::sliced_picture>& pictures() const { return order_->pictures; }
  std::vector<const vision::patch_grid*> next_pieces(std::int64_t most) const;

  /// Counts the pieces. Asked once they are sliced.
  void count();
  int pieces() const { return pieces_; } ///< 0 before they are counted
  std::int64_t left() const { return pieces_ - seen_pieces_; }

  /// Rows of the next pieces: [pieces, query_num, hidden]. True when all are there.
  bool add(at::Tensor rows);

  /// Of all pieces: [pieces, query_num, hidden].
  at::Tensor rows() const;

  /// Nothing is held any more but the count.
  void forget();

private:
  std::shared_ptr<image_job> order_;
  int pieces_ = 0;
  std::int64_t seen_pieces_ = 0;
  std::vector<at::Tensor> seen_;
};

} // namespace parley::inference
