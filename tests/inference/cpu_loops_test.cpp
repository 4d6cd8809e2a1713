#include "inference/kernels/attention.hpp"
#include "inference/kernels/convolution.hpp"
#include "inference/kernels/draw.hpp"
#include "inference/kernels/fixed_point.hpp"
#include "inference/kernels/int4.hpp"
#include "inference/kernels/processor.hpp"
#include "inference/kernels/product.hpp"
#include "inference/kernels/vocoder.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace parley::inference;

// Compares the hand-written loops with LibTorch in double precision.
namespace {

at::Tensor noise(at::IntArrayRef shape, std::uint64_t seed) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed));
}

double apart(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

/// softmax(q k) v for one key head; row i of `rows` sees past + i + 1 keys.
at::Tensor attended(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, std::int64_t past) {
  const auto rows = q.size(0), all = k.size(0);
  const auto hidden = at::ones({rows, all}, at::kBool).triu(past + 1).unsqueeze(1);
  const auto scores = at::einsum("rhd,kd->rhk", {q.to(at::kDouble), k.to(at::kDouble)}) / std::sqrt(q.size(2));
  return at::einsum("rhk,kd->rhd", {scores.masked_fill(hidden, -INFINITY).softmax(-1), v.to(at::kDouble)});
}

/// The rows as they were rounded, float64 [rows, in].
at::Tensor rounded(const cpu::fixed_rows& x) {
  auto all = at::empty({x.rows(), x.in()}, at::kDouble);
  for (std::int64_t row = 0; row < x.rows(); ++row)
    for (std::int64_t i = 0; i < x.in(); ++i)
      all[row][i] = static_cast<double>(x.at(row).numbers[i]) * x.at(row).scales[i / cpu::fixed_rows::run];
  return all;
}

/// The versions of the product of x [rows, in] with a matrix whose numbers are `numbers`, float64 [out, in].
template<class Matrix, class Version>
void check_products(const at::Tensor& x, const Matrix& matrix, const at::Tensor& numbers, double bound,
                    const std::vector<Version>& versions) {
  const auto rows = x.size(0), in = x.size(1), out = numbers.size(0);
  constexpr auto bytes = cpu::fixed_rows::layout::with_bytes;
  const cpu::fixed_rows fixed(x.const_data_ptr<float>(), rows, in, bytes),
      last(x.const_data_ptr<float>() + (rows - 1) * in, 1, in, bytes);
  const auto exact = rounded(fixed).mm(numbers.t());
  for (const auto version : versions) {
    const auto multiply = [&](const cpu::fixed_rows& by, float* to) { version(by, matrix, out, to, out + 1); };
    auto to = at::full({rows, out + 1}, 7.0F), alone = at::full({1, out + 1}, 7.0F);
    multiply(fixed, to.mutable_data_ptr<float>());
    CHECK(apart(to.narrow(1, 0, out), exact) < bound);
    CHECK(at::equal(to.narrow(1, out, 1), at::full({rows, 1}, 7.0F)));
    multiply(last, alone.mutable_data_ptr<float>()); // a row does not depend on the others
    CHECK(at::equal(alone[0], to[rows - 1]));
  }
}

} // namespace

TEST_CASE("attention over scattered pages is attention") {
  constexpr std::int64_t kv_heads = 2, group = 3, heads = kv_heads * group;
  for (const std::int64_t head_dim : {8, 48, 80, 128})
    for (const auto& [rows, past] :
         {std::pair<std::int64_t, std::int64_t>{1, 0}, {1, 200}, {3, 61}, {13, 64}, {70, 130}}) {
      INFO("head_dim " << head_dim << ", " << rows << " rows behind " << past);
      const auto all = past + rows, page = std::int64_t{64};
      const auto q = noise({rows, heads, head_dim}, 1), keys = noise({8 * page, kv_heads, head_dim}, 2),
                 values = noise({8 * page, kv_heads, head_dim}, 3);
      const std::vector<std::int32_t> pages{5, 0, 7, 2};
      std::vector<std::int64_t> places;
      for (std::int64_t row = 0; row < all; ++row)
        places.push_back(pages[static_cast<std::size_t>(row / page)] * page + row % page);
      const auto index = at::tensor(places, at::kLong);
      auto to = at::zeros({rows, heads, head_dim});
      for (std::int64_t head = 0; head < kv_heads; ++head) {
        const cpu::paged_head<float> where{keys.const_data_ptr<float>() + head * head_dim,
                                           values.const_data_ptr<float>() + head * head_dim, pages.data(), page,
                                           kv_heads * head_dim};
        const auto place = head * group * head_dim;
        cpu::attend(q.const_data_ptr<float>() + place, where, {rows, past, group, heads * head_dim}, head_dim,
                    to.mutable_data_ptr<float>() + place);
        const auto expected = attended(q.narrow(1, head * group, group), keys.index_select(0, index).select(1, head),
                                       values.index_select(0, index).select(1, head), past);
        CHECK(apart(to.narrow(1, head * group, group), expected) < 2e-6);
      }
    }
}

