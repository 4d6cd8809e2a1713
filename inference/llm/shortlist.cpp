#include "inference/llm/shortlist.hpp"

#include "inference/kernels/transfer.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace parley::inference::llm {

namespace {

/// Reads one array after another.
class reader {
public:
  explicit reader(const std::uint8_t* from) : from_(from) {}

  template<class T>
  std::vector<T> take(std::size_t count) {
    std::vector<T> numbers(count);
    std::memcpy(numbers.data(), std::exchange(from_, from_ + count * sizeof(T)), count * sizeof(T));
    return numbers;
  }

private:
  const std::uint8_t* from_;
};

at::Tensor bytes(const at::Tensor& x) {
  return x.contiguous().view(at::kByte);
}

} // namespace

shortlist::shortlist(token_id chunk_eos, std::vector<token_id> named, at::Device device) : chunk_eos_(chunk_eos) {
  named.push_back(chunk_eos);
  std::ranges::sort(named);
  named.erase(std::ranges::unique(named).begin(), named.end());
  named_there_ = at::tensor(named, at::kLong).to(device);
  named_ = std::move(named);
}

std::vector<short_row> shortlist::of(const at::Tensor& logits) const {
  const auto count = std::min(length, logits.size(1));
  const auto [largest, ids] = logits.topk(count);
  const auto weights = (logits - largest.narrow(1, 0, 1)).exp_();
  const auto total = weights.sum(1, true, at::kDouble);
  const auto before = weights.narrow(1, 0, chunk_eos_).sum(1, true, at::kDouble);
  const auto packed = download(at::cat({bytes(total), bytes(before), bytes(ids.to(at::kInt)), bytes(largest),
                                        bytes(logits.index_select(1, named_there_))},
                                       1));
  std::vector<short_row> rows;
  for (auto n = std::int64_t{0}; n < packed.size(0); ++n) {
    reader from(packed[n].const_data_ptr<std::uint8_t>());
    const auto sums = from.take<double>(2);
    const auto places = from.take<std::int32_t>(static_cast<std::size_t>(count));
    const auto values = from.take<float>(static_cast<std::size_t>(count));
    const auto named = from.take<float>(named_.size());
    std::vector<std::pair<token_id, float>> all;
    for (std::size_t i = 0; i < places.size(); ++i) all.emplace_back(places[i], values[i]);
    for (std::size_t i = 0; i < named_.size(); ++i) all.emplace_back(named_[i], named[i]);
    const auto id = [](const auto& pair) { return pair.first; };
    std::ranges::sort(all, {}, id);
    all.erase(std::ranges::unique(all, {}, id).begin(), all.end());
    short_row row{{}, {}, values.back(), sums[0], sums[1]};
    for (const auto& [token, logit] : all) {
      row.ids.push_back(token);
      row.logits.push_back(logit);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

} // namespace parley::inference::llm
