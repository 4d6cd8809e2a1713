#include "inference/init/byte_tokenizer.hpp"

#include "base/utf8.hpp"
#include "inference/init/text_file.hpp"
#include "inference/init/tokenizer_json.hpp"
#include "inference/text/byte_alphabet.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace parley::inference::init {

namespace {

/// The tokens added to the base vocabulary, in the order of their ids; true = special.
std::vector<std::pair<std::string, bool>> added_tokens() {
  std::vector<std::pair<std::string, bool>> result;
  auto add = [&](bool special, std::initializer_list<const char*> names) {
    for (auto name : names) result.emplace_back(name, special);
  };
  add(true, {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
             "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>",
             "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"});
  add(false, {"<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
              "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"});
  for (auto name : {"image", "ref", "box", "quad", "point", "slice", "image_id", "unit", "answer", "focus", "line",
                    "perception", "source_image", "image_save_to"}) {
    result.emplace_back(std::string("<") + name + ">", true);
    result.emplace_back(std::string("</") + name + ">", true);
  }
  add(true, {"<|audio_start|>", "<|audio|>",     "<|audio_end|>",   "<|spk_bos|>",       "<|spk|>",
             "<|spk_eos|>",     "<|tts_bos|>",   "<|tts_eos|>",     "<|listen|>",        "<|speak|>",
             "<|interrupt|>",   "<|vad_start|>", "<|vad_end|>",     "<|emotion_start|>", "<|emotion_end|>",
             "<|speed_start|>", "<|speed_end|>", "<|pitch_start|>", "<|pitch_end|>",     "<|turn_bos|>",
             "<|turn_eos|>",    "<|chunk_eos|>", "<|chunk_bos|>",   "<|chunk_tts_bos|>", "<|chunk_tts_eos|>",
             "<|tts_pad|>"});
  for (int i = 7; i <= 31; ++i) result.emplace_back("<|timbre_" + std::to_string(i) + "|>", true);
  return result;
}

/// Bytes that print as themselves come first, as in the real vocabulary, so id 0 is "!".
std::vector<std::string> byte_tokens() {
  std::vector<std::string> plain;
  std::vector<std::string> shifted;
  for (unsigned byte = 0; byte < 256; ++byte) {
    auto code = text::character_of(static_cast<unsigned char>(byte));
    std::string token;
    base::utf8::append(code, token);
    (code == byte ? plain : shifted).push_back(token);
  }
  plain.insert(plain.end(), shifted.begin(), shifted.end());
  return plain;
}

nlohmann::json added_entry(const std::string& content, bool special) {
  return {{"content", content}, {"lstrip", false},      {"normalized", false},
          {"rstrip", false},    {"single_word", false}, {"special", special}};
}

} // namespace

text::tokenizer_files byte_tokenizer(std::int64_t base_tokens, std::int64_t unk_id) {
  text::tokenizer_files made;
  std::int64_t id = 0;
  for (auto& token : byte_tokens()) made.vocabulary.emplace_back(std::move(token), id++);
  // The byte alphabet writes a space as "\u0120".
  for (; id < base_tokens; ++id)
    made.vocabulary.emplace_back(id == unk_id ? "<unk>" : "\u0120w" + std::to_string(id), id);

  made.added.push_back({"<unk>", unk_id, true});
  auto next = unk_id < base_tokens ? base_tokens : base_tokens + 1;
  for (const auto& [content, special] : added_tokens()) made.added.push_back({content, next++, special});
  return made;
}

void write_tokenizer(const std::filesystem::path& folder, const text::tokenizer_files& files) {
  nlohmann::json vocabulary = nlohmann::json::object();
  for (const auto& [token, id] : files.vocabulary) vocabulary[token] = id;
  std::string merges;
  for (const auto& [left, right] : files.merges) ((merges += left) += ' ') += right + '\n';
  nlohmann::json added, by_token;
  for (const auto& [content, id, special] : files.added) {
    added[std::to_string(id)] = added_entry(content, special);
    by_token[content] = id;
  }
  nlohmann::json settings{{"tokenizer_class", "MiniCPMOTokenizerFast"},
                          {"add_prefix_space", false},
                          {"clean_up_tokenization_spaces", false},
                          {"errors", "replace"},
                          {"bos_token", "<|im_start|>"},
                          {"eos_token", "<|im_end|>"},
                          {"pad_token", "<|endoftext|>"},
                          {"unk_token", "<unk>"},
                          {"added_tokens_decoder", added},
                          {"bad_token_ids", nlohmann::json::array()}};
  write_text(folder / "vocab.json", vocabulary.dump());
  write_text(folder / "merges.txt", merges);
  write_text(folder / "added_tokens.json", by_token.dump(2));
  write_text(folder / "tokenizer_config.json", settings.dump(2));
  write_tokenizer_json(folder / "tokenizer.json", files);
}

} // namespace parley::inference::init
