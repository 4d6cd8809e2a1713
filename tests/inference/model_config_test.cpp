#include "inference/formats/model_config.hpp"

#include "inference/voice/default_voice_file.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace parley::inference;
using parley::tests::temporary_folder;

TEST_CASE("the tiny configuration is read as it is") {
  auto c = model_config::open("tests/data/checkpoints/tiny");
  CHECK(c.name == "tiny");
  CHECK(c.llm.hidden_size == 256);
  CHECK(c.llm.head_dim == 48);
  CHECK(c.llm.kv_heads == 2);
  CHECK(c.llm.rope_theta == 1e6);
  CHECK(c.vision.layers == 2); // the last of three is dropped
  CHECK(c.vision.resampler_heads == 2);
  CHECK(c.audio.hidden_size == 64);
  CHECK(c.audio.pool_step == 5);
  CHECK(c.audio.max_positions == 1500);
  CHECK(c.tts.present);
  CHECK(c.tts.normalize_projected_hidden);
  CHECK(c.stream_input);
}

TEST_CASE("absent keys have the defaults of the reference's classes") {
  temporary_folder folder;
  folder.write("config.json", R"({"vision_config": {}, "rope_theta": 1e5})");
  auto c = model_config::open(folder.path());
  CHECK(c.llm.vocab_size == 151936);
  CHECK(c.llm.rope_theta == 1e5);
  CHECK(c.vision.layers == 26);
  CHECK(c.vision.batch_size == 16);
  CHECK(c.audio.layers == 24);
  CHECK_FALSE(c.tts.present);
}

TEST_CASE("the processor's file goes before the model's on images") {
  temporary_folder folder;
  folder.write("config.json", R"({"slice_config": {"max_slice_nums": 4}, "use_image_id": true, "rope_theta": 1e6})");
  CHECK(model_config::open(folder.path()).vision.max_slice_nums == 4);
  folder.write("preprocessor_config.json",
               R"({"max_slice_nums": 2, "use_image_id": false, "norm_mean": [0.1, 0.2, 0.3]})");
  auto c = model_config::open(folder.path());
  CHECK(c.vision.max_slice_nums == 2);
  CHECK_FALSE(c.vision.use_image_id);
  CHECK(c.vision.norm_mean[2] == 0.3);
}