TEST_CASE("attention over pieces that all see is attention") {
  for (const std::int64_t d : {8, 16, 64})
    for (const std::int64_t rows : {1, 4, 50}) {
      INFO("head_dim " << d << ", " << rows << " rows");
      const auto q = noise({rows, 2, d}, 1);
      const std::vector<at::Tensor> kv{noise({rows, 2 * d}, 2), noise({130, 2 * d}, 3), noise({1, 2 * d}, 4)};
      std::vector<cpu::head_piece> pieces;
      for (const auto& piece : kv) {
        const auto* keys = piece.const_data_ptr<float>();
        pieces.push_back({keys, keys + d, piece.size(0), 2 * d});
      }
      auto to = at::zeros({rows, 2, d});
      cpu::attend({q.const_data_ptr<float>() + d, 2 * d}, rows, pieces, d, {to.mutable_data_ptr<float>() + d, 2 * d});
      const auto all = at::cat(kv).to(at::kDouble);
      const auto scores = q.select(1, 1).to(at::kDouble).mm(all.narrow(1, 0, d).t()) / std::sqrt(d);
      CHECK(apart(to.select(1, 1), scores.softmax(-1).mm(all.narrow(1, d, d))) < 2e-6);
      CHECK(at::equal(to.select(1, 0), at::zeros({rows, d})));
    }
}

TEST_CASE("products of few rows are products") {
  for (const std::int64_t rows : {1, 3, 4, 7, 16})
    for (const std::int64_t out : {1, 5, 64}) {
      const auto x = noise({rows, 96}, 4), matrix = noise({out, 96}, 5), before = noise({rows, out + 2}, 6);
      const auto exact = x.to(at::kDouble).mm(matrix.to(at::kDouble).t());
      auto to = before.clone();
      cpu::product(x.const_data_ptr<float>(), rows, matrix.const_data_ptr<float>(), out, 96,
                   to.mutable_data_ptr<float>(), out + 2, false);
      CHECK(apart(to.narrow(1, 0, out), exact) < 2e-5);
      CHECK(at::equal(to.narrow(1, out, 2), before.narrow(1, out, 2)));
      cpu::product(x.const_data_ptr<float>(), rows, matrix.const_data_ptr<float>(), out, 96,
                   to.mutable_data_ptr<float>(), out + 2, true);
      CHECK(apart(to.narrow(1, 0, out), 2 * exact) < 4e-5);
    }
}

