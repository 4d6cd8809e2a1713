#include "inference/verify/agreement.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/InferenceMode.h>
#include <catch2/catch.hpp>

#include <iostream>

using namespace parley::inference;

namespace {

constexpr auto model = "tests/data/checkpoints/tiny";
constexpr auto goldens = "tests/data/goldens/thinker";

llm::qwen3 made(llm::quantization format) {
  return llm::qwen3(model_config::open(model).llm, checkpoint::open(model).view("llm."), format);
}

} // namespace

TEST_CASE("quantized weights answer like the exact ones on the goldens' prompts") {
  c10::InferenceMode guard;
  const auto prompts = verify::recorded_prompts(model, goldens);
  REQUIRE(prompts.size() > 10);
  const auto exact = made(llm::quantization::none);
  const auto alike = [&](llm::quantization format) { return verify::compare(exact, made(format), prompts); };
  const auto same = alike(llm::quantization::none), int8 = alike(llm::quantization::int8),
             int4 = alike(llm::quantization::int4);
  for (const auto& [name, a] : {std::pair{"int8", int8}, std::pair{"int4", int4}})
    std::cout << "quantized: " << name << ": same top-1 in " << a.same_top << " of " << a.rows << " rows, "
              << a.same_clear << " of " << a.clear_rows << " clear ones, KL " << a.divergence << '\n';
  CHECK(same.same_top == same.rows);
  CHECK(same.divergence == Approx(0).margin(1e-9));
  // Random weights, 256 values a row: harder to round than trained ones.
  CHECK(int8.same_top >= 0.94 * static_cast<double>(int8.rows));
  CHECK(int8.same_clear >= 0.98 * static_cast<double>(int8.clear_rows));
  CHECK(int8.divergence < 5e-3);
  CHECK(int8.divergence > 0);
  CHECK(int4.divergence > int8.divergence);
  CHECK(int4.divergence < 0.5);
  CHECK(int4.same_clear >= 0.6 * static_cast<double>(int4.clear_rows));
}

TEST_CASE("the quantized default model predicts what the exact one does") {
  c10::InferenceMode guard;
  constexpr auto nano = "models/nano";
  const auto prompts = verify::recorded_prompts(nano, "tests/data/nano_typed.json");
  REQUIRE(prompts.size() >= 100);
  const auto weights = checkpoint::open(nano);
  const auto config = model_config::open(nano).llm;
  const llm::qwen3 exact(config, weights.view("llm."));
  for (const auto& [format, least] :
       {std::pair{llm::quantization::int8, 0.99}, std::pair{llm::quantization::int4, 0.95}}) {
    const auto alike = verify::compare(exact, llm::qwen3(config, weights.view("llm."), format), prompts);
    CAPTURE(alike.same_top, alike.rows, alike.divergence);
    CHECK(static_cast<double>(alike.same_top) >= least * static_cast<double>(alike.rows));
  }
}

TEST_CASE("quantized weights take less room") {
  const auto bytes = [](llm::quantization format) { return made(format).weight_bytes(); };
  const auto rest = llm::qwen3(model_config::open(model).llm, checkpoint::open(model).view("llm.")).weight_bytes();
  CHECK(bytes(llm::quantization::int8) < rest);
  CHECK(bytes(llm::quantization::int4) < bytes(llm::quantization::int8));
}

TEST_CASE("few rows and many are multiplied alike") {
  c10::InferenceMode guard;
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{11});
  const auto matrix = at::randn({300, 128}, generator), x = at::randn({21, 128}, generator);
  for (const auto format : {llm::quantization::int8, llm::quantization::int4}) {
    const llm::quantized_matrix small(matrix, format);
    const auto many = small.product(x), few = small.product(x.narrow(0, 0, 5));
    const auto close = (many.narrow(0, 0, 5) - few).abs().max() / few.abs().max();
    CHECK(close.item<float>() < 1.0F / 128); // more rows may be rounded to bfloat16
    CHECK(at::equal(small.precise_product(x).narrow(0, 0, 5), few));
    for (const auto& [rows, product] : {std::pair{5, few}, std::pair{21, many}}) {
      auto sum = at::ones({rows, 300});
      small.add_product(sum, x.narrow(0, 0, rows));
      CHECK(at::equal(sum, product + 1));
    }
  }
}

TEST_CASE("a matrix in fewer bits is the matrix within half a step") {
  c10::InferenceMode guard;
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{7});
  const auto matrix = at::randn({50, 64}, generator) / 8;
  const auto unit = at::eye(64);
  const auto exact = matrix.t();
  const auto apart = [&](llm::quantization format) {
    return (llm::quantized_matrix(matrix, format).product(unit) - exact).abs().max().item<float>();
  };
  const auto widest = matrix.abs().max().item<float>();
  CHECK(apart(llm::quantization::int8) <= widest / 127 * 0.5 + widest / 128); // plus the rounding of bfloat16
  CHECK(apart(llm::quantization::int4) <= 2 * widest / 15 * 0.5 + widest / 32);
  CHECK_THROWS_WITH(llm::quantized_matrix(at::zeros({16, 40}), llm::quantization::int4),
                    Catch::Contains("multiple of 32"));
}
