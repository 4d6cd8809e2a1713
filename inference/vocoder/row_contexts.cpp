#include "inference/vocoder/row_contexts.hpp"

#include <ATen/ATen.h>

#include <vector>

namespace parley::inference::speech {

row_contexts::row_contexts(std::int64_t depth, std::int64_t rows, std::int64_t width, const at::TensorOptions& options)
    : pool_(std::vector{depth}, width, options, (versions - 1) * rows), rows_(rows), zeros_(pool_.take(rows)) {
  tensor().narrow(1, zeros_->first(), rows).zero_();
}

row_contexts::exchange::exchange(const row_contexts& in, std::span<state* const> of)
    : writes_(in.pool_, of, std::vector(of.size(), in.rows_), {row_writes::layout::scattered, row_writes::side::back}),
      rows_(in.rows_), zeros_(in.zeros_->first()) {
  for (auto* stream : of) {
    const auto known = stream->rows() > rows_;
    const auto all = stream->where();
    for (std::int64_t n = 0; n < rows_; ++n) planned_.push_back(known ? all[static_cast<std::size_t>(n)] : zeros_ + n);
    stream->keep_ends(0, rows_);
  }
}

void row_contexts::exchange::pad(std::int64_t streams, std::int64_t first) {
  for (std::int64_t i = 0; i < streams; ++i) {
    for (std::int64_t n = 0; n < rows_; ++n) planned_.push_back(zeros_ + n);
    writes_.pad(first, rows_);
  }
}

void row_contexts::exchange::add_to(packed_upload& numbers) {
  writes_.add_to(numbers);
  source_part_ = numbers.add(planned_);
}

void row_contexts::exchange::use(const packed_upload& sent) {
  writes_.use(sent);
  sources_ = sent[source_part_];
}

} // namespace parley::inference::speech
