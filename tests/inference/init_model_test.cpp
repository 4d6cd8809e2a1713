#include "inference/init/init_model.hpp"

#include "inference/audio/encoder.hpp"
#include "inference/checkpoint.hpp"
#include "inference/init/presets.hpp"
#include "inference/init/tensor_plan.hpp"
#include "inference/model_config.hpp"
#include "inference/tokenizer.hpp"
#include "tests/support/temporary_folder.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

using namespace parley::inference;

TEST_CASE("the tiny preset has the names, shapes and types of the recorded tiny checkpoint") {
  parley::tests::temporary_folder folder;
  init_model("tiny", 1, folder.path());
  auto mine = checkpoint::open(folder.path());
  auto recorded = checkpoint::open("tests/data/checkpoints/tiny");
  CHECK(mine.names() == recorded.names());
  for (const auto& name : recorded.names()) {
    INFO(name);
    REQUIRE(mine.has(name));
    CHECK(mine.stored(name).sizes() == recorded.stored(name).sizes());
    CHECK(mine.stored(name).scalar_type() == recorded.stored(name).scalar_type());
    CHECK(mine.tensor(name, at::kFloat).isfinite().all().item<bool>());
  }
  auto config = model_config::open(folder.path());
  auto known = model_config::open("tests/data/checkpoints/tiny");
  CHECK(config.llm.vocab_size == known.llm.vocab_size);
  CHECK(config.tts.audio_bos_token_id == known.tts.audio_bos_token_id);
  CHECK(config.tts.text_eos_token_id == known.tts.text_eos_token_id);
  auto w = mine.tensor("llm.model.layers.0.self_attn.q_proj.weight", at::kFloat);
  CHECK(w.std().item<double>() == Approx(1.0 / 16).epsilon(0.02)); // 256 inputs
  CHECK(std::abs(w.mean().item<double>()) < 0.002);
}

TEST_CASE("its tokenizer has the added tokens of the recorded one and writes bytes") {
  parley::tests::temporary_folder folder;
  init_model("tiny", 1, folder.path());
  auto mine = tokenizer::open(folder.path());
  auto recorded = tokenizer::open("tests/data/checkpoints/tiny");
  CHECK(mine.added_tokens() == recorded.added_tokens());
  CHECK(mine.size() == recorded.size());
  for (const auto& [text, id] : recorded.added_tokens()) CHECK(mine.is_special(id) == recorded.is_special(id));
  CHECK(mine.eos() == recorded.eos());
  CHECK(mine.id("!") == 0);
  CHECK(mine.encode("ab\xE4\xBD\xA0<unit>").size() == 6);
  CHECK(mine.decode(mine.encode("any text \xE4\xBD\xA0")) == "any text \xE4\xBD\xA0");
}

TEST_CASE("the real preset has the real ids and sizes") {
  auto real = init::find_preset("minicpm-o-4.5");
  CHECK(real.config["vocab_size"] == 151748);
  CHECK(real.config["eos_token_id"] == 151645);
  CHECK(real.config["tts_config"]["audio_bos_token_id"] == 151687);
  CHECK(real.config["tts_config"]["text_eos_token_id"] == 151692);
  CHECK(real.unk_id == 128244);
  std::uint64_t bytes = 0;
  for (const auto& t : init::plan_tensors(real.config)) bytes += 2 * t.values();
  CHECK(bytes > 17'000'000'000); // about 19 GB with the vocoder
  CHECK(bytes < 19'500'000'000);
}

TEST_CASE("same seed, same weights, however they are cut into shards") {
  parley::tests::temporary_folder one;
  parley::tests::temporary_folder cut;
  parley::tests::temporary_folder other;
  init_model("tiny", 7, one.path());
  init_model("tiny", 7, cut.path(), 1'000'000);
  init_model("tiny", 8, other.path());
  CHECK(std::filesystem::exists(cut.path() / "model.safetensors.index.json"));
  CHECK_FALSE(std::filesystem::exists(cut.path() / "model.safetensors"));
  auto a = checkpoint::open(one.path());
  auto b = checkpoint::open(cut.path());
  auto c = checkpoint::open(other.path());
  REQUIRE(a.names() == b.names());
  for (const auto& name : a.names()) CHECK(at::equal(a.stored(name), b.stored(name)));
  CHECK_FALSE(at::equal(a.stored("llm.lm_head.weight"), c.stored("llm.lm_head.weight")));
}

TEST_CASE("a full folder and an unknown preset are refused") {
  parley::tests::temporary_folder folder;
  folder.write("precious.txt", "x");
  CHECK_THROWS_WITH(init_model("tiny", 1, folder.path()), Catch::Contains("not empty"));
  CHECK_THROWS_AS(init_model("huge", 1, folder.path() / "new"), std::invalid_argument);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "new"));
}
