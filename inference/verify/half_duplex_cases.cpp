#include "inference/verify/half_duplex_cases.hpp"

#include "inference/verify/chat_replay.hpp"

#include <ATen/ATen.h>

namespace parley::inference::verify {

namespace {

using nlohmann::json;

/// The state that the reference keeps between calls.
struct half_duplex {
  explicit half_duplex(const thinker& model) : chat(model), encoder(model.make_encoder_cache()) { restart(); }

  /// Begins a new stream of sound, as the reference does after every answer.
  void restart() {
    stream = audio::mel_stream();
    encoder.clear();
    chunks = 0;
  }

  chat_replay chat;
  audio::encoder_cache encoder;
  audio::mel_stream stream;
  int chunks = 0;
  bool first = true;
  bool new_turn = true;
  bool answered = false;
};

chat::rendered_text prompt_of(half_duplex& s, const recorded_talk& talk) {
  const auto& message = talk.messages.front();
  chat::rendered_text text;
  if (message.from != role::user) {
    s.new_turn = true;
    chat::template_options how;
    how.generation_prompt = false;
    return chat::apply_template(talk.messages, how);
  }
  if (s.first || s.new_turn)
    text.add(std::string(!s.first && s.answered ? "<|tts_eos|><|im_end|>\n" : "") + "<|im_start|>user\n");
  s.new_turn = false;
  text.add(message.content);
  return text;
}

/// Rows of a sound that arrives in pieces: no convolved frame is dropped.
at::Tensor hear_piece(half_duplex& s, const std::vector<float>& sound) {
  thinker::fresh_sound piece{&s.stream, &s.encoder, sound, 0, 0};
  return s.chat.model.hear({&piece, 1}).front();
}

void replay_message(golden_set& files, half_duplex& s, const json& step, case_check& check) {
  auto talk = read_talk(files, json::array({step.at("msg")}), "");
  auto text = prompt_of(s, talk);
  auto first = std::exchange(s.first, false);
  check.equal("prompt", text.text, step.at("prompt").get<std::string>());
  auto user = talk.messages.front().from == role::user;
  if (user && !talk.sounds.empty() && s.chunks++ == 0) {
    auto& sound = talk.sounds.front();
    auto least = static_cast<std::size_t>(s.stream.config.first_chunk_ms) * (audio::sample_rate / 1000);
    if (sound.size() < least) sound.insert(sound.begin(), least - sound.size(), 0.0F);
    talk.joined = talk.sounds;
  }
  auto prompt = s.chat.encode(text, talk, false);
  check.equal("input_ids", prompt.ids, step.at("input_ids").get<std::vector<token_id>>());
  auto whole = step.at("kwargs").contains("stream_input") && step["kwargs"]["stream_input"] == false;
  if (user && !talk.sounds.empty() && !whole)
    s.chat.feed_rows(chat::embed_prompt(s.chat.model.llm(), prompt, hear_piece(s, talk.sounds.front())));
  else
    s.chat.prefill(prompt, talk);
  // The encoder forgets the beginning of the session.
  if (first || !user) s.encoder.clear();
}

void replay_answer(half_duplex& s, const json& step, case_check& check) {
  chat::template_options how;
  how.use_tts_template = true;
  auto opening = s.chat.model.text().encode("<|im_end|>\n" + chat::generation_prompt(how));
  auto yields = json::array();
  for (const auto& chunk : s.chat.stream(opening, 20, 1.0)) yields.push_back(json::array({chunk.text, chunk.finished}));
  check.equal("answer", yields, step.at("gen"));
  s.answered = s.new_turn = true;
  s.restart();
}

} // namespace

void replay_half_duplex(golden_set& files, const thinker& model, const json& session, case_check& check) {
  half_duplex s(model);
  for (const auto& step : session.at("steps")) {
    if (step.contains("gen"))
      replay_answer(s, step, check);
    else
      replay_message(files, s, step, check);
    check.equal("kv", s.chat.cache.length(), step.at("kv").get<std::int64_t>());
  }
}

} // namespace parley::inference::verify
