#include "inference/decoding/answer_decoder.hpp"

#include <algorithm>

namespace parley::inference::chat {

answer_ids answer_ids::of(const tokenizer& tokens) {
  answer_ids ids;
  ids.terminators = {tokens.id("<|tts_eos|>"), tokens.id("<|im_end|>"), tokens.unk()};
  // Signs that have no token of their own become <unk>, as in the reference.
  for (auto sign : {":",  "：", "；", "#", "“",  "”",  "‘", "’", "@", "*", "【", "】",
                    "「", "」", "(",  ")", "（", "）", "[", "]", "&", "/", "$"})
    ids.unspeakable.push_back(tokens.id(sign));
  ids.unspeakable.insert(ids.unspeakable.end(), tokens.bad_token_ids().begin(), tokens.bad_token_ids().end());
  return ids;
}

answer_decoder::answer_decoder(tokenizer tokens, const quirks& how, int max_new_tokens)
    : text_(std::move(tokens), !how.chat_text_shows_special_tokens), max_new_tokens_(max_new_tokens) {}

std::span<const token_id> answer_decoder::seen() const {
  auto count = tokens_.size();
  auto in_chunk = count < first_chunk_tokens ? count : (count - first_chunk_tokens) % chunk_tokens;
  auto earlier = std::min<std::size_t>(count - in_chunk, penalty_window);
  return std::span(tokens_).last(in_chunk + earlier);
}

void answer_decoder::sampled(token_id token, std::span<const token_id> terminators) {
  if (std::find(terminators.begin(), terminators.end(), token) != terminators.end()) {
    finished_ = true;
    return;
  }
  tokens_.push_back(token);
  full_ = static_cast<int>(tokens_.size()) >= max_new_tokens_;
}

std::string answer_decoder::take_text() {
  auto fresh = text_.push(std::span(tokens_).subspan(told_));
  told_ = tokens_.size();
  if (finished() && !std::exchange(flushed_, true)) fresh += text_.finish();
  return fresh;
}

} // namespace parley::inference::chat
