#include "inference/kernels/processor.hpp"
#include "inference/speech/layers.hpp"
#include "inference/vocoder/token2wav.hpp"
#include "tests/inference/speech_fixture.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <array>
#include <stdexcept>
#include <vector>

using namespace parley::inference;
using namespace parley::inference::speech;

namespace {

double distance(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return ((a - b).norm() / b.norm()).item<double>();
}

/// Each factor is rounded by at most one part in 512, and so is each result.
constexpr double rounding = 1.0 / 256;

linear some_linear(bool with_bias) {
  linear made;
  made.weight = at::randn({48, 64});
  if (with_bias) made.bias = 100 * at::randn({48});
  return made;
}

/// Of a second of speech, which must be finite samples.
at::Tensor mel_of(const token2wav& model) {
  auto stream = model.start(testing::prepared(model, testing::recording(1.5, 1)));
  const auto tokens = testing::some_tokens(28, 3);
  const token2wav::job job{&stream, tokens, true, nullptr, {}};
  token2wav::trace seen;
  const auto sound = model.run({&job, 1}, &seen)[0];
  CHECK(sound.isfinite().all().item<bool>());
  return seen.mels.at(0);
}

} // namespace

TEST_CASE("products in bfloat16 and with weights in 8 bits are those of float32 but for rounding") {
  at::manual_seed(1);
  for (const auto with_bias : {false, true})
    for (const auto rows : {1, 5, 40}) {
      const auto x = at::randn({2, rows, 64});
      const auto exact = some_linear(with_bias);
      auto narrow = exact, small = exact;
      narrow.use_bfloat16();
      small.use_int8();
      CHECK(narrow(x).scalar_type() == at::kFloat);
      CHECK(distance(narrow(x), exact(x)) < rounding);
      CHECK(distance(small(x), exact(x)) < 3 * rounding);
      CHECK(narrow.weight.scalar_type() == (cpu::multiplies_bfloat16() ? at::kBFloat16 : at::kFloat));
    }
}

TEST_CASE("convolutions in bfloat16 are those of float32 but for rounding") {
  at::manual_seed(2);
  for (const auto& [left, right, dilation] :
       std::vector<std::array<std::int64_t, 3>>{{2, 2, 1}, {6, 0, 3}, {0, 0, 1}}) {
    padded_conv exact;
    exact.weight = at::randn({24, 16, 3});
    exact.bias = at::randn({24});
    exact.left = left;
    exact.right = right;
    exact.dilation = dilation;
    auto narrow = exact;
    narrow.use_bfloat16();
    const auto x = at::randn({2, 16, 50});
    CHECK(distance(narrow(x), exact(x)) < rounding);
  }
}

TEST_CASE("a convolution of other channels than its input is refused") {
  padded_conv conv;
  conv.weight = at::ones({4, 3, 1});
  CHECK(conv(at::ones({1, 3, 8})).size(1) == 4);
  for (const std::int64_t channels : {1, 2, 4})
    CHECK_THROWS_WITH(conv(at::ones({1, channels, 8})), Catch::Contains("other channels than its input"));
  conv.bias = at::ones({3});
  CHECK_THROWS_AS(conv(at::ones({1, 3, 8})), std::runtime_error);
}

TEST_CASE("in mixed precision the tiny talker's mel and logits are those of float32 but for rounding") {
  c10::InferenceMode inference;
  token2wav_options mixed;
  mixed.bfloat16_products = true;
  const auto folder = testing::talker_folder / "token2wav";
  const token2wav narrow(folder, noise_tables::draw(1), mixed), exact(folder, noise_tables::draw(1));
  CHECK(distance(mel_of(narrow), mel_of(exact)) < 8 * rounding);

  const auto tts = testing::talker_folder / "tts";
  tts_llama small(read_tts_weights(checkpoint::open(tts)), tts_config::open(tts / "config.json"));
  small.use_int8();
  const auto logits = [](const tts_llama& model) {
    tts_cache past;
    const tts_llama::row words{&past, testing::some_condition(30, 1), {}, nullptr, 0};
    return model.next_logits({&words, 1}).at(0);
  };
  CHECK(distance(logits(small), logits(*testing::speaking_models().tokens)) < 8 * rounding);
}