TEST_CASE("products of few rows with narrower numbers are products") {
  for (const std::int64_t in : {96, 101})
    for (const std::int64_t rows : {1, 3, 4, 7, 9, 16})
      for (const std::int64_t out : {1, 2, 5, 63, 64}) {
        INFO(rows << " rows, " << out << " outputs");
        const auto x = noise({rows, in}, 4), wide = noise({out, in}, 5);
        const auto exact = [&](const at::Tensor& matrix) { return x.to(at::kDouble).mm(matrix.to(at::kDouble).t()); };

        const auto halves = wide.to(at::kBFloat16), before = noise({rows, out}, 6).to(at::kBFloat16);
        auto to = before.clone();
        const auto* matrix = static_cast<const cpu::bfloat16*>(halves.const_data_ptr());
        cpu::product(x.const_data_ptr<float>(), rows, matrix, out, in,
                     static_cast<cpu::bfloat16*>(to.mutable_data_ptr()), out, true);
        const auto sum = exact(halves) + before.to(at::kDouble);
        CHECK(apart(to, sum) <= sum.abs().max().item<double>() / 256); // one rounding

        if (!cpu::multiplies_bfloat16()) continue;
        const auto narrow_x = x.to(at::kBFloat16);
        const auto* from = static_cast<const cpu::bfloat16*>(narrow_x.const_data_ptr());
        auto all = at::cat({before, before.narrow(1, 0, 1)}, 1), alone = all.narrow(0, rows - 1, 1).clone();
        cpu::product(from, rows, matrix, out, in, static_cast<cpu::bfloat16*>(all.mutable_data_ptr()), out + 1, true);
        const auto narrow_exact = narrow_x.to(at::kDouble).mm(halves.to(at::kDouble).t()),
                   narrow_sum = narrow_exact + before.to(at::kDouble);
        CHECK(apart(all.narrow(1, 0, out), narrow_sum) <= narrow_sum.abs().max().item<double>() / 256);
        CHECK(at::equal(all.narrow(1, out, 1), before.narrow(1, 0, 1)));
        cpu::product(from + (rows - 1) * in, 1, matrix, out, in, static_cast<cpu::bfloat16*>(alone.mutable_data_ptr()),
                     out + 1, true);
        CHECK(at::equal(alone[0], all[rows - 1])); // a row does not depend on the others
        cpu::product(from, rows, matrix, out, in, static_cast<cpu::bfloat16*>(all.mutable_data_ptr()), out + 1, false);
        CHECK(apart(all.narrow(1, 0, out), narrow_exact) <= narrow_exact.abs().max().item<double>() / 256);
      }
}

TEST_CASE("rows of 16 bits are close to what they were made of") {
  for (const std::int64_t in : {1, 31, 32, 96, 101, 128, 300}) {
    const auto x = noise({3, in}, 12) * at::tensor({1.0F, 1e-20F, 1e20F}).view({3, 1});
    const cpu::fixed_rows fixed(x.const_data_ptr<float>(), 3, in);
    for (std::int64_t at = 0; at < in; at += cpu::fixed_rows::stretch) {
      const auto size = std::min(cpu::fixed_rows::stretch, in - at);
      const auto part = x.narrow(1, at, size).to(at::kDouble);
      CHECK(((rounded(fixed).narrow(1, at, size) - part).abs() <= part.abs().amax(1, true) / 65000).all().item<bool>());
    }
  }
  auto odd = noise({2, 256}, 3);
  odd[0][140] = std::numeric_limits<float>::infinity();
  odd[1][3] = std::numeric_limits<float>::quiet_NaN();
  const cpu::fixed_rows fixed(odd.const_data_ptr<float>(), 2, 256);
  CHECK(std::isnan(fixed.at(0).scales[5]));
  CHECK(std::isnan(fixed.at(1).scales[0]));
  CHECK(std::isfinite(fixed.at(0).scales[0]));
  CHECK(std::isfinite(fixed.at(1).scales[4]));
}

TEST_CASE("numbers of eight bits: multiplied, by all versions") {
  using version = void (*)(const cpu::fixed_rows&, const std::int8_t*, std::int64_t, float*, std::int64_t);
  std::vector<version> versions{cpu::product, cpu::plain_product};
  if (cpu::has_avx512()) versions.push_back(cpu::product_without_vnni);
  for (const std::int64_t in : {1, 31, 96, 101, 320})
    for (const std::int64_t rows : {1, 3, 4, 7, 9, 16})
      for (const std::int64_t out : {1, 2, 5, 63, 64}) {
        INFO(rows << " rows, " << out << " outputs of " << in);
        const auto bytes = noise({out, in}, 5).mul(40).round().clamp(-127, 127).to(at::kChar);
        check_products(noise({rows, in}, 4), bytes.const_data_ptr<std::int8_t>(), bytes.to(at::kDouble), 2e-3,
                       versions);
      }
}

