#include "inference/formats/onnx_runner.hpp"
#include "inference/formats/state_dict.hpp"
#include "inference/tts/speech_config.hpp"
#include "tests/inference/speech_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>

using namespace parley::inference::speech;
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
  folder.write("flow.yaml", "flow: [1, 2");
  CHECK_THROWS_WITH(flow_config::open(folder.path() / "flow.yaml"), Catch::Contains("flow.yaml"));
  folder.write("config.json", R"({"tts_config": {"attention_type": "sideways"}})");
  CHECK_THROWS_WITH(tts_config::open(folder.path() / "config.json"), Catch::Contains("sideways"));
}

TEST_CASE("the generation is told by the files") {
  CHECK(token2wav::generation_of(talker_folder / "token2wav") == token2wav::generation::causal);
  CHECK(token2wav::generation_of(talker_folder / "token2wav_legacy") == token2wav::generation::legacy);
}
