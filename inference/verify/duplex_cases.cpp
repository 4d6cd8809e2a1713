#include "inference/tts/condition.hpp"
#include "inference/verify/duplex_replay.hpp"
#include "inference/verify/families.hpp"
#include "inference/verify/golden_pictures.hpp"

#include <ATen/ATen.h>

namespace parley::inference::verify {

namespace {

using nlohmann::json;

std::vector<token_id> ids(const json& j) {
  return j.get<std::vector<token_id>>();
}

/// The newest or oldest rows of a layer as the reference keeps them: [kv_heads, rows, head_dim].
at::Tensor by_head(const at::Tensor& rows) {
  return rows.permute({1, 0, 2});
}

void check_decodes(const duplex_replay& session, const json& calls, case_check& check) {
  check.equal("decode calls", session.decodes.size(), calls.size());
  for (auto i = std::size_t{0}; i < std::min(session.decodes.size(), calls.size()); ++i) {
    const auto& mine = session.decodes[i];
    check.equal("decoded", mine.decoded, calls[i].at("decoded").get<token_id>());
    auto draws = calls[i].value("draws", json::array());
    for (auto d = std::size_t{0}; d < draws.size() && d < mine.draws.size(); ++d) {
      check.equal("sampled token", mine.draws[d].token, draws[d].at("token").get<token_id>());
      check.equal("tokens with a probability", mine.draws[d].candidates, draws[d].at("n_nonzero").get<int>());
    }
  }
}

void check_window(const duplex::window& window, const json& golden, case_check& check) {
  std::vector<int> unit_ids;
  std::vector<std::int64_t> lengths;
  for (const auto& unit : window.units()) {
    unit_ids.push_back(unit.id);
    lengths.push_back(unit.length);
  }
  check.equal("preserve", window.preserved(), golden.at("preserve").get<std::int64_t>());
  check.equal("unit_ids", unit_ids, golden.at("unit_ids").get<std::vector<int>>());
  check.equal("unit_lens", lengths, golden.at("unit_lens").get<std::vector<std::int64_t>>());
  check.equal("events", window.events(), golden.at("events").get<int>());
  check.equal("dropped_tokens", window.dropped_tokens(), golden.at("dropped_tokens").get<std::int64_t>());
  check.equal("previous_ids", window.previous_ids(), ids(golden.at("previous_ids")));
  check.equal("previous_text", window.previous_text(), golden.at("previous_text").get<std::string>());
}

void check_unit(duplex_replay& session, const llm::tts_condition* condition, const json& unit,
                std::span<const float> samples, std::span<const vision::sliced_picture> frames,
                const safetensors_file& golden, case_check& check) {
  auto key = "u" + std::to_string(unit.at("i").get<int>()) + ".";
  check.equal("prefill_success", session.prefill(samples, frames), unit.at("prefill_success").get<bool>());
  check.equal("kv_after_prefill", session.cache.length(), unit.at("kv_after_prefill").get<std::int64_t>());
  check.equal("audio_buffer_left", session.intake.waiting_samples(), unit.at("audio_buffer_left").get<int>());
  check.equal("whisper_kv", session.encoder.length, unit.at("whisper_kv").get<int>());
  check.equal("pending", session.pending_logits.defined(), unit.contains("pending_top4"));
  if (session.pending_logits.defined()) {
    if (has_golden(golden, key + "pending_logits"))
      check.close("pending_logits", session.pending_logits, golden_of(golden, key + "pending_logits"));
    auto top = std::get<1>(session.pending_logits.topk(4));
    for (auto rank = 0; rank < 4; ++rank)
      check.equal("pending_top4", top[rank].item<std::int64_t>(), unit.at("pending_top4")[rank][0].get<token_id>());
  }

  session.generate(unit.at("generate_args"), unit.at("decode_calls"));
  auto nothing = duplex::unit_outcome{};
  nothing.is_listen = true;
  const auto& outcome = session.generated ? session.decoder.outcome() : nothing;
  check_decodes(session, unit.at("decode_calls"), check);
  check.equal("is_listen", outcome.is_listen, unit.at("is_listen").get<bool>());
  check.equal("text", outcome.text, unit.at("text").get<std::string>());
  check.equal("end_of_turn", outcome.end_of_turn, unit.at("end_of_turn").get<bool>());
  check.equal("n_tokens", outcome.ids.size(), unit.at("n_tokens").get<std::size_t>());
  check.equal("unit_token_ids", outcome.ids, ids(unit.at("unit_token_ids")));
  check.equal("current_time", session.intake.chunks(), unit.at("current_time").get<int>());
  check.equal("current_turn_ended", session.decoder.turn_ended(), unit.at("current_turn_ended").get<bool>());
  check.equal("kv_after_generate", session.cache.length(), unit.at("kv_after_generate").get<std::int64_t>());
  check.equal("needs_finalize", session.generated, unit.at("needs_finalize").get<bool>());
  check.equal("pending_terminator", outcome.terminator ? json(*outcome.terminator) : json(nullptr),
              unit.at("pending_terminator"));
  if (unit.contains("tts_hidden_ids")) {
    check.equal("tts_hidden_ids", session.tts_ids, ids(unit.at("tts_hidden_ids")));
    check.equal("tts_hidden_end_flags", session.tts_ends, unit.at("tts_hidden_end_flags").get<std::vector<bool>>());
  }
  auto hidden = session.tts_hidden.empty() ? at::Tensor() : at::cat(session.tts_hidden);
  if (has_golden(golden, key + "tts_hidden")) check.close("tts_hidden", hidden, golden_of(golden, key + "tts_hidden"));
  if (condition && has_golden(golden, key + "tts_condition"))
    check.close("tts_condition", condition->duplex(session.tts_ids, hidden), golden_of(golden, key + "tts_condition"));

  auto appended = outcome.appended;
  if (session.generated) {
    session.finalize();
    appended.push_back(ids(unit.at("appended_ids")).back());
  }
  check.equal("appended_ids", appended, ids(unit.at("appended_ids")));
  check.equal("kv_after_finalize", session.cache.length(), unit.at("kv_after_finalize").get<std::int64_t>());
  check_window(session.window, unit.at("window"), check);
}

} // namespace

void replay_duplex(golden_set& files, const std::string& stem, report& out) {
  const auto& cases = files.cases(stem);
  const auto& golden = files.tensors(stem);
  thinker model(files.weights(), files.config(), files.dtype(), files.device());
  std::optional<llm::tts_condition> condition;
  if (files.config().has_tts) condition.emplace(files.config().tts, files.view("tts."));
  duplex_replay session(model, cases.at("capability"));

  out.run(stem, "prepare", thinker_tolerance, [&](case_check& check) {
    const auto& prepared = cases.at("prepare");
    auto prefix = model.text().encode(cases.at("prefix").get<std::string>());
    auto suffix = model.text().encode(cases.at("suffix").get<std::string>());
    check.equal("prefix_ids", prefix, ids(prepared.at("prefix_ids")));
    check.equal("suffix_ids", suffix, ids(prepared.at("suffix_ids")));
    auto voice = cases.at("ref").is_null() ? std::vector<float>{} : files.clip(cases["ref"]);
    session.prepare(prefix, voice, suffix);
    check.equal("kv", session.cache.length(), prepared.at("kv").get<std::int64_t>());
    check.equal("system_preserve_length", session.window.preserved(),
                prepared.at("system_preserve_length").get<std::int64_t>());
  });
  for (const auto& unit : cases.at("units"))
    out.run(stem, "unit." + std::to_string(unit.at("i").get<int>()), thinker_tolerance, [&](case_check& check) {
      const auto& input = unit.at("input");
      auto silent = !input.contains("audio") || input["audio"].is_null();
      auto samples = silent ? std::vector<float>{} : files.clip(input["audio"]);
      check_unit(session, condition ? &*condition : nullptr, unit, samples, cut_frames(files, input), golden, check);
    });
  out.run(stem, "end", thinker_tolerance, [&](case_check& check) {
    check.equal("generated_tokens_history", session.history, ids(cases.at("generated_tokens_history")));
    const auto last_rows = [](const at::Tensor& cache, const golden_values& recorded) {
      const auto all = by_head(cache);
      const auto rows = std::min(all.size(1), recorded.count / (all.size(0) * all.size(2)));
      return all.narrow(1, all.size(1) - rows, rows);
    };
    const auto keys = golden_of(golden, "final.k0"), values = golden_of(golden, "final.vlast");
    const auto last = static_cast<int>(files.config().llm.layers) - 1;
    check.close("final.k0", last_rows(session.cache.keys(0), keys), keys);
    check.close("final.vlast", last_rows(session.cache.values(last), values), values);
  });
}

} // namespace parley::inference::verify
