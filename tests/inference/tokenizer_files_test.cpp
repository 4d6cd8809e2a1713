#include "inference/text/tokenizer_files.hpp"

#include "inference/init/tokenizer_json.hpp"
#include "inference/text/missing_merges.hpp"
#include "inference/text/tokenizer.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <functional>

using namespace parley::inference;
using nlohmann::json;
using parley::tests::temporary_folder;
using ids_type = std::vector<token_id>;

namespace {

const std::filesystem::path full_folder = "tests/data/goldens/thinker/tokenizer_full";

const tokenizer& full() {
  static const auto t = tokenizer::open(full_folder);
  return t;
}

/// The whole vocabulary, as in `tokenizer.json`.
text::tokenizer_files full_files() {
  auto files = text::read_vocabulary_and_merges(full_folder);
  const auto settings = json::parse(std::ifstream(full_folder / "tokenizer_config.json"));
  for (const auto& [id, token] : settings.at("added_tokens_decoder").items())
    files.added.push_back({token.at("content"), std::stoll(id), token.at("special")});
  text::add_missing_merges(files);
  return files;
}

/// Compares with a file whose lines are ["text", [ids]].
int count_differences(const tokenizer& mine, const std::filesystem::path& file, int& compared) {
  std::ifstream lines(file);
  int different = 0;
  for (std::string line; std::getline(lines, line); ++compared) {
    const auto recorded = json::parse(line);
    const auto text = recorded.at(0).get<std::string>();
    if (mine.encode(text) == recorded.at(1).get<ids_type>()) continue;
    if (++different <= 10) UNSCOPED_INFO("differs: " << line << "\nmine: " << json(mine.encode(text)).dump());
  }
  return different;
}

/// Writes a small `tokenizer.json` with 256 bytes, some merges and added tokens, modified by `change`.
void write_small(const temporary_folder& folder, const std::function<void(json&)>& change) {
  text::tokenizer_files files = text::read_vocabulary_and_merges("tests/data/checkpoints/tiny");
  files.added = {{"<unk>", 1756, true}, {"<|im_end|>", 1759, true}, {"<think>", 1781, false}};
  init::write_tokenizer_json(folder.path() / "tokenizer.json", files);
  auto root = json::parse(std::ifstream(folder.path() / "tokenizer.json"));
  change(root);
  folder.write("tokenizer.json", root.dump());
  folder.write("tokenizer_config.json", R"({"eos_token": "<|im_end|>", "unk_token": {"content": "<unk>"}})");
}

} // namespace

TEST_CASE("ids recorded from the published folder") {
  CHECK(full().encode("你好，世界！") == ids_type{108386, 3837, 99489, 6313});
  CHECK(full().encode("混合") == ids_type{105063});
  CHECK(full().encode("前缀") == ids_type{24562, 103630});
  CHECK(full().merges() == 151387);
  CHECK(full().derived_merges() == 146386);
}

TEST_CASE("random texts in many scripts have the ids that Hugging Face's tokenizers gives them") {
  int compared = 0;
  CHECK(count_differences(full(), "tests/data/tokenizer/strings.jsonl", compared) == 0);
  CHECK(compared == 1000);
}

// Run by hand, with a folder that make_strings.py wrote and a tokenizer_config.json: PARLEY_STRINGS=FOLDER
TEST_CASE("as many texts as a folder holds, with its tokenizer.json") {
  const auto* folder = std::getenv("PARLEY_STRINGS");
  if (folder == nullptr) return;
  const auto mine = tokenizer::open(folder);
  CHECK(mine.derived_merges() == 0);
  int compared = 0;
  CHECK(count_differences(mine, std::filesystem::path(folder) / "strings.jsonl", compared) == 0);
  WARN(compared << " texts compared");
}

TEST_CASE("tokenizer.json is the same tokenizer as vocabulary and merges") {
  temporary_folder folder;
  init::write_tokenizer_json(folder.path() / "tokenizer.json", full_files());
  std::filesystem::copy(full_folder / "tokenizer_config.json", folder.path());
  const auto whole = tokenizer::open(folder.path());
  CHECK(whole.size() == full().size());
  CHECK(whole.merges() == 151387);
  CHECK(whole.derived_merges() == 0);
  CHECK(whole.added_tokens() == full().added_tokens());
  CHECK(whole.bad_token_ids().size() == full().bad_token_ids().size());
  int compared = 0;
  CHECK(count_differences(whole, "tests/data/tokenizer/strings.jsonl", compared) == 0);
}

