#include "inference/model_config.hpp"

#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace parley::inference;
using parley::tests::temporary_folder;

TEST_CASE("the tiny configuration is read as it is") {
  auto c = model_config::open("tests/data/checkpoints/tiny");
  CHECK(c.name == "tiny");
  CHECK(c.llm.hidden_size == 256);
  CHECK(c.llm.head_dim == 48);
  CHECK(c.llm.kv_heads == 2);
  CHECK(c.llm.rope_theta == 1e6);
  CHECK(c.vision.layers == 2); // of three, the last one is dropped
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
  folder.write("config.json", R"({"vision_config": {}, "rope_theta": null})");
  auto c = model_config::open(folder.path());
  CHECK(c.llm.vocab_size == 151936);
  CHECK(c.llm.rope_theta == 10000.0);
  CHECK(c.vision.layers == 26);
  CHECK(c.vision.batch_size == 16);
  CHECK(c.audio.layers == 24);
  CHECK_FALSE(c.tts.present);
}

TEST_CASE("the processor's file goes before the model's on images") {
  temporary_folder folder;
  folder.write("config.json", R"({"slice_config": {"max_slice_nums": 4}, "use_image_id": true})");
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
  folder.write("config.json", "[]");
  CHECK_THROWS_WITH(model_config::open(folder.path()), Catch::Contains("config.json"));
}
