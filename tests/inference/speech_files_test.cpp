#include "inference/formats/onnx_runner.hpp"
#include "inference/formats/state_dict.hpp"
#include "inference/speech/speech_config.hpp"
#include "tests/inference/speech_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <catch2/catch.hpp>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using namespace parley::inference::speech;
using parley::inference::testing::speaking_models;
using parley::inference::testing::talker_folder;
using parley::tests::temporary_folder;

namespace {

std::string contents(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// A file as torch.save writes it, with this pickle and one storage of eight floats.
std::filesystem::path saved(const temporary_folder& folder, const std::string& pickle) {
  const auto file = folder.path() / "made.pt";
  caffe2::serialize::PyTorchStreamWriter writer(file.string());
  const std::vector<float> storage{0, 1, 2, 3, 4, 5, 6, 7};
  writer.writeRecord("data.pkl", pickle.data(), pickle.size());
  writer.writeRecord("data/0", storage.data(), storage.size() * sizeof(float));
  writer.writeEndOfFile();
  return file;
}

/// The pickle of a dict {"w": tensor} with this offset, size and stride into the storage.
std::string one_tensor(int offset, int size, int stride,
                       const std::string& builder = "ctorch._utils\n_rebuild_tensor_v2\n") {
  auto text = [](const std::string& s) {
    return "X" + std::string{static_cast<char>(s.size())} + std::string(3, '\0') + s;
  };
  auto number = [](int n) { return std::string("K") + static_cast<char>(n); };
  return "\x80\x02}" + text("w") + builder + "((" + text("storage") + "ctorch\nFloatStorage\n" + text("0") +
         text("cpu") + number(8) + "tQ" + number(offset) + number(size) + "\x85" + number(stride) + "\x85\x89N" +
         "tRs.";
}

} // namespace

TEST_CASE("state dicts are read in both forms, and both vocoders' names are alike") {
  const auto causal = read_vocoder(talker_folder / "token2wav" / "hift.pt");
  const auto original = read_vocoder(talker_folder / "token2wav" / "hift_original.pt");
  CHECK(causal.size() == 328);
  CHECK(original.size() == 328);
  CHECK(original.has("conv_pre.bias"));
  CHECK_THROWS_WITH(causal.at("nothing"), Catch::Contains("hift.pt") && Catch::Contains("nothing"));
  CHECK_THROWS_WITH(causal.at("conv_pre.bias", {7}), Catch::Contains("shape"));
}

TEST_CASE("a state dict can't reach outside its storage or call anything") {
  temporary_folder folder;
  CHECK(at::equal(read_state_dict(saved(folder, one_tensor(1, 3, 2))).at("w"), at::tensor({1.F, 3.F, 5.F})));
  CHECK_THROWS_AS(read_state_dict(saved(folder, one_tensor(1, 8, 1))), std::runtime_error);
  CHECK_THROWS_AS(read_state_dict(saved(folder, one_tensor(0, 200, 0))), std::runtime_error);
  CHECK_THROWS_WITH(read_state_dict(saved(folder, one_tensor(0, 1, 1, "cos\nsystem\n"))), Catch::Contains("os.system"));
  for (const std::string pickle : {"", ".", "}", "\x80\x02", "(.", "h\x07.", "}u.", "R.", "}X\xff\xff\xff\xff.", "0."})
    CHECK_THROWS_AS(read_state_dict(saved(folder, pickle)), std::runtime_error);
  CHECK_THROWS_AS(read_state_dict(folder.path() / "missing.pt"), std::runtime_error);
}

TEST_CASE("a state dict that nests too deeply for recursion is refused") {
  temporary_folder folder;
  constexpr std::uint32_t levels = 300'000;
  CHECK_THROWS_WITH(read_state_dict(saved(folder, "N" + std::string(levels, '\x85') + ".")),
                    Catch::Contains("made.pt: holds no dict"));
  // Lists that are put into each other from the outermost inwards, and stay only in the memo.
  const auto place = [](std::uint32_t n) { return std::string(reinterpret_cast<const char*>(&n), sizeof n); };
  std::string lists;
  for (std::uint32_t n = 0; n < levels; ++n) lists += "]r" + place(n) + "b";
  for (std::uint32_t n = 1; n < levels; ++n) lists += "j" + place(n - 1) + "j" + place(n) + "ab";
  CHECK_THROWS_WITH(read_state_dict(saved(folder, lists + "N.")), Catch::Contains("made.pt: holds no dict"));
}

TEST_CASE("a damaged state dict is refused or read, never more") {
  temporary_folder folder;
  const auto whole = one_tensor(0, 4, 1);
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (char byte : {'\0', '\x7f', '\xff', 't', '.', 's'}) {
      auto damaged = whole;
      damaged[i] = byte;
      try {
        read_state_dict(saved(folder, damaged));
      } catch (const std::runtime_error&) {
      }
    }
  const auto file = contents(talker_folder / "token2wav" / "hift.pt");
  for (std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{100}, file.size() / 2, file.size() - 1}) {
    folder.write("cut.pt", file.substr(0, n));
    CHECK_THROWS_AS(read_state_dict(folder.path() / "cut.pt"), std::runtime_error);
  }
}

