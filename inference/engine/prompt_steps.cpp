#include "inference/engine/omni_engine.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

// From `open_duplex` to a cache that holds the prompt: made by the first who asks, shared by all who ask later.
namespace parley::inference {

namespace {

constexpr auto suffix_text = "<|audio_end|><|im_end|>";

} // namespace

/// Whether another session is just being given the same prompt.
bool omni_engine::prompt_is_made(const session& s) const {
  return std::ranges::any_of(sessions_, [&](const auto& entry) {
    const auto& other = *entry.second;
    return &other != &s && other.duplex && other.why == purpose::prompt &&
           (other.at == stage::clips || other.at == stage::prefill) && other.duplex->prompt == s.duplex->prompt;
  });
}

void omni_engine::begin_prompt(session& s) {
  auto& d = *s.duplex;
  if (const auto* kept = prompts_.find(d.prompt)) {
    ++prompt_hits_;
    s.cache = kept->rows.fork();
    know_prompt(s, kept->voice_rows);
    prompt_there(s);
  } else if (prompt_is_made(s)) {
    s.at = stage::same_prompt;
  } else {
    ++prompt_misses_;
    s.at = stage::clips;
    auto voice = d.prompt.voice ? prompts_.heard(d.prompt.voice) : at::Tensor();
    if (!d.prompt.voice || voice.defined()) build_prompt(s, std::move(voice));
  }
}

/// Whoever waited for another one's prompt takes it now; if that one came to nothing, the first of them makes it.
void omni_engine::hand_out_prompts() {
  std::vector<session*> waiting;
  for (const auto& [id, s] : sessions_)
    if (s->at == stage::same_prompt) waiting.push_back(s.get());
  for (auto* s : waiting)
    if (!prompt_is_made(*s)) guarded(*s, [&] { begin_prompt(*s); });
}

/// What the prompt's parts are, once the rows of the voice are known.
void omni_engine::know_prompt(session& s, std::int64_t voice_rows) {
  const auto prefix = std::ssize(s.duplex->prompt.prefix);
  auto suffix = model_->text().encode(suffix_text);
  s.prompt_usage.input_text = prefix + std::ssize(suffix);
  s.prompt_usage.input_audio = voice_rows;
  s.duplex->window.set_prompt(prefix + voice_rows, std::move(suffix));
}

/// Prefix, voice, suffix (THINKER.md 5.1). `voice`: its rows; undefined without one.
void omni_engine::build_prompt(session& s, at::Tensor voice) {
  const auto& llm = model_->llm();
  const auto& prompt = s.duplex->prompt;
  if (!voice.defined())
    voice = at::empty({0, llm.config().hidden_size}, at::TensorOptions(llm.dtype()).device(llm.device()));
  know_prompt(s, voice.size(0));
  auto rows = at::cat({llm.embed(prompt.prefix), voice, llm.embed(model_->text().encode(suffix_text))});
  if (rows.size(0) > options_.info.context_tokens) {
    fail(s, failure::context_full, "the prompt does not fit into the context");
    return;
  }
  begin_prefill(s, purpose::prompt, std::move(rows));
}

/// The session made its prompt itself.
void omni_engine::prompt_fed(session& s) {
  prompts_.put(s.duplex->prompt, s.cache, s.prompt_usage.input_audio);
  prompt_there(s);
}

void omni_engine::prompt_there(session& s) {
  s.duplex->prompt = {};
  s.at = s.voice_awaited ? stage::voice : stage::idle;
  if (!s.voice_awaited) begin_talk(s);
}

} // namespace parley::inference