TEST_CASE("numbers of four bits: packed, unpacked, multiplied, by all versions") {
  using version = void (*)(const cpu::fixed_rows&, const cpu::int4_rows&, std::int64_t, float*, std::int64_t);
  std::vector<version> versions{cpu::product, cpu::plain_product};
  if (cpu::has_avx512()) versions.push_back(cpu::product_without_vnni);
  constexpr std::array<std::array<std::int64_t, 2>, 8> sizes{
      {{32, 32}, {32, 96}, {32, 256}, {32, 1120}, {64, 576}, {64, 1024}, {128, 640}, {256, 768}}};
  for (const auto [group, in] : sizes)
    for (const std::int64_t rows : {1, 4, 5, 8, 13}) {
      constexpr std::int64_t out = 7;
      INFO("groups of " << group << ", " << rows << " rows of " << in);
      const auto steps = noise({out, in}, 3).mul(1000).to(at::kLong).remainder(16).to(at::kByte).contiguous();
      auto packed = at::empty({out, in / 2}, at::kByte);
      cpu::pack(steps.const_data_ptr<std::uint8_t>(), out, in, packed.mutable_data_ptr<std::uint8_t>());
      const auto scales = noise({out, in / group, 2}, 8).to(at::kBFloat16);
      const cpu::int4_rows matrix{packed.const_data_ptr<std::uint8_t>(),
                                  static_cast<const cpu::bfloat16*>(scales.const_data_ptr()), in, group};
      const auto numbers =
          ((steps.view({out, in / group, group}).to(at::kDouble) - 8) * scales.narrow(2, 0, 1).to(at::kDouble) +
           scales.narrow(2, 1, 1).to(at::kDouble))
              .view({out, in});
      auto unpacked = at::empty({out, in});
      cpu::unpack(matrix, out, unpacked.mutable_data_ptr<float>());
      CHECK(apart(unpacked, numbers) < 1e-5);
      check_products(noise({rows, in}, 9), matrix, numbers, 1e-2, versions);
    }
}

TEST_CASE("a group of four-bit numbers is fitted better than by its range") {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto numbers = noise({64, 32}, seed);
    const auto low = numbers.amin(1, true), scale = (numbers.amax(1, true) - low) / 15;
    const auto by_range = ((numbers - low) / scale).round() * scale + low;
    auto fitted = at::empty_like(numbers);
    for (std::int64_t i = 0; i < 64; ++i) {
      std::uint8_t steps[32], packed[16];
      cpu::bfloat16 line[2];
      cpu::quantize_group(numbers.const_data_ptr<float>() + i * 32, 32, steps, line[0], line[1]);
      cpu::pack(steps, 1, 32, packed);
      cpu::unpack({packed, line, 32, 32}, 1, fitted.mutable_data_ptr<float>() + i * 32);
    }
    const auto error = [&](const at::Tensor& to) { return (to - numbers).square().mean().item<double>(); };
    CHECK(error(fitted) < 0.9 * error(by_range));
  }
  std::uint8_t steps[32];
  cpu::bfloat16 scale, offset;
  const std::vector<float> same(32, 0.5F);
  cpu::quantize_group(same.data(), 32, steps, scale, offset);
  CHECK((steps[0] - 8) * cpu::widen(scale) + cpu::widen(offset) == 0.5F);
}

TEST_CASE("convolutions by hand are convolutions") {
  for (const std::int64_t channels : {1, 3, 6, 24})
    for (const std::int64_t length : {1, 63, 64, 200}) {
      constexpr std::int64_t size = 7, dilation = 3, reach = (size - 1) * dilation;
      const auto x = noise({1, channels, length + reach}, 7), weight = noise({5, channels, size}, 8),
                 bias = noise({5}, 9), add = noise({5, length}, 10);
      auto to = at::empty({5, length});
      const cpu::kernel by{weight.const_data_ptr<float>(), bias.const_data_ptr<float>(), 5, channels, size, dilation};
      cpu::convolve(x.const_data_ptr<float>(), length + reach, by, length, add.const_data_ptr<float>(), length,
                    {to.mutable_data_ptr<float>(), length});
      const auto exact = at::conv1d(x.to(at::kDouble), weight.to(at::kDouble), bias.to(at::kDouble), {1},
                                    at::IntArrayRef{0}, {dilation});
      CHECK(apart(to, exact.squeeze(0) + add) < 2e-5);
    }
}

