#include "inference/verify/agreement.hpp"

#include "inference/formats/json_file.hpp"
#include "inference/verify/golden_set.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace parley::inference::verify {

namespace {

/// Collects every list below `value` whose name marks it as a list of ids and that is long enough to predict something.
void collect(const std::string& name, const nlohmann::json& value, std::vector<std::vector<token_id>>& into) {
  constexpr std::size_t least = 12;
  if (value.is_object()) {
    for (const auto& [inner_name, inner] : value.items()) collect(inner_name, inner, into);
  } else if (value.is_array() && !value.empty() && value.front().is_number_integer()) {
    if (value.size() >= least && (name.ends_with("ids") || name.ends_with("history")))
      into.push_back(value.get<std::vector<token_id>>());
  } else if (value.is_array()) {
    for (const auto& inner : value) collect(name, inner, into);
  }
}

at::Tensor log_probabilities(const llm::qwen3& model, const std::vector<token_id>& ids) {
  llm::kv_pool pool(model.config(), 1, static_cast<int>(ids.size()), model.dtype(), model.device());
  auto cache = pool.open();
  const llm::sequence_rows rows{&cache, std::ssize(ids)};
  std::vector<std::int64_t> all(ids.size());
  std::iota(all.begin(), all.end(), 0);
  return at::log_softmax(model.logits(model.forward(model.embed(ids), {&rows, 1}, all)).to(at::kCPU, at::kDouble), -1);
}

} // namespace

std::vector<std::vector<token_id>> recorded_prompts(const std::filesystem::path& model,
                                                    const std::filesystem::path& recorded) {
  std::vector<std::vector<token_id>> found;
  if (is_regular_file(recorded)) {
    collect("ids", read_json(recorded), found);
  } else {
    golden_set files(model, recorded);
    const auto ids = files.tensors("llm").tensor("prefill.ids").to(at::kLong).contiguous();
    found.emplace_back(ids.const_data_ptr<std::int64_t>(), ids.const_data_ptr<std::int64_t>() + ids.numel());
    collect("", files.cases("chat"), found);
    for (const auto& stem : files.stems("duplex_")) collect("", files.cases(stem), found);
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

agreement compare(const llm::qwen3& exact, const llm::qwen3& other, const std::vector<std::vector<token_id>>& prompts) {
  agreement sum;
  for (const auto& ids : prompts) {
    const auto a = log_probabilities(exact, ids), b = log_probabilities(other, ids);
    const auto same = a.argmax(-1) == b.argmax(-1);
    const auto best = std::get<0>(a.topk(2, -1));
    const auto clear = (best.select(-1, 0) - best.select(-1, 1)) > clear_lead;
    sum.rows += a.size(0);
    sum.same_top += same.sum().item<std::int64_t>();
    sum.clear_rows += clear.sum().item<std::int64_t>();
    sum.same_clear += same.logical_and(clear).sum().item<std::int64_t>();
    sum.divergence += (a.exp() * (a - b)).sum().item<double>();
  }
  sum.divergence /= static_cast<double>(std::max<std::int64_t>(sum.rows, 1));
  return sum;
}

} // namespace parley::inference::verify