TEST_CASE("a damaged ONNX file is refused or read, never more") {
  temporary_folder folder;
  const auto file = contents(talker_folder / "token2wav" / "campplus.onnx");
  for (std::size_t n = 0; n < file.size(); n += 1 + file.size() / 97) {
    folder.write("cut.onnx", file.substr(0, n));
    CHECK_THROWS_AS(onnx_runner(read_onnx(folder.path() / "cut.onnx")), std::runtime_error);
    auto damaged = file;
    damaged[n] = static_cast<char>(damaged[n] ^ 0x55);
    folder.write("damaged.onnx", damaged);
    try {
      onnx_runner(read_onnx(folder.path() / "damaged.onnx"));
    } catch (const std::runtime_error&) {
    }
  }
}

TEST_CASE("configurations say which file and key is wrong") {
  temporary_folder folder;
  CHECK(hift_config::open(talker_folder / "token2wav" / "config.yaml").frame_samples() == 480);
  CHECK(flow_config::open(talker_folder / "token2wav" / "flow.yaml").guidance == Approx(0.7));
  folder.write("config.yaml", "hift: !new:some.thing\n  upsample_rates: [0, 5]\n");
  CHECK_THROWS_WITH(hift_config::open(folder.path() / "config.yaml"), Catch::Contains("config.yaml"));
  const auto refused = [&](const std::string& keys, const char* words) {
    INFO(keys);
    folder.write("config.yaml", "hift:\n  " + keys + "\n");
    CHECK_THROWS_WITH(hift_config::open(folder.path() / "config.yaml"),
                      Catch::Contains("config.yaml: hift: ") && Catch::Contains(words));
  };
  for (const auto* keys :
       {"upsample_rates: [-8, -5, 3]", "upsample_rates: [65536, 65536, 65536]", "upsample_rates: [8, 5]",
        "resblock_dilation_sizes: [[], [], []]", "source_resblock_dilation_sizes: [[1], [], [1]]",
        "resblock_dilation_sizes: [[1, 0]]", "resblock_dilation_sizes: [[1, -3]]"})
    refused(keys, "impossible rates or dilations");
  for (const auto* keys : {"n_fft: 80, hop_len: 20", "n_fft: 15, hop_len: 5", "n_fft: 16, hop_len: 3", "hop_len: 0"})
    refused("istft_params: {" + std::string(keys) + "}", "n_fft is not an even multiple of hop_len");
  folder.write("flow.yaml", "flow: [1, 2");
  CHECK_THROWS_WITH(flow_config::open(folder.path() / "flow.yaml"), Catch::Contains("flow.yaml"));
  folder.write("config.json", R"({"tts_config": {"attention_type": "sideways"}})");
  CHECK_THROWS_WITH(tts_config::open(folder.path() / "config.json"), Catch::Contains("sideways"));
}

TEST_CASE("the generation is told by the files") {
  CHECK(token2wav::generation_of(talker_folder / "token2wav") == token2wav::generation::causal);
  CHECK(token2wav::generation_of(talker_folder / "token2wav_legacy") == token2wav::generation::legacy);
}

namespace {

struct replaced {
  std::string name;
  at::Tensor by;
};

/// A copy in which tensors are replaced.
tensor_map with(tensor_map weights, const std::vector<replaced>& changes) {
  for (const auto& [name, by] : changes) {
    REQUIRE(weights.has(name));
    weights.put(name, by);
  }
  return weights;
}

/// The tensors that make a weight-normed convolution have this shape.
std::vector<replaced> normed(const std::string& name, std::int64_t out, std::int64_t in, std::int64_t kernel) {
  const auto weight = name + ".parametrizations.weight.original";
  return {{weight + "0", at::ones({out, 1, 1})}, {weight + "1", at::ones({out, in, kernel})}};
}

} // namespace

