#include "inference/kernels/varlen_attention.hpp"

#include "tests/accelerator/pretend_device.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

using mask = varlen_attention::mask;

constexpr std::int64_t pool_rows = 400;

at::Tensor noise(at::IntArrayRef shape, std::uint64_t seed, at::ScalarType dtype) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed), at::kFloat).to(dtype);
}

/// Plain softmax in double precision: [queries, heads, head_dim] and logsumexp [queries, heads].
std::pair<at::Tensor, at::Tensor> plain(const std::vector<attention_run>& runs, mask which, const at::Tensor& query,
                                        const at::Tensor& keys, const at::Tensor& values) {
  const auto group = query.size(1) / keys.size(1);
  std::vector<at::Tensor> means, weights;
  for (auto begin = std::int64_t{0}; const auto& r : runs) {
    for (auto i = std::int64_t{0}; i < r.queries; ++i) {
      const auto seen = which == mask::causal ? r.keys - r.queries + i + 1 : r.keys;
      const auto some = [&](const at::Tensor& x) {
        return x.narrow(0, r.first_key, seen).to(at::kDouble).repeat_interleave(group, 1).transpose(0, 1);
      };
      const auto q = query[begin + i].to(at::kDouble).unsqueeze(1); // [heads, 1, head_dim]
      const auto scores = at::matmul(q, some(keys).transpose(1, 2)) / std::sqrt(query.size(2));
      means.push_back(at::matmul(scores.softmax(-1), some(values)).squeeze(1));
      weights.push_back(scores.logsumexp(-1).squeeze(1));
    }
    begin += r.queries;
  }
  return {at::stack(means), at::stack(weights)};
}

double apart(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return (a.to(at::kCPU, at::kDouble) - b).abs().max().item<double>();
}

struct tensors {
  at::Tensor query, keys, values;

  tensors(const std::vector<attention_run>& runs, std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim,
          at::ScalarType dtype) {
    auto rows = std::int64_t{0};
    for (const auto& r : runs) rows += r.queries;
    query = noise({rows, heads, head_dim}, 1, dtype);
    keys = noise({pool_rows, kv_heads, head_dim}, 2, dtype);
    values = noise({pool_rows, kv_heads, head_dim}, 3, dtype);
  }

  at::Tensor attend(const std::vector<attention_run>& runs, mask which, at::Device device,
                    at::Tensor* logsumexp = nullptr) const {
    varlen_attention plan(runs, which);
    plan.upload(device);
    return plan.run(query.to(device), keys.to(device), values.to(device), logsumexp);
  }
};

struct loop_preferred {
  loop_preferred() { varlen_attention::prefer_loop(true); }
  ~loop_preferred() { varlen_attention::prefer_loop(false); }
};

/// Ragged, with fronts that several share, keys before those of an earlier run, and a run without queries.
const std::vector<attention_run> ragged{{1, 200, 1}, {5, 0, 70}, {0, 3, 9}, {1, 0, 70}, {70, 90, 200}, {3, 10, 3}};
const std::vector<attention_run> beside_a_unit{{1, 200, 1}, {1, 0, 70}, {1, 3, 90}, {5, 90, 200}, {1, 10, 3}};
const std::vector<attention_run> one_each{{1, 300, 100}, {1, 0, 64}, {1, 0, 64}, {1, 7, 1}};

} // namespace

TEST_CASE("attention over ragged runs is plain softmax") {
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const auto& [heads, kv_heads, head_dim] : {std::tuple{4, 2, 48}, {6, 1, 16}, {3, 3, 64}})
      for (const auto which : {mask::none, mask::causal})
        for (const auto& runs : {ragged, beside_a_unit, one_each}) {
          const tensors t(runs, heads, kv_heads, head_dim, dtype);
          const auto [mean, weight] = plain(runs, which, t.query, t.keys, t.values);
          const auto close = dtype == at::kFloat ? 5e-6 : 0.02; // bfloat16's own rounding
          for (const auto device : {at::Device(at::kCPU), pretend_device()})
            for (const auto looped : {false, true}) {
              INFO(heads << " heads of " << kv_heads << ", " << at::toString(dtype) << ", mask " << int(which) << ", "
                         << runs.size() << " runs on " << device << (looped ? ", in a loop" : ""));
              std::optional<loop_preferred> loop;
              if (looped) loop.emplace();
              at::Tensor found;
              CHECK(apart(t.attend(runs, which, device), mean) < close);
              CHECK(apart(t.attend(runs, which, device, &found), mean) < close);
              CHECK(found.scalar_type() == at::kFloat);
              CHECK(apart(found, weight) < 1e-5);
            }
        }
}

