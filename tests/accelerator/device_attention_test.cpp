#include "inference/llm/attention.hpp"
#include "tests/accelerator/pretend_device.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <catch2/catch.hpp>

#include <cmath>

using namespace parley::inference;
using namespace parley::inference::testing;

TEST_CASE("large scores of a part are not rounded to bfloat16 on a device") {
  constexpr std::int64_t rows = 3, heads = 4, kv_heads = 2, length = 40, head_dim = 48;
  const auto random = at::make_generator<at::CPUGeneratorImpl>(1);
  const auto some = [&](at::IntArrayRef size, double scale) {
    return (at::randn(size, random, at::kFloat) * scale).to(at::kBFloat16);
  };
  const auto query = some({rows, heads, head_dim}, 10), keys = some({length, kv_heads, head_dim}, 10);
  const auto values = some({length, kv_heads, head_dim}, 1);
  const auto mask = llm::causal_mask(rows, length - rows, at::kBFloat16, at::kCPU);
  const auto each_head = [&](const at::Tensor& x) {
    return x.to(at::kDouble).repeat_interleave(heads / kv_heads, 1).transpose(0, 1);
  };
  const auto q = query.to(at::kDouble).transpose(0, 1);
  const auto plain = at::matmul(q, each_head(keys).transpose(1, 2)) / std::sqrt(double{head_dim});
  CHECK(plain.abs().max().item<double>() > 128); // where bfloat16 counts in whole numbers
  for (const bool masked : {false, true}) {
    const auto scores = masked ? plain + mask : plain;
    const auto weight = scores.logsumexp(-1).t();
    const auto mean = at::matmul(scores.softmax(-1), each_head(values)).transpose(0, 1).flatten(1);
    const auto to = [](const at::Tensor& x) { return x.to(pretend_device()); };
    const auto part = llm::attend_part(to(query), to(keys), to(values), masked ? to(mask) : at::Tensor());
    CHECK((part.weight.cpu() - weight).abs().max().item<double>() < 1e-3);
    CHECK((part.mean.cpu().to(at::kDouble) - mean).abs().max().item<double>() < 0.02); // bfloat16's own rounding
  }
}
