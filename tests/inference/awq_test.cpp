#include "inference/formats/awq.hpp"

#include "inference/formats/checkpoint.hpp"
#include "inference/formats/model_config.hpp"
#include "inference/llm/linear.hpp"
#include "inference/llm/qwen3.hpp"
#include "inference/verify/agreement.hpp"
#include "tests/inference/made_folder.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/InferenceMode.h>
#include <catch2/catch.hpp>

using namespace parley::inference;
using namespace parley::inference::testing;
using parley::tests::temporary_folder;

namespace {

constexpr auto model = "tests/data/checkpoints/tiny";
constexpr auto goldens = "tests/data/goldens/thinker";

/// Values of 0 to 15 [rows, out], eight to a word, packed like AutoAWQ's "gemm" layout.
at::Tensor packed(const at::Tensor& numbers) {
  constexpr int order[] = {0, 2, 4, 6, 1, 3, 5, 7};
  const auto words = numbers.to(at::kLong).view({numbers.size(0), -1, 8});
  auto result = at::zeros({words.size(0), words.size(1)}, at::kLong);
  for (int i = 0; i < 8; ++i) result.bitwise_or_(words.select(2, order[i]).bitwise_left_shift(4 * i));
  return result.to(at::kInt); // overflow wraps around
}

/// Quantizes [out, in] in groups of inputs, including the error that this costs.
awq_matrix quantized(const at::Tensor& matrix, std::int64_t group) {
  const auto in = matrix.size(1), out = matrix.size(0);
  const auto groups = matrix.to(at::kFloat).t().contiguous().view({in / group, group, out});
  const auto low = groups.amin(1).clamp_max(0), high = groups.amax(1).clamp_min(0);
  const auto scale = ((high - low) / 15).clamp_min(1e-6).to(at::kHalf);
  const auto zero = (-low / scale.to(at::kFloat)).round().clamp(0, 15);
  const auto numbers = (groups / scale.to(at::kFloat).unsqueeze(1) + zero.unsqueeze(1)).round().clamp(0, 15);
  return {packed(numbers.view({in, out})), packed(zero), scale};
}

/// The tiny checkpoint with its layers' matrices in 4 bits.
temporary_folder& quantized_model() {
  static temporary_folder folder;
  static const bool made = [] {
    const auto plain = checkpoint::open(model);
    std::map<std::string, at::Tensor> tensors;
    for (const auto& name : plain.names()) {
      if (!is_awq_name(name)) {
        tensors[name] = plain.stored(name).to(at::kHalf);
        continue;
      }
      const auto stem = name.substr(0, name.size() - 6);
      const auto one = quantized(plain.stored(name), 32);
      tensors[stem + "qweight"] = one.numbers;
      tensors[stem + "qzeros"] = one.zeros;
      tensors[stem + "scales"] = one.scales;
    }
    folder.write("model.safetensors", safetensors_of(tensors));
    auto config = nlohmann::json::parse(contents_of(std::filesystem::path(model) / "config.json"));
    config["quantization_config"] = {{"quant_method", "awq"}, {"bits", 4},
                                     {"group_size", 32},      {"version", "gemm"},
                                     {"zero_point", true},    {"modules_to_not_convert", nullptr}};
    folder.write("config.json", config.dump());
    return true;
  }();
  REQUIRE(made);
  return folder;
}

llm::qwen3 opened(const std::filesystem::path& folder, llm::quantization format) {
  return llm::qwen3(model_config::open(folder).llm, checkpoint::open(folder).view("llm."), format);
}

} // namespace

TEST_CASE("a word of AWQ holds eight outputs in the order 0 2 4 6 1 3 5 7") {
  const auto word = at::tensor({static_cast<int>(0x75316420)}, at::kInt).view({1, 1});
  CHECK(at::equal(unpack_awq(word).view(-1), at::arange(8, at::kByte)));
  const auto negative = at::tensor({static_cast<int>(0xF0000000U)}, at::kInt).view({1, 1});
  CHECK(unpack_awq(negative)[0][7].item<int>() == 15);
  const auto numbers = at::randint(16, {6, 24});
  CHECK(at::equal(unpack_awq(packed(numbers)).to(at::kLong), numbers.to(at::kLong)));
}