TEST_CASE("large scores are not rounded to bfloat16 on a device") {
  const std::vector<attention_run> runs{{3, 0, 40}};
  tensors t(runs, 4, 2, 48, at::kBFloat16);
  t.query *= 10;
  t.keys *= 10; // scores beyond 128, where bfloat16 counts in whole numbers
  for (const auto which : {mask::none, mask::causal}) {
    const auto [mean, weight] = plain(runs, which, t.query, t.keys, t.values);
    CHECK(weight.max().item<double>() > 128);
    for (const auto looped : {false, true}) {
      std::optional<loop_preferred> loop;
      if (looped) loop.emplace();
      at::Tensor found;
      CHECK(apart(t.attend(runs, which, pretend_device(), &found), mean) < 0.02); // bfloat16's own rounding
      CHECK(apart(found, weight) < 1e-3);
    }
  }
}

TEST_CASE("a run's attention does not depend on its company") {
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const auto which : {mask::none, mask::causal}) {
      const tensors t(ragged, 4, 2, 48, dtype);
      const auto all = t.attend(ragged, which, at::kCPU);
      for (auto begin = std::int64_t{0}; const auto& r : ragged) {
        if (r.queries == 0) continue;
        varlen_attention alone(std::vector{r}, which);
        CHECK(at::equal(alone.run(t.query.narrow(0, begin, r.queries), t.keys, t.values),
                        all.narrow(0, begin, r.queries)));
        begin += r.queries;
      }
    }
}

TEST_CASE("a device is asked for the same kernels whatever the number of runs") {
  const auto work_for = [](int count, at::ScalarType dtype, bool weigh) {
    std::vector<attention_run> runs;
    for (auto i = 0; i < count; ++i) runs.push_back({1 + i % 3, 2 * i, 40});
    const tensors t(runs, 4, 2, 48, dtype);
    const auto query = t.query.to(pretend_device()), keys = t.keys.to(pretend_device()),
               values = t.values.to(pretend_device());
    take_work();
    varlen_attention plan(runs, mask::causal);
    plan.upload(pretend_device());
    at::Tensor logsumexp;
    plan.run(query, keys, values, weigh ? &logsumexp : nullptr);
    return take_work();
  };
  for (const auto count : {1, 2, 64}) {
    INFO(count << " runs");
    // Single queries attend apart from longer runs; then means and sums are joined.
    CHECK(work_for(count, at::kBFloat16, true).kernels == (count > 1 ? 4 : 1));
    CHECK(work_for(count, at::kBFloat16, true).uploads == 1);
    CHECK(work_for(count, at::kFloat, false).kernels == 3); // one for each head of a group, and their union
    CHECK(work_for(count, at::kFloat, true).kernels == (count > 1 ? 6 : 5)); // one run's sums need no reordering
    CHECK(work_for(count, at::kFloat, true).downloads == 0);
  }
}

TEST_CASE("plans that would read other memory are refused") {
  CHECK_THROWS_AS(varlen_attention(std::vector<attention_run>{{1, 0, 0}}, mask::none), std::invalid_argument);
  CHECK_THROWS_AS(varlen_attention(std::vector<attention_run>{{3, 0, 2}}, mask::causal), std::invalid_argument);
  const std::vector<attention_run> runs{{2, pool_rows - 4, 5}};
  const tensors t(runs, 2, 2, 16, at::kFloat);
  CHECK_THROWS_AS(t.attend(runs, mask::none, at::kCPU), std::invalid_argument);
  varlen_attention not_uploaded(std::vector<attention_run>{{2, 0, 5}}, mask::none);
  const auto device = pretend_device();
  CHECK_THROWS_AS(not_uploaded.run(t.query.to(device), t.keys.to(device), t.values.to(device)), std::invalid_argument);
}

TEST_CASE("attention of no queries is empty") {
  const tensors t({}, 2, 2, 16, at::kFloat);
  for (const auto device : {at::Device(at::kCPU), pretend_device()}) {
    at::Tensor weight;
    CHECK(t.attend({{0, 0, 5}}, mask::causal, device, &weight).sizes() == at::IntArrayRef({0, 2, 16}));
    CHECK(weight.sizes() == at::IntArrayRef({0, 2}));
  }
}
