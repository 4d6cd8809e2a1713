#include "inference/init/init_model.hpp"

#include "inference/audio/encoder.hpp"
#include "inference/formats/checkpoint.hpp"
#include "inference/formats/model_config.hpp"
#include "inference/formats/wav_file.hpp"
#include "inference/init/presets.hpp"
#include "inference/init/sound_plan.hpp"
#include "inference/init/tensor_plan.hpp"
#include "inference/init/voice_graphs.hpp"
#include "inference/talker.hpp"
#include "inference/text/tokenizer.hpp"
#include "inference/voice/campplus.hpp"
#include "inference/voice/default_voice_file.hpp"
#include "tests/support/temporary_folder.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>

using namespace parley::inference;

TEST_CASE("the tiny preset has the names, shapes and types of the recorded tiny checkpoint") {
  parley::tests::temporary_folder folder;
  init_model("tiny", 1, folder.path());
  auto mine = checkpoint::open(folder.path());
  auto recorded = checkpoint::open("tests/data/checkpoints/tiny");
  auto names = mine.names();
  std::erase(names, "tts.model.embed_tokens.weight"); // never read, and not among the recorded names
  CHECK(names == recorded.names());
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
  init_model("tiny", 7, cut.path(), {.shard_bytes = 1'000'000});
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

TEST_CASE("the made networks of the voice have what is told of the published ones") {
  const auto sizes = init::published_sound_sizes();
  std::uint64_t values = 0;
  for (const auto& tensor : init::plan_flow(sizes)) values += tensor.values();
  CHECK(values == 155'802'352);
  values = 0;
  for (const auto& tensor : init::plan_vocoder(sizes)) values += tensor.values();
  CHECK(4 * values > 83'000'000); // in a file of 83,390,254 bytes
  CHECK(4 * values < 83'390'254);

  parley::tests::temporary_folder folder;
  const auto file = folder.path() / "campplus.onnx";
  const auto speaker = init::write_speaker_network(file, sizes, 1);
  CHECK(speaker.nodes() == 3206);
  CHECK(speaker.initializers() == 617);
  const auto read = speech::read_onnx(file);
  CHECK(read.initializers.size() == 617); // no name twice
  CHECK(std::count_if(read.nodes.begin(), read.nodes.end(), [](const auto& node) { return node.op == "Pad"; }) == 52);
  CHECK(std::filesystem::file_size(file) / 100'000 == 283); // the published one has 28,303,423 bytes
  const auto heard = speech::campplus(read).embed(at::rand({120, 80}));
  CHECK(heard.sizes() == at::IntArrayRef{192});
  CHECK(heard.isfinite().all().item<bool>());

  auto carrier = sizes;
  carrier.ear = 64;
  const auto tokenizer = init::write_speech_tokenizer(folder.path() / "speech_tokenizer_v2_25hz.onnx", carrier, 1);
  CHECK(tokenizer.initializers() == 102);
}

TEST_CASE("a made folder speaks in the voice of its recording") {
  parley::tests::temporary_folder folder;
  init_model("tiny", 3, folder.path());
  const auto voice = speech::default_voice_file(folder.path());
  REQUIRE(voice);
  CHECK(voice->filename() == "HT_ref_audio.wav");
  const auto weights = checkpoint::open(folder.path());
  const auto config = model_config::open(folder.path());
  const auto speaker = talker::open(weights, config, {}, at::kFloat, at::kCPU);
  REQUIRE(speaker);
  CHECK(speaker->sound().kind() == speech::token2wav::generation::legacy);
  const auto recording = speech::read_wav_file(*voice);
  CHECK(recording.rate == 16000);
  CHECK(recording.samples.size(1) == 96320);
  CHECK(speaker->sound()
            .ear()
            .hear(recording.samples.slice(1, 0, 16000), recording.rate)
            .speaker.isfinite()
            .all()
            .item<bool>());
}

TEST_CASE("an operator that is not known costs the voice, not the start") {
  parley::tests::temporary_folder folder;
  init_model("tiny", 3, folder.path());
  const auto file = folder.path() / "assets/token2wav/campplus.onnx";
  std::ifstream in(file, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  const auto op = bytes.find("\x22\x07Sigmoid"); // field 4 of a node
  REQUIRE(op != std::string::npos);
  bytes.replace(op + 2, 7, "Sigmund");
  std::ofstream(file, std::ios::binary) << bytes;
  const auto weights = checkpoint::open(folder.path());
  const auto config = model_config::open(folder.path());
  CHECK(talker::open(weights, config, {}, at::kFloat, at::kCPU) == nullptr);
  std::filesystem::remove_all(folder.path() / "assets");
  CHECK(talker::open(weights, config, {}, at::kFloat, at::kCPU) == nullptr);
}
