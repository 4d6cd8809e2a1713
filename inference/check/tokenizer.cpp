#include "inference/text/tokenizer.hpp"

#include "inference/check/checks.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace parley::inference::check {

namespace {

constexpr token_id published_tokens = 151748;
constexpr std::size_t published_merges = 151387;
constexpr auto again = "fetch tokenizer.json and tokenizer_config.json of openbmb/MiniCPM-o-4_5 again";

/// The control tokens of prompts and the end tokens of answers, with their published ids.
constexpr std::pair<const char*, token_id> control_tokens[] = {
    {"<|endoftext|>", 151643}, {"<|im_start|>", 151644},    {"<|im_end|>", 151645},    {"<image>", 151669},
    {"</image>", 151670},      {"<slice>", 151679},         {"</slice>", 151680},      {"<unit>", 151683},
    {"</unit>", 151684},       {"<|audio_start|>", 151697}, {"<|audio|>", 151698},     {"<|audio_end|>", 151699},
    {"<|spk_bos|>", 151700},   {"<|tts_bos|>", 151703},     {"<|tts_eos|>", 151704},   {"<|listen|>", 151705},
    {"<|speak|>", 151706},     {"<|turn_eos|>", 151717},    {"<|chunk_eos|>", 151718}, {"<|tts_pad|>", 151722},
    {"<unk>", 128244}};

/// Ids that others recorded with the published folder.
const std::pair<const char*, std::vector<token_id>> recorded[] = {
    {"你好，世界！", {108386, 3837, 99489, 6313}}, {"混合", {105063}}, {"前缀", {24562, 103630}}};

std::string listed(const std::vector<token_id>& ids) {
  std::string text;
  for (auto id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}

} // namespace

void check_tokenizer(const folders& where, findings& out) try {
  const auto words = tokenizer::open(where.model);
  const auto config = config_of(where.model);
  const auto rows = config.is_object() ? config.value("vocab_size", token_id{0}) : 0;
  // A folder made by init-model may have the published vocabulary, or bytes without merges.
  const bool published = words.size() == published_tokens && (!is_made(config) || words.merges() > 0);
  const auto faults = out.count(severity::fault);
  for (const auto& [token, id] : control_tokens) {
    const auto found = words.find(token);
    if (!found)
      out.fault(std::string("the tokenizer has no token ") + token, again);
    else if (published && *found != id)
      out.fault(std::string("token ") + token + " has the id " + std::to_string(*found) + ", published is " +
                    std::to_string(id),
                again);
    else if (rows > 0 && *found >= rows)
      out.fault(std::string("token ") + token + " has the id " + std::to_string(*found) +
                    ", which has no row in the model",
                again);
  }
  if (!published) {
    out.note("the tokenizer has " + std::to_string(words.size()) + " tokens, other ones than the published " +
             std::to_string(published_tokens));
  } else {
    if (words.merges() != published_merges)
      out.fault("the tokenizer has " + std::to_string(words.merges()) + " merges, published are " +
                    std::to_string(published_merges),
                again);
    for (const auto& [text, ids] : recorded)
      if (const auto mine = words.encode(text); mine != ids)
        out.fault(std::string(text) + " gets the ids " + listed(mine) + ", published is " + listed(ids), again);
  }
  if (words.derived_merges() > 0)
    out.note(std::to_string(words.derived_merges()) + " merges stand in no file and were derived from the ids", again);
  if (words.bad_token_ids().empty() && published)
    out.warn("tokenizer_config.json has no bad_token_ids, the list of tokens that are never sampled", again);
  if (out.count(severity::fault) == faults)
    out.pass("the tokenizer has its control tokens" + std::string(published ? " and gives the recorded ids" : ""));
} catch (const std::exception& e) {
  out.fault(e.what(), again);
}

} // namespace parley::inference::check
