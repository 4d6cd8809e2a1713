#include "inference/tts/chat_speech.hpp"
#include "inference/verify/chat_replay.hpp"
#include "inference/verify/e2e_set.hpp"
#include "inference/verify/speech_replay.hpp"
#include "inference/verify/talker_set.hpp"

#include <ATen/ATen.h>

#include <algorithm>

// Streamed chat answers that are spoken: groups of words become speech tokens, and batches of those become sound.
namespace parley::inference::verify {

namespace {

using nlohmann::json;

constexpr std::size_t batch_tokens = 25; ///< what the reference's generator yields at a time

/// One answer, from the prompt to its sound.
class spoken_answer {
public:
  spoken_answer(e2e_set& set, const json& recorded, const safetensors_file& golden)
      : set_(set), recorded_(recorded), golden_(golden), session_(set.model()), chance_(new recorded_draws({})),
        speech_(set.speech(), set.voice(recorded.at("tts_ref")), speech::tts_form::streamed, {},
                std::unique_ptr<random_source>(chance_), nullptr) {}

  void prompt(case_check& check) {
    const auto& prefill = recorded_.at("prefill_args");
    auto talk = read_talk(set_.files(), recorded_.at("messages"), prefill.value("omni_mode", false) ? "" : "\n",
                          picture_arguments::of(prefill));
    chat::template_options how;
    how.generation_prompt = false;
    const auto text = chat::apply_template(talk.messages, how);
    check.equal("prompt", text.text, recorded_.at("prompt").get<std::string>());
    const auto prompt = session_.encode(text, talk, false);
    check.equal("prompt_ids", prompt.ids, recorded_.at("prompt_ids").get<std::vector<token_id>>());
    session_.prefill(prompt, talk);
    check.equal("kv_after_prefill", session_.cache.length(), recorded_.at("kv_after_prefill").get<std::int64_t>());
    check_voice(*set_.voice(recorded_.at("tts_ref")), recorded_, golden_, check);
  }

  void think(case_check& check) {
    auto draws = json::array();
    for (const auto& chunk : recorded_.at("llm_chunks"))
      for (const auto& draw : chunk.at("draws")) draws.push_back(draw);
    auto chance = numbers_of(draws);
    llm::chat_sampling options;
    options.greedy = !recorded_.at("do_sample").get<bool>();
    options.length_penalty = recorded_.at("length_penalty");
    chat::template_options how;
    how.use_tts_template = true;
    const auto opening = set_.model().text().encode("<|im_end|>\n" + chat::generation_prompt(how));
    chunks_ = session_.stream(opening, recorded_.at("max_new_tokens"), options, chance, true);
    check.equal("draws left", chance.left(), std::size_t{0});
    check.equal("chunks", chunks_.size(), recorded_.at("llm_chunks").size());
    std::string text;
    std::vector<token_id> told;
    for (std::size_t n = 0; n < chunks_.size(); ++n) {
      check_chunk(n, check);
      text += chunks_[n].text;
      told.insert(told.end(), chunks_[n].ids.begin(), chunks_[n].ids.end());
    }
    if (!chunks_.empty() && !chunks_.back().finished) told.pop_back(); // its last token was never fed
    check.equal("text", text, recorded_.at("text").get<std::string>());
    check.equal("generated_ids", told, recorded_.at("generated_ids").get<std::vector<token_id>>());
    check.equal("kv_end", session_.cache.length(), recorded_.at("kv_end").get<std::int64_t>());
  }

  /// Turns the words of chunk `number` into speech tokens: call `think` first.
  void choose_tokens(std::size_t number, case_check& check) {
    const auto& chunk = chunks_.at(number);
    const auto& group = recorded_.at("tts_groups").at(number);
    const auto rows = chunk.hidden.defined() ? chunk.hidden.size(0) : 0;
    std::vector<token_id> words;
    for (const auto& c : std::span(chunks_).first(number + 1)) words.insert(words.end(), c.ids.begin(), c.ids.end());
    if (!chunk.finished) words.pop_back();
    check.exact("words of a group", rows > 0 && rows <= std::ssize(words));
    const auto ids = std::span(words).last(static_cast<std::size_t>(rows));
    const auto condition = set_.words().rows(ids, chunk.hidden, set_.speech().config.normalize_projected_hidden);
    check.close("condition", condition, golden_of(golden_, "group" + std::to_string(number) + ".condition"));
    check.equal("text_finished", chunk.finished, group.at("text_finished").get<bool>());

    const auto& turn = speech_.tokens();
    check.equal("text_start_pos", turn.position(), group.at("text_start_pos").get<std::int64_t>());
    speech_.begin_group(condition.to(at::kFloat), chunk.finished);
    replay_speech_tokens(*set_.speech().tokens, *speech_.step().turn, *chance_, group.at("draws"), check);
    speech_.absorb();
    check.equal("generated", std::vector(turn.group().begin(), turn.group().end()), as_tokens(group.at("generated")));
    check.equal("text_start_pos_after", turn.position(), group.at("text_start_pos_after").get<std::int64_t>());
    check.equal("kv_len", turn.cache().length(), group.at("kv_len").get<std::int64_t>());
    check_yields(group, chunk.finished, check);
    text_ += chunk.text;
  }

