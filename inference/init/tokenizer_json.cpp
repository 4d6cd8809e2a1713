#include "inference/init/tokenizer_json.hpp"

#include "inference/init/text_file.hpp"

#include <nlohmann/json.hpp>

namespace parley::inference::init {

namespace {

using nlohmann::json;

json byte_level() {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
}

json added_json(const std::vector<text::added_token>& tokens) {
  json result = json::array();
  for (const auto& token : tokens)
    result.push_back({{"id", token.id},
                      {"content", token.content},
                      {"single_word", false},
                      {"lstrip", false},
                      {"rstrip", false},
                      {"normalized", false},
                      {"special", token.special}});
  return result;
}

} // namespace

void write_tokenizer_json(const std::filesystem::path& file, const text::tokenizer_files& files) {
  json vocabulary = json::object();
  for (const auto& [token, id] : files.vocabulary) vocabulary[token] = id;
  json merges = json::array();
  for (const auto& [left, right] : files.merges) merges.push_back({left, right});
  const json split{
      {"type", "Split"}, {"pattern", {{"Regex", text::known_pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  const json root{{"version", "1.0"},
                  {"truncation", nullptr},
                  {"padding", nullptr},
                  {"added_tokens", added_json(files.added)},
                  {"normalizer", {{"type", "NFC"}}},
                  {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, byte_level()}}}},
                  {"post_processor", byte_level()},
                  {"decoder", byte_level()},
                  {"model",
                   {{"type", "BPE"},
                    {"dropout", nullptr},
                    {"unk_token", nullptr},
                    {"continuing_subword_prefix", ""},
                    {"end_of_word_suffix", ""},
                    {"fuse_unk", false},
                    {"byte_fallback", false},
                    {"ignore_merges", false},
                    {"vocab", std::move(vocabulary)},
                    {"merges", std::move(merges)}}}};
  write_text(file, root.dump());
}

} // namespace parley::inference::init