TEST_CASE("nonsense is refused with file and key") {
  temporary_folder folder;
  CHECK_THROWS_WITH(model_config::open(folder.path()), Catch::Contains("config.json"));
  folder.write("config.json", R"({"hidden_size": "wide"})");
  CHECK_THROWS_WITH(model_config::open(folder.path()), Catch::Contains("hidden_size") && Catch::Contains("type"));
  folder.write("config.json", R"({"audio_config": {"d_model": 0}})");
  CHECK_THROWS_WITH(model_config::open(folder.path()), Catch::Contains("audio_config.d_model"));
  const auto nested = [&](std::size_t levels) {
    folder.write("config.json", R"({"rope_theta": 1e6, "x": "[[\"[", "hidden_act": )" + std::string(levels, '[') +
                                    std::string(levels, ']') + "}");
    return folder.path();
  };
  CHECK_THROWS_WITH(model_config::open(nested(1'000'000)), Catch::Contains("config.json: is nested too deeply"));
  CHECK_THROWS_WITH(model_config::open(nested(64)), Catch::Contains("config.json: is nested too deeply"));
  CHECK_THROWS_WITH(model_config::open(nested(63)), Catch::Contains("hidden_act is [[["));
  folder.write("config.json", "[]");
  CHECK_THROWS_WITH(model_config::open(folder.path()), Catch::Contains("config.json"));
}

namespace {

using nlohmann::json;

json published() {
  return json::parse(std::ifstream("tests/data/checkpoints/tiny/config.json"));
}

model_config opened(const json& config) {
  temporary_folder folder;
  folder.write("config.json", config.dump());
  return model_config::open(folder.path());
}

} // namespace

TEST_CASE("what would make the result wrong is refused in a sentence that names the key") {
  auto refused = [](const char* pointer, json value, const std::string& words) {
    auto config = published();
    config[json::json_pointer(pointer)] = std::move(value);
    INFO(pointer);
    CHECK_THROWS_WITH(opened(config), Catch::Contains("config.json: ") && Catch::Contains(words));
  };
  refused("/version", "4.6", "this is MiniCPM-o 4.6, another model than MiniCPM-o 4.5");
  refused("/version", 4.6, "this is MiniCPM-o 4.6, another model than MiniCPM-o 4.5");
  refused("/text_model_type", "qwen3_5_moe_text", "(text_model_type qwen3_5_moe_text), another model");
  refused("/version", "2.6", "version is 2.6, and only MiniCPM-o 4.5 is implemented");
  refused("/model_type", "qwen3", "model_type is qwen3: this is no MiniCPM-o");
  refused("/rope_theta", nullptr, "rope_theta is missing");
  refused("/rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}, "rope_scaling.rope_type is yarn");
  refused("/rope_scaling", {{"type", "linear"}}, "rope_scaling.type is linear");
  refused("/use_sliding_window", true, "use_sliding_window is true");
  refused("/quantization_config", {{"quant_method", "bitsandbytes"}}, "quant_method is bitsandbytes");
  refused("/quantization_config", {{"quant_method", "awq"}, {"bits", 8}}, "quantization_config.bits is 8");
  refused("/quantization_config", {{"quant_method", "awq"}, {"version", "gemv"}}, "version is gemv");
  refused("/quantization_config", {{"quant_method", "awq"}, {"group_size", 7}}, "group_size is 7");
  refused("/hidden_act", "gelu", "hidden_act is gelu, and only silu");
  refused("/attention_bias", true, "attention_bias is true");
  refused("/tie_word_embeddings", true, "tie_word_embeddings is true");
  refused("/vision_config/hidden_act", "gelu", "vision_config.hidden_act is gelu");
  refused("/vision_config/model_type", "clip", "vision_config.model_type is clip");
  refused("/audio_config/activation_function", "relu", "audio_config.activation_function is relu");
  refused("/tts_config/condition_type", "tokens_and_hidden_merge",
          "tts_config.condition_type is tokens_and_hidden_merge");
  refused("/tts_config/projector_type", "linear", "tts_config.projector_type is linear");
  refused("/tts_config/backbone_model", "qwen3", "tts_config.backbone_model is qwen3");
  refused("/tts_config/num_vq", 4, "tts_config.num_vq is 4, and only 1");
  refused("/tts_config/interleaved", true, "tts_config.interleaved is true");
  refused("/tts_config/attention_type", "sideways", "tts_config.attention_type is sideways");
}

TEST_CASE("what says the same in other words is taken") {
  auto config = published();
  config["version"] = 4.5;
  config["rope_scaling"] = {{"rope_type", "default"}};
  CHECK(opened(config).llm.rope_theta == 1e6);
  config.erase("rope_theta");
  config["rope_parameters"] = {{"rope_theta", 5000000}, {"rope_type", "default"}}; // as transformers 5 writes it
  CHECK(opened(config).llm.rope_theta == 5e6);
  config["tts_config"]["num_vq"] = 4;
  config["init_tts"] = false; // ignored
  CHECK_FALSE(opened(config).has_tts);
  config["quantization_config"] = {{"quant_method", "awq"}, {"bits", 4}, {"group_size", 64}, {"version", "gemm"}};
  CHECK(opened(config).stored.awq);
  CHECK(opened(config).stored.group_size == 64);
}

TEST_CASE("a model in a cache has the name that it was fetched by") {
  temporary_folder folder;
  for (const auto& [place, name] :
       {std::pair("models--openbmb--MiniCPM-o-4_5/snapshots/503e754207", "MiniCPM-o-4_5"),
        std::pair("OpenBMB/MiniCPM-o-4___5", "MiniCPM-o-4.5"), std::pair("My models/Größe 1", "Größe 1")}) {
    std::filesystem::create_directories(folder.path() / place);
    folder.write(std::string(place) + "/config.json", published().dump());
    CHECK(model_config::open(folder.path() / place).name == name);
    CHECK(model_config::open(folder.path() / place / "").name == name);
  }
}

TEST_CASE("a folder that holds something else is refused in words") {
  CHECK_THROWS_WITH(model_config::open("/no/such/folder"), Catch::Contains("there is no such folder"));
  temporary_folder folder;
  folder.write("model-Q4_K_M.gguf", "GGUF");
  CHECK_THROWS_WITH(model_config::open(folder.path()), Catch::Contains("holds GGUF files"));
  folder.write("config.json", "version https://git-lfs.github.com/spec/v1\n");
  CHECK_THROWS_WITH(model_config::open(folder.path()), Catch::Contains("config.json: is a pointer of Git LFS"));
}

TEST_CASE("the default voice is the first of three recordings") {
  temporary_folder folder;
  CHECK_FALSE(speech::default_voice_file(folder.path()));
  std::filesystem::create_directory(folder.path() / "assets");
  for (const auto* name : {"system_ref_audio.wav", "HT_ref_audio.wav", "default_voice.wav"}) {
    folder.write(std::string("assets/") + name, "");
    CHECK(speech::default_voice_file(folder.path()) == folder.path() / "assets" / name);
  }
}
