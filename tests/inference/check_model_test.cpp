#include "inference/check/check_model.hpp"

#include "inference/check/checks.hpp"
#include "inference/init/init_model.hpp"
#include "inference/init/presets.hpp"
#include "inference/init/tensor_plan.hpp"
#include "inference/init/tokenizer_json.hpp"
#include "inference/talker.hpp"
#include "inference/text/missing_merges.hpp"
#include "inference/thinker.hpp"
#include "tests/inference/made_folder.hpp"

#include <c10/core/InferenceMode.h>
#include <catch2/catch.hpp>

#include <functional>
#include <set>
#include <sstream>

using namespace parley::inference;
using namespace parley::inference::testing;
using nlohmann::json;
using parley::tests::temporary_folder;

namespace {

constexpr auto flow = "assets/token2wav/flow.pt";
constexpr auto speaker = "assets/token2wav/campplus.onnx";
constexpr auto ear = "assets/token2wav/speech_tokenizer_v2_25hz.onnx";
constexpr auto voice = "assets/HT_ref_audio.wav";
constexpr auto lfs_pointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:f61addf4747c94fedcaee059e5d9918ed15543beec4944041"
    "39a99f2f86c9b31\nsize 2700000000\n";

/// A complete folder, with weights in shards.
const std::filesystem::path& whole() {
  static const temporary_folder folder;
  static const bool made = [] {
    init_model("tiny", 1, folder.path(), {.shard_bytes = 2'000'000});
    return true;
  }();
  REQUIRE(made);
  return folder.path();
}

std::string shard(int number) {
  const auto index = json::parse(contents_of(whole() / "model.safetensors.index.json"));
  std::set<std::string> names;
  for (const auto& [tensor, file] : index.at("weight_map").items()) names.insert(file.get<std::string>());
  return *std::next(names.begin(), number);
}

std::string checked(const std::filesystem::path& model, int expected, const check::check_options& options = {}) {
  std::ostringstream out;
  const auto status = check::check_model(model, options, out);
  INFO(out.str());
  CHECK(status == expected);
  return out.str();
}

std::string config_with(const linked_folder& folder, const char* pointer, json value) {
  folder.edit("config.json", [&](json& config) { config[json::json_pointer(pointer)] = std::move(value); });
  return {};
}

struct planted {
  const char* what;
  std::function<void(const linked_folder&)> plant;
  int status; ///< 1 = a fault, 0 = a warning or a note
  const char* sentence;
};

/// A WAV file with this many samples, all of this value.
std::string wav(std::uint32_t samples, std::int16_t value) {
  auto text = contents_of(whole() / voice).substr(0, 44);
  const std::uint32_t size = 2 * samples;
  text.replace(40, 4, reinterpret_cast<const char*>(&size), 4);
  for (std::uint32_t i = 0; i < samples; ++i) text.append(reinterpret_cast<const char*>(&value), 2);
  return text;
}

const std::vector<planted>& faults() {
  static const std::vector<planted> all{
      {"no config.json", [](auto& f) { f.remove("config.json"); }, 1, "FAULT   config.json is missing"},
      {"config.json is a pointer", [](auto& f) { f.write("config.json", lfs_pointer); }, 1,
       "FAULT   config.json is a pointer of Git LFS, not the file itself: run `git lfs install && git lfs pull`"},
      {"config.json is cut", [](auto& f) { f.write("config.json", f.read("config.json").substr(0, 700)); }, 1,
       "config.json: "},
      {"config.json is a list", [](auto& f) { f.write("config.json", "[]"); }, 1, "config.json is not an object"},
      {"the successor", [](auto& f) { config_with(f, "/version", "4.6"); }, 1,
       "FAULT   config.json: this is MiniCPM-o 4.6, another model than MiniCPM-o 4.5"},
      {"the successor's language model", [](auto& f) { config_with(f, "/text_model_type", "qwen3_5_moe_text"); }, 1,
       "(text_model_type qwen3_5_moe_text), another model"},
      {"another model", [](auto& f) { config_with(f, "/model_type", "qwen3"); }, 1,
       "model_type is qwen3: this is no MiniCPM-o"},
      {"no rope_theta", [](auto& f) { config_with(f, "/rope_theta", nullptr); }, 1, "rope_theta is missing"},
      {"scaled positions",
       [](auto& f) {
         config_with(f, "/rope_scaling", {{"rope_type", "yarn"}});
       },
       1, "rope_scaling.rope_type is yarn"},
      {"other quantization",
       [](auto& f) {
         config_with(f, "/quantization_config", {{"quant_method", "bitsandbytes"}});
       },
       1, "quantization_config.quant_method is bitsandbytes: weights in this format can't be read"},
      {"other condition", [](auto& f) { config_with(f, "/tts_config/condition_type", "tokens_and_hidden_merge"); }, 1,
       "tts_config.condition_type is tokens_and_hidden_merge"},
      {"more codebooks", [](auto& f) { config_with(f, "/tts_config/num_vq", 4); }, 1, "tts_config.num_vq is 4"},
      {"a number that is text", [](auto& f) { config_with(f, "/num_hidden_layers", "many"); }, 1,
       "num_hidden_layers: wrong type"},
      {"no version", [](auto& f) { f.edit("config.json", [](json& c) { c.erase("version"); }); }, 0,
       "warning config.json: version is missing"},
      {"broken preprocessor_config.json", [](auto& f) { f.write("preprocessor_config.json", "{"); }, 1,
       "preprocessor_config.json: "},
      {"no preprocessor_config.json", [](auto& f) { f.remove("preprocessor_config.json"); }, 0,
       "warning preprocessor_config.json is missing"},
      {"a shard is missing", [](auto& f) { f.remove(shard(1)); }, 1, "FAULT   model-00002-of-"},
      {"a shard is a pointer", [](auto& f) { f.write(shard(0), lfs_pointer); }, 1,
       ".safetensors is a pointer of Git LFS"},
      {"a shard is empty", [](auto& f) { f.write(shard(0), ""); }, 1,
       ".safetensors is empty: the download did not finish"},
      {"a shard is cut", [](auto& f) { f.write(shard(0), f.read(shard(0)).substr(0, 1'000'000)); }, 1,
       "data_offsets lie outside the file"},
      {"a link leads nowhere",
       [](auto& f) {
         f.remove(shard(2));
         create_symlink("../../blobs/f61addf4", f.path() / shard(2));
       },
       1, "is a link to ../../blobs/f61addf4, which is not there"},
      {"no weights", [](auto& f) { f.remove("model.safetensors.index.json"); }, 1,
       "neither model.safetensors nor model.safetensors.index.json is there: no weights"},
      {"the index is cut", [](auto& f) { f.write("model.safetensors.index.json", "{\"weight_map\": {"); }, 1,
       "model.safetensors.index.json"},
      {"the index lies",
       [](auto& f) {
         f.edit("model.safetensors.index.json", [](json& i) { i["weight_map"]["vpm.post_layernorm.bias"] = shard(0); });
       },
       1, "tensor vpm.post_layernorm.bias is not in "},
      {"a tensor has another name",
       [](auto& f) {
         for (int i = 0; i < 4; ++i) f.replace(shard(i), "resampler.ln_kv.bias", "resampler.ln_kw.bias");
         f.replace("model.safetensors.index.json", "resampler.ln_kv.bias", "resampler.ln_kw.bias");
       },
       1, "FAULT   there is no tensor resampler.ln_kv.bias"},
      {"tensors have another shape", [](auto& f) { config_with(f, "/intermediate_size", 200); }, 1,
       "has shape [192, 256], config.json asks for [200, 256]"},
      {"a part has fewer tensors", [](auto& f) { config_with(f, "/num_hidden_layers", 4); }, 1,
       "FAULT   llm: 36 of 47 tensors are as planned"},
      {"a tensor of whole numbers",
       [](auto& f) {
         f.replace(shard(0),
                   R"({"__metadata__":{"format":"pt"},"apm.conv1.bias":{"data_offsets":[0,128],"dtype":"BF16")",
                   R"({"__metadata__":{"format":"pt"},"apm.conv1.bias":{"data_offsets":[0,128],"dtype": "I16")");
       },
       1, "tensor apm.conv1.bias holds Short numbers, not floats"},
      {"no tokenizer",
       [](auto& f) {
         f.remove("tokenizer.json");
         f.remove("vocab.json");
       },
       1, "FAULT   tokenizer.json is missing"},
      {"another tokenizer",
       [](auto& f) { f.edit("tokenizer.json", [](json& t) { t["normalizer"]["type"] = "NFKC"; }); }, 1,
       "its normalizer is NFKC, and only NFC is implemented"},
      {"no tokenizer_config.json", [](auto& f) { f.remove("tokenizer_config.json"); }, 1,
       "FAULT   tokenizer_config.json is missing"},
      {"a control token is missing",
       [](auto& f) {
         f.replace("tokenizer.json", "<|listen|>", "<|listem|>");
         f.replace("tokenizer_config.json", "<|listen|>", "<|listem|>");
       },
       1, "the tokenizer has no token <|listen|>"},
      {"fewer rows than tokens", [](auto& f) { config_with(f, "/vocab_size", 1800); }, 1,
       "which has no row in the model"},
      {"no flow.pt", [](auto& f) { f.remove(flow); }, 0,
       "warning assets/token2wav/flow.pt is missing: no voice, answers are text alone"},
      {"flow.pt is a pointer", [](auto& f) { f.write(flow, lfs_pointer); }, 0,
       "warning assets/token2wav/flow.pt is a pointer of Git LFS"},
      {"flow.pt is cut", [](auto& f) { f.write(flow, f.read(flow).substr(0, 100'000)); }, 1, "flow.pt: "},
      {"flow.pt is another file", [](auto& f) { f.write(flow, contents_of(whole() / "assets/token2wav/hift.pt")); }, 1,
       "no tensor \"input_embedding.weight\""},
      {"other guidance",
       [](auto& f) { f.replace("assets/token2wav/flow.yaml", "inference_cfg_rate: 0.7", "inference_cfg_rate: 0.5"); },
       0, "warning flow.yaml: inference_cfg_rate is 0.5"},
      {"flow.yaml is cut", [](auto& f) { f.write("assets/token2wav/flow.yaml", "flow: [1, 2"); }, 1, "flow.yaml: "},
      {"hift.pt is another file", [](auto& f) { f.write("assets/token2wav/hift.pt", contents_of(whole() / flow)); }, 1,
       "hift.pt: no tensor"},
      {"an unknown operator", [](auto& f) { f.replace(speaker, "\x22\x07Sigmoid", "\x22\x07Sigmund"); }, 0,
       "operator Sigmund is not known: no voice, answers are text alone"},
      {"campplus.onnx is cut", [](auto& f) { f.write(speaker, f.read(speaker).substr(0, 10'000)); }, 1,
       "campplus.onnx: cut short"},
      {"the speech tokenizer lacks a tensor", [](auto& f) { f.replace(ear, "onnx::MatMul_2536", "onnx::MatMul_2636"); },
       1, "no tensor onnx::MatMul_2536"},
      {"no default voice",
       [](auto& f) {
         f.remove(voice);
         f.remove("assets/system_ref_audio.wav");
       },
       0, "warning no default voice"},
      {"the default voice is no recording", [](auto& f) { f.write(voice, "<!doctype html>"); }, 1,
       "HT_ref_audio.wav: WAV: no RIFF/WAVE header"},
      {"the default voice is too short", [](auto& f) { f.write(voice, wav(800, 1000)); }, 1,
       "has 0.05 s, which is too short for a voice"},
      {"the default voice is silent", [](auto& f) { f.write(voice, wav(16000, 0)); }, 0,
       "warning assets/HT_ref_audio.wav is silent"},
      {"a download goes on", [](auto& f) { f.write("model-00001-of-00004.safetensors.incomplete", "x"); }, 0,
       "is still being downloaded: there is model-00001-of-00004.safetensors.incomplete"}};
  return all;
}

} // namespace

TEST_CASE("a whole folder passes, part by part") {
  const auto text = checked(whole(), 0);
  for (const auto* line :
       {"ok      apm: ", "ok      llm: 36 tensors", "ok      resampler: 13 tensors",
        "ok      audio_projection_layer: 4 tensors", "ok      vpm: 37 tensors",
        "ok      tts: ", "ok      campplus.onnx: every operator is known",
        "ok      default voice: assets/HT_ref_audio.wav, 6.02 s", "it would run: 0 faults, 0 warnings, "})
    CHECK_THAT(text, Catch::Contains(line));
}

TEST_CASE("the models in the repository pass") {
  for (const auto& [model, generation] : {std::pair{"models/nano", "older"}, std::pair{"models/tiny-omni", "causal"}})
    CHECK_THAT(checked(model, 0), Catch::Contains("of the " + std::string(generation) + " generation") &&
                                      Catch::Contains("it would run: 0 faults, 0 warnings, "));
  CHECK_THAT(checked("models/nano", 0), Catch::Contains("hidden_size 256 (4096)"));
}

TEST_CASE("the published sizes have the tensors that are told of the published files") {
  std::map<std::string, int> counts;
  for (const auto& tensor : init::plan_tensors(init::find_preset("minicpm-o-4.5").config))
    ++counts[tensor.name.substr(0, tensor.name.find('.'))];
  CHECK(counts ==
        std::map<std::string, int>{
            {"llm", 399}, {"vpm", 437}, {"resampler", 13}, {"apm", 367}, {"audio_projection_layer", 4}, {"tts", 194}});
}

TEST_CASE("each planted fault is found and named") {
  CHECK(faults().size() >= 30);
  for (const auto& fault : faults()) {
    INFO(fault.what);
    const linked_folder folder(whole());
    fault.plant(folder);
    const auto text = checked(folder.path(), fault.status);
    CHECK_THAT(text, Catch::Contains(fault.sentence));
  }
}

TEST_CASE("a model without a row for a control token is not loaded") {
  c10::InferenceMode inference;
  const linked_folder folder("models/tiny-omni");
  const auto loaded = [&] {
    thinker(checkpoint::open(folder.path()), model_config::open(folder.path()), at::kFloat, at::kCPU);
  };
  CHECK_NOTHROW(loaded());
  folder.edit("tokenizer_config.json", [](json& config) {
    auto& added = config["added_tokens_decoder"];
    added["2500"] = added.at("1818");
    added.erase("1818");
  });
  CHECK_THROWS_WITH(loaded(),
                    Catch::Contains("token <|tts_eos|> has the id 2500") && Catch::Contains("only 1862 rows"));
}

TEST_CASE("a talker whose rows are of another width is not loaded") {
  c10::InferenceMode inference;
  const linked_folder folder("models/tiny-omni");
  const std::string entry = R"("tts.emb_code.0.weight":{"dtype":"BF16","shape":)";
  REQUIRE(folder.replace("model.safetensors", entry + "[6562,32]", entry + "[3281,64]"));
  const auto weights = checkpoint::open(folder.path());
  CHECK_THROWS_WITH(talker(weights, model_config::open(folder.path()), quirks{}, at::kFloat, at::kCPU),
                    Catch::Contains("tts.emb_code.0.weight does not fit"));
}

TEST_CASE("folders that hold something else are refused in words") {
  CHECK_THAT(checked("/no/such/folder", 1), Catch::Contains("/no/such/folder there is no such folder"));
  temporary_folder llama;
  llama.write("MiniCPM-o-4_5-Q4_K_M.gguf", "GGUF");
  CHECK_THAT(checked(llama.path(), 1), Catch::Contains("holds GGUF files, which llama.cpp reads"));
  temporary_folder unfinished;
  unfinished.write("model-00001-of-00004.safetensors.incomplete", "");
  CHECK_THAT(checked(unfinished.path(), 1), Catch::Contains("is still being downloaded"));
}

TEST_CASE("the last vision layer may be missing where it is not used, and only there") {
  const linked_folder folder(whole());
  CHECK_THAT(checked(folder.path(), 0), Catch::Contains("vpm: 37 tensors"));
  config_with(folder, "/drop_vision_last_layer", false);
  CHECK_THAT(checked(folder.path(), 1), Catch::Contains("there is no tensor vpm.encoder.layers.2."));
}

TEST_CASE("copies as people have them pass: a cache with links into blobs, and a path in any script") {
  temporary_folder folder;
  const auto cache = folder.path() / "models--openbmb--MiniCPM-o-4_5", snapshot = cache / "snapshots" / "503e754207";
  const auto elsewhere = folder.path() / "Größe 1 (Kopie) 模型";
  create_directories(cache / "blobs");
  int blobs = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(whole())) {
    if (entry.is_directory()) continue;
    const auto name = std::filesystem::relative(entry.path(), whole());
    const auto blob = cache / "blobs" / std::to_string(blobs++);
    create_directories((snapshot / name).parent_path());
    create_directories((elsewhere / name).parent_path());
    create_hard_link(entry.path(), blob);
    create_hard_link(entry.path(), elsewhere / name);
    create_symlink(std::filesystem::relative(blob, (snapshot / name).parent_path()), snapshot / name);
  }
  CHECK_THAT(checked(snapshot, 0), Catch::Contains("0 faults, 0 warnings"));
  CHECK_THAT(checked(elsewhere, 0), Catch::Contains("0 faults, 0 warnings"));
  const auto weights = checkpoint::open(elsewhere);
  CHECK(talker::open(weights, model_config::open(elsewhere), {}, at::kFloat, at::kCPU) != nullptr);
}

TEST_CASE("a link to nothing is not taken for a file that is not there") {
  const linked_folder folder(whole());
  for (const auto* name : {"tokenizer.json", "model.safetensors.index.json"}) {
    folder.remove(name);
    create_symlink("../../blobs/gone", folder.path() / name);
  }
  CHECK_THROWS_WITH(tokenizer::open(folder.path()), Catch::Contains("tokenizer.json: is a link to ../../blobs/gone"));
  CHECK_THROWS_WITH(checkpoint::open(folder.path()), Catch::Contains("index.json: is a link to ../../blobs/gone"));
  CHECK_THAT(checked(folder.path(), 1), Catch::Contains("FAULT   tokenizer.json is a link to"));
}

TEST_CASE("assets may lie elsewhere") {
  const linked_folder folder(whole());
  std::filesystem::remove_all(folder.path() / "assets");
  CHECK_THAT(checked(folder.path(), 0), Catch::Contains("--assets here, worker.assets for the server"));
  check::check_options options;
  options.settings.worker.assets = whole().string();
  CHECK_THAT(checked(folder.path(), 0, options), Catch::Contains("default voice: ") && Catch::Contains("0 warnings"));
}

TEST_CASE("sizes and hashes are those of the pinned revision") {
  const linked_folder folder(whole());
  folder.edit("config.json", [](json& config) { config.erase("made_by"); });
  CHECK_THAT(checked(folder.path(), 0), Catch::Contains("note    assets/token2wav/flow.pt has ") &&
                                            Catch::Contains("in revision 503e754 it has 623466603"));
  auto yaml = folder.read("assets/token2wav/flow.yaml");
  yaml.resize(1099, '\n');
  folder.write("assets/token2wav/flow.yaml", yaml);
  CHECK_THAT(checked(folder.path(), 0, {.hash = true}),
             Catch::Contains("warning assets/token2wav/flow.yaml has the size but not the SHA-256"));
}

TEST_CASE("the published vocabulary is known by its ids") {
  const std::filesystem::path full = "tests/data/goldens/thinker/tokenizer_full";
  temporary_folder folder;
  folder.write("config.json", R"({"vocab_size": 151748})");
  std::filesystem::copy(full / "tokenizer_config.json", folder.path());
  auto files = text::read_vocabulary_and_merges(full);
  const auto result = [&] {
    init::write_tokenizer_json(folder.path() / "tokenizer.json", files);
    check::findings found;
    check::check_tokenizer({folder.path(), folder.path()}, found);
    std::string text;
    for (const auto& one : found.all()) text += one.what + "\n";
    CHECK(found.count(check::severity::fault) == (text.find("gives the recorded ids") == std::string::npos ? 4 : 0));
    return text;
  };
  // Keeps only some of the merges, like an older file.
  CHECK_THAT(result(), Catch::Contains("has 5001 merges, published are 151387") &&
                           Catch::Contains("你好，世界！ gets the ids 160 121 254 161 98 121 3837 3490 244 163 243 234 "
                                           "1540 223, published is 108386 3837 99489 6313"));
  const auto settings = json::parse(contents_of(full / "tokenizer_config.json"));
  for (const auto& [id, token] : settings.at("added_tokens_decoder").items())
    files.added.push_back({token.at("content"), std::stoll(id), token.at("special")});
  text::add_missing_merges(files);
  CHECK_THAT(result(), Catch::Contains("the tokenizer has its control tokens and gives the recorded ids"));
}

TEST_CASE("a number that is none is found by reading all of them") {
  const linked_folder folder(whole());
  auto weights = folder.read(shard(0));
  weights.replace(weights.size() - 2, 2, "\xc0\x7f"); // NaN in bfloat16
  folder.write(shard(0), weights);
  check::findings found;
  check::check_numbers({folder.path(), folder.path()}, found);
  CHECK(found.count(check::severity::fault) == 1);
}

TEST_CASE("with --run it listens and speaks") {
  check::check_options options;
  options.run = true;
  options.settings.engine.context_tokens = 2048;
  CHECK_THAT(checked(whole(), 0, options), Catch::Contains("it is loaded") && Catch::Contains("a second of silence") &&
                                               Catch::Contains("asked to say one to ten"));
}