TEST_CASE("a matrix of AWQ is (number - zero) times scale, transposed") {
  const awq_matrix stored{packed(at::arange(16).view({2, 8})), packed(at::full({1, 8}, 7)),
                          at::arange(1, 9).view({1, 8}).to(at::kHalf)};
  const auto matrix = matrix_of(stored, at::kFloat);
  CHECK(matrix.sizes() == at::IntArrayRef{8, 2});
  CHECK(matrix[0][0].item<float>() == -7);
  CHECK(matrix[3][1].item<float>() == (11 - 7) * 4);
  const auto any = at::randn({48, 128});
  CHECK((matrix_of(quantized(any, 64), at::kFloat) - any).abs().max().item<float>() < 0.3F);
}

TEST_CASE("parts of AWQ that do not fit each other are refused") {
  auto refused = [](awq_matrix stored, const char* why) { CHECK_THROWS_WITH(check_awq(stored), Catch::Contains(why)); };
  const auto good = quantized(at::randn({16, 64}), 32);
  CHECK_NOTHROW(check_awq(good));
  refused({good.numbers.to(at::kFloat), good.zeros, good.scales}, "must be int32");
  refused({good.numbers, good.zeros, good.numbers}, "scales must be floats");
  refused({good.numbers, good.zeros.slice(1, 1), good.scales}, "do not fit each other");
  refused({good.numbers.slice(0, 1), good.zeros, good.scales}, "equal groups");
  refused({good.numbers[0], good.zeros, good.scales}, "must be matrices");
}

TEST_CASE("a checkpoint in AWQ is read as the matrices that it stands for") {
  const auto plain = checkpoint::open(model), stored = checkpoint::open(quantized_model().path());
  const std::string name = "llm.model.layers.1.mlp.down_proj.weight";
  CHECK(stored.has(name));
  CHECK_FALSE(plain.quantized(name));
  REQUIRE(stored.quantized(name));
  const auto exact = plain.tensor(name, at::kFloat), unpacked = stored.tensor(name, at::kFloat);
  CHECK(unpacked.sizes() == exact.sizes());
  CHECK(at::allclose(unpacked, matrix_of(quantized(exact, 32), at::kFloat)));
  CHECK((unpacked - exact).abs().max().item<float>() < 0.05F);
  const auto view = stored.view("llm.");
  CHECK_FALSE(view.mapped("model.layers.1.mlp.down_proj.weight"));
  CHECK_THROWS_WITH(stored.stored("llm.model.layers.9.mlp.down_proj.weight"), Catch::Contains("no tensor"));
}

TEST_CASE("4 bits stay 4 bits where the engine works with them, and mean the same") {
  c10::InferenceMode guard;
  const auto stored = checkpoint::open(quantized_model().path()).view("llm.model.layers.0.");
  const std::string_view names[] = {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"};
  const llm::linear unpacked(stored, names, 256), kept(stored, names, 256, llm::quantization::int4);
  CHECK(kept.bytes() * 3 < unpacked.bytes());
  CHECK(kept.out() == unpacked.out());
  const auto x = at::randn({5, 256}, at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{3}));
  const auto exact = unpacked(x);
  CHECK((kept(x) - exact).abs().max().item<float>() < 0.03F * exact.abs().max().item<float>()); // rounding of bfloat16
}

TEST_CASE("a model in AWQ answers like its unpacked weights, in either form") {
  c10::InferenceMode guard;
  const auto prompts = verify::recorded_prompts(model, goldens);
  const auto plain = opened(model, llm::quantization::none),
             unpacked = opened(quantized_model().path(), llm::quantization::none),
             kept = opened(quantized_model().path(), llm::quantization::int4);
  const auto loss = verify::compare(plain, unpacked, prompts), same = verify::compare(unpacked, kept, prompts);
  CHECK(loss.divergence > 0);
  CHECK(loss.divergence < 0.5); // loose: random weights, 256 values a row
  CHECK(same.divergence < 5e-3);
  CHECK(same.same_clear >= 0.97 * static_cast<double>(same.clear_rows));
  CHECK(kept.weight_bytes() < unpacked.weight_bytes());
}