TEST_CASE("the snake activation holds for large arguments") {
  const auto x = at::linspace(-300, 300, 20000).unsqueeze(0);
  const float alpha = 1.7F, inverse = 0.6F;
  auto to = at::empty_like(x);
  cpu::snake(x.const_data_ptr<float>(), 20000, &alpha, &inverse, 1, 20000, {to.mutable_data_ptr<float>(), 20000});
  const auto wave = at::sin((x * alpha).to(at::kDouble)); // the sine of the float32 argument
  CHECK(apart(to, x + static_cast<double>(inverse) * wave.square()) < 4e-5);
}

TEST_CASE("spectra become samples as an inverse transform makes them") {
  for (const std::int64_t columns : {2, 5, 64, 131}) {
    const auto window = at::hann_window(16), x = noise({18, columns}, 11) * 2;
    const auto* w = window.const_data_ptr<float>();
    const cpu::overlapped_transform transform(std::vector<float>(w, w + 16), 4);
    auto to = at::empty({(columns - 1) * 4});
    transform.samples(x.const_data_ptr<float>(), columns, columns, 0.99F, to.mutable_data_ptr<float>());
    const auto wide = x.to(at::kDouble);
    const auto magnitude = wide.narrow(0, 0, 9).exp().clamp_max(100), phase = wide.narrow(0, 9, 9).sin();
    const auto exact =
        at::istft(at::complex(magnitude * phase.cos(), magnitude * phase.sin()), 16, 4, 16, window.to(at::kDouble));
    CHECK(apart(to, exact.clamp(-0.99, 0.99)) < 1e-5);
  }
}

TEST_CASE("an inverse transform of impossible sizes is refused") {
  const auto made = [](std::size_t size, std::int64_t hop) {
    cpu::overlapped_transform(std::vector<float>(size, 0.5F), hop);
  };
  CHECK_NOTHROW(made(16, 4));
  CHECK_NOTHROW(made(64, 16));
  CHECK_THROWS_WITH(made(80, 20), Catch::Contains("no inverse transform of 80 samples in steps of 20"));
  for (const auto& [size, hop] :
       std::vector<std::pair<std::size_t, std::int64_t>>{{0, 4}, {15, 5}, {16, 3}, {16, 0}, {16, -4}, {16, 32}})
    CHECK_THROWS_AS(made(size, hop), std::runtime_error);
}

TEST_CASE("a draw is the first index beyond u") {
  std::vector<float> weights(1000);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7);
  const auto total = std::accumulate(weights.begin(), weights.end(), 0.0);
  auto below = 0.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) {
      const auto found = cpu::draw(weights, (below + 0.5 * weights[i]) / total);
      CHECK(found.index == i);
      CHECK(found.below == Approx(below));
    }
    below += weights[i];
  }
  CHECK(cpu::draw(weights, 1.0).index == 999); // the last weight is not 0
}

TEST_CASE("exponentials of a row of logits") {
  const auto x = noise({5000}, 12) * 20;
  const std::span<const float> row(x.const_data_ptr<float>(), 5000);
  const auto [top, sane] = cpu::find_peak(row);
  CHECK(sane);
  CHECK(top == x.max().item<float>());
  auto to = at::empty({5000});
  const auto sum = cpu::exponentials(row, top, to.mutable_data_ptr<float>());
  const auto exact = (x.to(at::kDouble) - static_cast<double>(top)).exp();
  CHECK(apart(to, exact) < 3e-7);
  CHECK(sum == Approx(exact.sum().item<double>()).epsilon(1e-6));
  CHECK(cpu::sum_of_exponentials(row, top) == Approx(sum).epsilon(1e-9));
  auto strange = x.clone();
  strange[4321] = NAN;
  CHECK_FALSE(cpu::find_peak({strange.const_data_ptr<float>(), 5000}).sane);
  CHECK(cpu::any_above(row, top - 1));
  CHECK_FALSE(cpu::any_above(row, top));
}