TEST_CASE("merges are pairs or strings") {
  temporary_folder pairs, strings;
  write_small(pairs, [](json&) {});
  write_small(strings, [](json& root) {
    for (auto& merge : root["model"]["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  });
  const auto a = tokenizer::open(pairs.path()), b = tokenizer::open(strings.path());
  CHECK(a.merges() == 1500);
  CHECK(a.encode("the same words<think>") == b.encode("the same words<think>"));
  CHECK(a.is_special(1756));
  CHECK_FALSE(a.is_special(1781));
}

TEST_CASE("tokenizer.json goes before merges.txt") {
  temporary_folder folder;
  write_small(folder, [](json&) {});
  folder.write("vocab.json", "{}");
  folder.write("merges.txt", "");
  CHECK(tokenizer::open(folder.path()).merges() == 1500);
}

TEST_CASE("another kind of tokenizer is refused in words") {
  auto refused = [](const std::function<void(json&)>& change, const std::string& words) {
    temporary_folder folder;
    write_small(folder, change);
    CHECK_THROWS_WITH(tokenizer::open(folder.path()), Catch::Contains("tokenizer.json") && Catch::Contains(words));
  };
  refused([](json& root) { root["normalizer"] = nullptr; }, "its normalizer is none, and only NFC is implemented");
  refused([](json& root) { root["normalizer"]["type"] = "NFKC"; }, "its normalizer is NFKC");
  refused([](json& root) { root["pre_tokenizer"] = {{"type", "ByteLevel"}}; }, "not Split and ByteLevel in sequence");
  refused([](json& root) { root["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = R"(\p{N}{1,3})"; },
          "splits by another pattern than Qwen2's");
  refused([](json& root) { root["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }, "does not isolate");
  refused([](json& root) { root["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; }, "adds a space");
  refused([](json& root) { root["model"]["type"] = "Unigram"; }, "its model is Unigram, and only BPE is implemented");
  refused([](json& root) { root["model"]["ignore_merges"] = true; }, "model.ignore_merges is set");
  refused([](json& root) { root["model"]["byte_fallback"] = true; }, "model.byte_fallback is set");
  refused([](json& root) { root["model"]["dropout"] = 0.1; }, "model.dropout is set");
  refused([](json& root) { root["model"].erase("merges"); }, "merges");
  refused([](json& root) { root["model"]["merges"][3] = {"a"}; }, "neither a pair nor a string");
  refused([](json& root) { root["model"]["merges"][3] = {"no", "such"}; }, "is not in tokenizer.json");
  refused([](json& root) { root["decoder"] = {{"type", "Metaspace"}}; }, "its decoder is Metaspace");
  refused([](json& root) { root["post_processor"] = {{"type", "TemplateProcessing"}}; }, "TemplateProcessing");
  refused([](json& root) { root["added_tokens"][1]["lstrip"] = true; }, "lstrip of added token <|im_end|>");
  refused([](json& root) { root = json::array(); }, "tokenizer.json");
}

TEST_CASE("two files that tell one id differently are refused") {
  temporary_folder folder;
  write_small(folder, [](json&) {});
  folder.write("tokenizer_config.json", R"({"added_tokens_decoder": {"1759": {"content": "<|other|>"}}})");
  CHECK_THROWS_WITH(tokenizer::open(folder.path()), Catch::Contains("\"<|other|>\" here and \"<|im_end|>\""));
}

TEST_CASE("missing merges are derived only where ids are ranks") {
  auto files = text::read_vocabulary_and_merges("tests/data/checkpoints/tiny");
  const auto whole = files.merges;
  files.added = {{"<unk>", 1756, true}};
  CHECK(text::add_missing_merges(files) == 0);
  files.merges.clear();
  text::add_missing_merges(files);
  CHECK(files.merges == whole);
  std::swap(files.merges.front(), files.merges.back());
  files.merges.pop_back();
  CHECK(text::add_missing_merges(files) == 0);
}
