#include "inference/tts/duplex_speech.hpp"
#include "inference/verify/duplex_replay.hpp"
#include "inference/verify/e2e_set.hpp"
#include "inference/verify/golden_pictures.hpp"
#include "inference/verify/speech_replay.hpp"
#include "inference/verify/talker_set.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace parley::inference::verify {

namespace {

using nlohmann::json;

constexpr std::size_t second = 24000; ///< samples that the reference sends for each unit, spoken or not

std::vector<token_id> ids(const json& j) {
  return j.get<std::vector<token_id>>();
}

std::size_t characters(const std::string& utf8) {
  return static_cast<std::size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// One duplex session: what it decides and what it says.
class duplex_talk {
public:
  duplex_talk(e2e_set& set, const json& recorded, const safetensors_file& golden)
      : set_(set), recorded_(recorded), golden_(golden), session_(set.model(), capability()),
        chance_(new recorded_draws({})), speech_(set.speech(), set.voice(recorded.at("tts_ref")), sampling(),
                                                 std::unique_ptr<random_source>(chance_), nullptr, quirks::literal()) {}

  void prepare(case_check& check) {
    // Marks the voice's position in the prompt.
    static const std::string mark = "[音频嵌入]", suffix = "<|audio_end|><|im_end|>";
    const auto& prepared = recorded_.at("prepare");
    const auto prefix = "<|im_start|>system\n" + recorded_.at("system_prompt").get<std::string>() + "\n<|audio_start|>";
    const auto prompt = prepared.at("prompt").get<std::string>();
    check.equal("prompt", prefix + mark + suffix, prompt);
    check.equal("prompt_length", characters(prompt), prepared.at("prompt_length").get<std::size_t>());
    const auto& text = set_.model().text();
    const auto& heard = recorded_.at("llm_ref");
    const auto voice = heard.is_null() ? std::vector<float>{} : set_.voice_clip(heard);
    session_.prepare(text.encode(prefix), voice, text.encode(suffix));
    check.equal("kv_cache_length", session_.cache.length(), prepared.at("kv_cache_length").get<std::int64_t>());
    check_voice(*set_.voice(recorded_.at("tts_ref")), prepared, golden_, check);
  }

  /// Replays and checks what the model heard, decided and wrote.
  void think(const json& unit, case_check& check) {
    const auto& input = unit.at("input");
    const auto samples = input.at("audio").is_null() ? std::vector<float>{} : set_.files().clip(input["audio"]);
    const bool forced = input.at("force_listen");
    turn_was_open_ = !session_.decoder.turn_ended();
    check.equal("turn_open_before", turn_was_open_, unit.at("turn_open_before").get<bool>());
    check.equal("prefill", session_.prefill(samples, cut_frames(set_.files(), input)),
                unit.at("prefill").at("success").get<bool>());
    check.equal("kv_after_prefill", session_.cache.length(), unit.at("kv_after_prefill").get<std::int64_t>());
    if (const auto key = key_of(unit) + "pending_logits"; has_golden(golden_, key))
      check.close("pending_logits", session_.pending_logits, golden_of(golden_, key));

    auto arguments = recorded_.at("config");
    arguments["force_listen_override"] = forced;
    session_.generate(arguments, json::array({{{"draws", unit.at("llm_draws")}}}));
    check_draws(unit, check);
    const auto& outcome = session_.decoder.outcome();
    check.equal("is_listen", outcome.is_listen, unit.at("is_listen").get<bool>());
    check.equal("text", outcome.text, unit.at("text").get<std::string>());
    check.equal("end_of_turn", outcome.end_of_turn, unit.at("end_of_turn").get<bool>());
    check.equal("n_tokens", outcome.ids.size(), unit.at("n_tokens").get<std::size_t>());
    check.equal("unit_text_ids", outcome.ids, ids(unit.at("unit_text_ids")));
    check.equal("current_time", session_.intake.chunks(), unit.at("current_time").get<int>());
    check.equal("terminator", outcome.terminator ? json(*outcome.terminator) : json(nullptr), unit.at("terminator"));
    check.equal("turn_open_after", !session_.decoder.turn_ended(), unit.at("turn_open_after").get<bool>());
    check.equal("kv_cache_length", session_.cache.length(), unit.at("kv_cache_length").get<std::int64_t>());

    condition_ = at::Tensor();
    if (!outcome.is_listen && recorded_.at("config").at("generate_audio").get<bool>()) {
      condition_ = set_.words().duplex(session_.tts_ids,
                                       session_.tts_hidden.empty() ? at::Tensor() : at::cat(session_.tts_hidden));
      if (const auto key = key_of(unit) + "tts_condition"; has_golden(golden_, key))
        check.close("tts_condition", condition_, golden_of(golden_, key));
    }
    check.equal("buffer_before", waiting(), as_tokens(unit.at("token2wav").at("buffer_before")));
    if (forced && turn_was_open_) speech_.cut();

    auto appended = outcome.appended;
    appended.push_back(set_.model().text().id("</unit>"));
    check.equal("appended_ids", appended, ids(unit.at("appended_ids")));
    ends_ = outcome.end_of_turn;
    session_.finalize();
    check.equal("kv_after_finalize", session_.cache.length(), unit.at("kv_after_finalize").get<std::int64_t>());
  }

  /// Replays and checks what it said: call `think` first.
  void speak(const json& unit, case_check& check) {
    const auto& audio = unit.at("audio");
    check.equal("tts", condition_.defined(), !unit.at("tts").is_null());
    std::vector<float> sound(second, 0.0F);
    if (condition_.defined() && !unit["tts"].is_null()) sound = sound_of(unit, check);
    check.equal("samples", sound.size(), audio.at("samples").get<std::size_t>());
    if (const auto key = key_of(unit) + "audio"; has_golden(golden_, key))
      check.close("audio", at::tensor(sound), golden_of(golden_, key));
    else
      check.exact("silence", std::all_of(sound.begin(), sound.end(), [](float x) { return x == 0; }));
    const auto& after = unit.at("tts_state_after");
    check.equal("text_start_pos", speech_.tokens().position(), after.at("text_start_pos").get<std::int64_t>());
    check.equal("has_past", speech_.tokens().begun(), after.at("has_past").get<bool>());
    check.equal("buffer_after", waiting(), as_tokens(unit.at("token2wav").at("buffer_after")));
    said_.insert(said_.end(), sound.begin(), sound.end());
  }

  const std::vector<float>& said() const { return said_; }

private:
  json capability() const {
    auto merged = recorded_.at("config");
    merged["force_listen_count"] = recorded_.at("force_listen_count");
    return merged;
  }

  /// Speech tokens that wait for the next call.
  std::vector<std::int64_t> waiting() const {
    const auto mark = speech_.remember();
    return {mark.windows.waiting().begin(), mark.windows.waiting().end()};
  }

  speech::tts_sampling sampling() const {
    speech::tts_sampling rules;
    rules.temperature = recorded_.at("config").at("tts_temperature");
    return rules;
  }

  static std::string key_of(const json& unit) { return "u" + std::to_string(unit.at("i").get<int>()) + "."; }

  void check_draws(const json& unit, case_check& check) {
    std::vector<token_id> decoded;
    std::vector<llm::draw_record> mine;
    for (const auto& call : session_.decodes) {
      decoded.push_back(call.decoded);
      mine.insert(mine.end(), call.draws.begin(), call.draws.end());
    }
    check.equal("decoded", decoded, ids(unit.at("decoded")));
    const auto& draws = unit.at("llm_draws");
    const auto& margins = unit.at("greedy_margins");
    check.equal("draws", mine.size(), draws.size() + margins.size());
    for (std::size_t i = 0; i < std::min(mine.size(), draws.size()); ++i) {
      check.equal("sampled token", mine[i].token, draws[i].at("token").get<token_id>());
      check.equal("tokens with a probability", mine[i].candidates, draws[i].at("candidates").get<int>());
    }
  }

  std::vector<float> sound_of(const json& unit, case_check& check) {
    const auto& recorded = unit.at("tts");
    const auto& turn = speech_.tokens();
    check.equal("condition_rows", condition_.size(0), recorded.at("condition_rows").get<std::int64_t>());
    check.equal("text_start_pos", turn.position(), recorded.at("text_start_pos").get<std::int64_t>());
    check.equal("had_past", turn.begun(), recorded.at("had_past").get<bool>());
    const auto limits = speech::duplex_limits(turn.position() == 0, ends_);
    check.equal("min_new_tokens", limits.least, recorded.at("min_new_tokens").get<int>());
    check.equal("max_new_token", limits.most, recorded.at("max_new_token").get<int>());

    speech_.begin_unit(condition_.to(at::kFloat), ends_);
    replay_speech_tokens(*set_.speech().tokens, *speech_.step().turn, *chance_, unit.at("tts_draws"), check);
    check.equal("returned", std::vector(turn.group().begin(), turn.group().end()), as_tokens(recorded.at("returned")));
    check.equal("n_tts_tokens", turn.group().size(), unit.at("n_tts_tokens").get<std::size_t>());
    check.equal("kv_len", turn.cache().length(), recorded.at("kv_len").get<std::int64_t>());

    const auto& calls = unit.at("token2wav").at("calls");
    std::vector<at::Tensor> mels;
    std::size_t made = 0, emitted = 0;
    while (const auto job = speech_.next_window()) {
      check.exact("calls", made < calls.size());
      if (made == calls.size()) break;
      const auto samples = replay_sound(*set_.speech().sound, *job, calls[made++], mels.emplace_back(), check);
      emitted += static_cast<std::size_t>(samples.size(0));
      speech_.take_sound(samples);
    }
    check.equal("calls", made, calls.size());
    check.equal("emitted_samples", emitted, unit.at("token2wav").at("emitted_samples").get<std::size_t>());
    if (const auto key = key_of(unit) + "mel"; has_golden(golden_, key))
      check.close("mel", at::cat(mels, 1), golden_of(golden_, key), e2e_tolerance::mel);
    auto sound = speech_.end_unit();
    const auto kind = emitted > 0 ? "speech" : "none_replaced_by_silence";
    check.equal("kind", unit.at("audio").at("kind").get<std::string>(), kind);
    if (emitted > 0)
      check.equal("left_pad", sound.size() - emitted, unit.at("audio").at("left_pad").get<std::size_t>());
    return sound;
  }

  e2e_set& set_;
  const json& recorded_;
  const safetensors_file& golden_;
  duplex_replay session_;
  recorded_draws* chance_; ///< owned by `speech_`
  speech::duplex_speech speech_;
  at::Tensor condition_; ///< for this unit; undefined if it only listens
  bool ends_ = false, turn_was_open_ = false;
  std::vector<float> said_;
};

} // namespace

void replay_e2e_duplex(e2e_set& set, const std::string& stem, report& out) {
  const auto& recorded = set.files().cases(stem);
  duplex_talk talk(set, recorded, set.files().tensors(stem));
  out.run(stem, "prepare", thinker_tolerance, [&](case_check& check) { talk.prepare(check); });
  for (const auto& unit : recorded.at("units")) {
    const auto name = "unit." + std::to_string(unit.at("i").get<int>());
    out.run(stem, name, thinker_tolerance, [&](case_check& check) { talk.think(unit, check); });
    out.run(stem, name + ".sound", e2e_tolerance::sound, [&](case_check& check) { talk.speak(unit, check); });
  }
  out.run(stem, "full_audio", e2e_tolerance::sound,
          [&](case_check& check) { check_whole_sound(talk.said(), recorded.at("full_audio"), check); });
}

} // namespace parley::inference::verify