TEST_CASE("a vocoder whose tensors do not fit each other is refused by name, in both generations") {
  const auto causal = read_vocoder(talker_folder / "token2wav" / "hift.pt");
  const auto original = read_vocoder(talker_folder / "token2wav_legacy" / "hift.pt");
  const auto config = hift_config::open(talker_folder / "token2wav" / "config.yaml");
  CHECK_NOTHROW(hift_causal(causal, config));
  CHECK_NOTHROW(hift_original(original));
  const auto refused = [&](const std::vector<replaced>& changes, const std::string& name) {
    CHECK_THROWS_WITH(hift_causal(with(causal, changes), config),
                      Catch::Contains("hift.pt") && Catch::Contains(name) && Catch::Contains("shape"));
    CHECK_THROWS_WITH(hift_original(with(original, changes)),
                      Catch::Contains("hift.pt") && Catch::Contains(name) && Catch::Contains("shape"));
  };
  refused(normed("conv_post", 17, 3, 7), "conv_post.weight");
  refused(normed("conv_post", 18, 2, 7), "conv_post.weight");
  refused({{"conv_post.bias", at::ones({17})}}, "conv_post.bias");
  refused({{"source_downs.2.weight", at::ones({2, 18, 1})}}, "ups.2.weight");
  refused({{"resblocks.4.activations2.1.alpha", at::ones({5})}}, "resblocks.4.activations2.1.alpha");
  refused(normed("resblocks.8.convs1.2", 3, 2, 11), "resblocks.8.convs1.2.weight");
  refused(normed("source_resblocks.1.convs2.0", 5, 6, 7), "source_resblocks.1.convs2.0.weight");
  refused({{"source_resblocks.0.convs1.1.bias", at::ones({11})}}, "source_resblocks.0.convs1.1.bias");
  refused({{"conv_pre.parametrizations.weight.original0", at::ones({3, 1, 1})}}, "conv_pre.parametrizations");
  CHECK_THROWS_WITH(hift_original(with(original, normed("resblocks.0.convs1.0", 12, 12, 4))),
                    Catch::Contains("resblocks.0.convs1.0 has a kernel without a middle"));
  auto flat = config;
  flat.dilations = {{}, {}, {}};
  CHECK_THROWS_WITH(hift_causal(causal, flat), Catch::Contains("resblocks.0 has no dilations"));
}

TEST_CASE("a speech-token model is refused if any of its layers does not fit") {
  const auto folder = talker_folder / "tts";
  const auto weights = read_tts_weights(parley::inference::checkpoint::open(folder));
  const auto config = tts_config::open(folder / "config.json");
  CHECK_NOTHROW(tts_llama(weights, config));
  for (const auto& change : std::vector<replaced>{{"model.layers.0.input_layernorm.weight", at::ones({16})},
                                                  {"model.layers.1.post_attention_layernorm.weight", at::ones({31})},
                                                  {"model.layers.1.self_attn.q_proj.weight", at::ones({24, 32})},
                                                  {"model.layers.1.self_attn.k_proj.weight", at::ones({16, 32})},
                                                  {"model.layers.1.self_attn.v_proj.weight", at::ones({40, 32})},
                                                  {"model.layers.1.self_attn.o_proj.weight", at::ones({32, 24})},
                                                  {"model.layers.1.mlp.up_proj.weight", at::ones({63, 32})}})
    CHECK_THROWS_WITH(tts_llama(with(weights, {change}), config),
                      Catch::Contains(change.name) && Catch::Contains("shape"));
  auto odd = config;
  odd.heads = odd.kv_heads = 32; // of one number each
  CHECK_THROWS_WITH(tts_llama(weights, odd), Catch::Contains("attention heads of config.json"));
}

TEST_CASE("rows of another width than the speech-token model's are refused") {
  c10::InferenceMode inference;
  tts_cache past;
  const tts_llama::row wide{&past, at::ones({2, 64}), {}, nullptr, 0};
  CHECK_THROWS_WITH(speaking_models().tokens->forward({&wide, 1}), Catch::Contains("do not fit their model"));
  CHECK(past.length() == 0);
}