  /// Makes all sound that the tokens so far allow.
  void speak(bool ends, case_check& check) {
    if (ends) speech_.finish();
    const auto& calls = recorded_.at("token2wav_calls");
    while (const auto job = speech_.next_window()) {
      check.exact("calls", said_chunks_ < calls.size());
      if (said_chunks_ == calls.size()) return;
      const auto number = std::to_string(said_chunks_);
      at::Tensor mel;
      const auto samples = replay_sound(*set_.speech().sound, *job, calls[said_chunks_], mel, check).contiguous();
      check.close("mel" + number, mel, golden_of(golden_, "mel" + number), e2e_tolerance::mel);
      check.close("chunk" + number, samples, golden_of(golden_, "chunk" + number + ".audio"));
      const auto told = text_.empty() ? json(nullptr) : json(std::exchange(text_, {}));
      check.equal("text_delta", told, recorded_.at("chunks").at(said_chunks_).at("text_delta"));
      said_.insert(said_.end(), samples.const_data_ptr<float>(), samples.const_data_ptr<float>() + samples.numel());
      ++said_chunks_;
    }
    if (!ends) return;
    check.equal("calls", said_chunks_, calls.size());
    check.equal("chunks", said_chunks_, recorded_.at("chunks").size());
    check_whole_sound(said_, recorded_.at("full_audio"), check);
  }

private:
  void check_chunk(std::size_t number, case_check& check) {
    const auto& mine = chunks_[number];
    const auto& golden = recorded_.at("llm_chunks").at(number);
    check.equal("ids", mine.ids, golden.at("ids").get<std::vector<token_id>>());
    check.equal("finished", mine.finished, golden.at("finished").get<bool>());
    const auto& draws = golden.at("draws");
    check.equal("draws", mine.draws.size(), draws.size() + golden.at("greedy_margins").size());
    for (std::size_t i = 0; i < std::min(draws.size(), mine.draws.size()); ++i) {
      check.equal("sampled token", mine.draws[i].token, draws[i].at("token").get<token_id>());
      check.equal("tokens with a probability", mine.draws[i].candidates, draws[i].at("candidates").get<int>());
    }
    if (const auto key = "llm" + std::to_string(number) + ".last_hidden"; has_golden(golden_, key))
      check.close("last_hidden", mine.hidden, golden_of(golden_, key));
  }

  /// Checks the generator's batches: what is left waits for the next group, or comes out at the end.
  void check_yields(const json& group, bool finished, case_check& check) {
    auto yields = json::array();
    for (const auto token : speech_.tokens().group()) {
      waiting_.push_back(token);
      if (waiting_.size() < batch_tokens) continue;
      yields.push_back({{"tokens", std::exchange(waiting_, {})}, {"last", false}});
    }
    if (finished && speech_.tokens().ended_by_token())
      yields.push_back({{"tokens", std::exchange(waiting_, {})}, {"last", true}});
    check.equal("yields", yields, group.at("yields"));
    check.equal("buffered", waiting_, as_tokens(group.at("buffered")));
  }

  e2e_set& set_;
  const json& recorded_;
  const safetensors_file& golden_;
  chat_replay session_;
  recorded_draws* chance_; ///< owned by `speech_`
  speech::chat_speech speech_;
  std::vector<chat_replay::chunk> chunks_;
  std::vector<std::int64_t> waiting_;
  std::string text_; ///< text that is known but not yet sent with a sound
  std::size_t said_chunks_ = 0;
  std::vector<float> said_;
};

} // namespace

void replay_e2e_stream(e2e_set& set, const std::string& stem, report& out) {
  const auto& recorded = set.files().cases(stem);
  spoken_answer answer(set, recorded, set.files().tensors(stem));
  out.run(stem, "prompt", thinker_tolerance, [&](case_check& check) { answer.prompt(check); });
  out.run(stem, "words", thinker_tolerance, [&](case_check& check) { answer.think(check); });
  const auto groups = recorded.at("tts_groups").size();
  for (std::size_t n = 0; n < groups; ++n) {
    const auto name = "group." + std::to_string(n);
    out.run(stem, name, thinker_tolerance, [&](case_check& check) { answer.choose_tokens(n, check); });
    out.run(stem, name + ".sound", e2e_tolerance::sound,
            [&](case_check& check) { answer.speak(n + 1 == groups, check); });
  }
}

} // namespace parley::inference::verify
