#include "inference/speech/speech_driver.hpp"
#include "inference/tts/turn.hpp"
#include "inference/verify/recorded_draws.hpp"
#include "inference/verify/talker_set.hpp"

#include <ATen/ATen.h>

#include <numeric>
#include <sstream>

namespace parley::inference::verify {

namespace {

using speech::tts_form;
using talker_tolerance::module;

/// Rounding differs between processors and may move a draw with a smaller margin into another token's interval.
constexpr double too_close = 1e-5;

/// A u in the middle of the interval of `token`.
double middle_of(std::span<const float> probabilities, std::int64_t token) {
  const auto total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  const auto below = std::accumulate(probabilities.begin(), probabilities.begin() + token, 0.0);
  return (below + static_cast<double>(probabilities[static_cast<std::size_t>(token)]) / 2) / total;
}

/// Runs a turn's groups step by step and compares each step with the recording.
class tts_replay {
public:
  tts_replay(talker_set& set, std::string name, tts_form form, case_check& check)
      : set_(set), name_(std::move(name)), entry_(set.entry(name_)), check_(check), llama_(set.llama(entry_)),
        draws_(recorded()), turn_(set.embeddings(), llama_, form, sampling()),
        sampled_(as_tokens(set.tensor(name_, "sampled"))) {}

  speech::tts_turn& turn() { return turn_; }

  /// Runs one group; returns its number of steps.
  int run_group(const at::Tensor& condition, speech::tts_limits limits) {
    turn_.begin(condition, limits);
    int steps = 0;
    while (turn_.running()) {
      step();
      ++steps;
    }
    return steps;
  }

  void finish() {
    check_.equal("steps in all", static_cast<std::size_t>(at_), sampled_.size());
    compare_rows("last_hidden", hidden_, module);
    compare_rows("logits_raw_first", logits_, module);
    compare_rows("probs_first", probabilities_, module);
    for (const auto& [key, shape] : entry_.at("tensors").items())
      for (const std::string side : {"final_key_", "final_value_"})
        if (key.starts_with(side)) {
          const auto layer = static_cast<std::size_t>(std::stoi(key.substr(side.size())));
          const auto mine = side == "final_key_" ? turn_.cache().keys(layer) : turn_.cache().values(layer);
          check_.close(key, mine.unsqueeze(0), set_.golden(name_, key));
        }
  }

private:
  std::vector<double> recorded() {
    const auto u = set_.tensor(name_, "u").to(at::kDouble).contiguous();
    return {u.const_data_ptr<double>(), u.const_data_ptr<double>() + u.numel()};
  }

  speech::tts_sampling sampling() const {
    speech::tts_sampling rules;
    rules.greedy = entry_.value("mode", name_.ends_with("greedy") ? "greedy" : "sampled") == "greedy";
    rules.temperature = entry_.value("temperature", rules.temperature);
    rules.repetition_penalty = entry_.value("repetition_penalty", rules.repetition_penalty);
    rules.top_p = entry_.value("top_p", rules.top_p);
    rules.top_k = entry_.value("top_k", rules.top_k);
    return rules;
  }

  void step() {
    const auto row = turn_.next();
    const auto hidden = llama_.forward({&row, 1});
    const auto logits = llama_.logits(hidden).contiguous();
    const std::span<const float> numbers(logits.const_data_ptr<float>(), static_cast<std::size_t>(logits.numel()));
    std::vector<float> p;
    speech::tts_probabilities(numbers, turn_.penalised(), turn_.sampling(), turn_.banned(), p);
    const auto chances = at::tensor(p);
    hidden_.push_back(hidden);
    if (kept("logits_raw_first", logits)) logits_.push_back(logits);
    if (kept("probs_first", chances)) probabilities_.push_back(chances.unsqueeze(0));
    const auto ids = set_.tensor(name_, "top_ids")[at_];
    check_.close("top probabilities", chances.index_select(0, ids), set_.tensor(name_, "top_probs")[at_]);
    const auto wanted = sampled_.at(static_cast<std::size_t>(at_++));
    if (turn_.sampling().greedy) {
      check_.equal("sampled", speech::tts_likeliest(p), wanted);
      turn_.take(numbers, draws_);
      return;
    }
    auto u = draws_.next();
    const auto token = speech::tts_draw(p, u);
    if (const auto margin = speech::tts_margin(p, u, token); token != wanted && margin < too_close) {
      std::ostringstream text;
      text << "step " << at_ - 1 << ": a draw with a margin of " << margin << " goes the recorded way";
      check_.note(text.str());
      u = middle_of(p, wanted);
    } else {
      check_.equal("sampled", token, wanted);
    }
    recorded_draws chosen({u});
    turn_.take(numbers, chosen);
  }

  /// Whether the recorded tensor, with one `row` for each of the first steps, includes this step.
  bool kept(const std::string& key, const at::Tensor& row) {
    return set_.has_golden(name_, key) && at_ < set_.golden(name_, key).count / row.numel();
  }

  void compare_rows(const std::string& key, const std::vector<at::Tensor>& mine, double tolerance) {
    if (set_.has_golden(name_, key)) check_.close(key, at::cat(mine, 0), set_.golden(name_, key), tolerance);
  }

  talker_set& set_;
  std::string name_;
  const nlohmann::json& entry_;
  case_check& check_;
  speech::tts_llama llama_;
  recorded_draws draws_;
  speech::tts_turn turn_;
  std::vector<std::int64_t> sampled_;
  std::vector<at::Tensor> hidden_, logits_, probabilities_;
  std::int64_t at_ = 0;
};

struct group_input {
  std::vector<token_id> tokens;
  at::Tensor hidden;
};

group_input input(talker_set& set, int n) {
  return {as_tokens(set.tensor("tts_stream_inputs", "text_ids_" + std::to_string(n))),
          set.tensor("tts_stream_inputs", "llm_hidden_" + std::to_string(n)).squeeze(0)};
}

std::vector<std::int64_t> vector_of(std::span<const std::int64_t> tokens) {
  return {tokens.begin(), tokens.end()};
}

} // namespace

void replay_tts_condition(talker_set& set, const std::string& name, report& out) {
  out.run(name, "condition", module, [&](case_check& check) {
    const auto& words = set.words();
    const auto tokens = as_tokens(set.tensor(name, "text_ids"));
    const auto hidden = set.tensor(name, "llm_hidden").squeeze(0);
    const auto text = set.tts_checkpoint()
                          .tensor("tts.emb_text.weight", at::kFloat)
                          .index_select(0, set.tensor(name, "text_ids").squeeze(0));
    check.close("emb_text", text.unsqueeze(0), set.tensor(name, "emb_text"));
    check.close("projected", (words.rows(tokens, hidden, false) - text).unsqueeze(0), set.tensor(name, "projected"));
    const auto condition = words.rows(tokens, hidden, true);
    check.close("projected_norm", (condition - text).unsqueeze(0), set.tensor(name, "projected_norm"));
    check.close("condition", condition.unsqueeze(0), set.tensor(name, "condition"));
    check.close("duplex_condition", words.duplex(tokens, hidden).unsqueeze(0), set.tensor(name, "duplex_condition"));
    check.close("duplex_condition_empty", words.duplex({}, {}).unsqueeze(0),
                set.tensor(name, "duplex_condition_empty"));
    const auto llama = set.llama(set.entry(name));
    const auto ids = at::tensor({std::int64_t{0}, std::int64_t{1}, speech::silence_speech_token, llama.end_token()});
    check.close("head_weight_rows", llama.head().index_select(0, ids), set.tensor(name, "head_weight_rows"));
  });
}

void replay_tts_stream(talker_set& set, const std::string& name, report& out) {
  const auto& entry = set.entry(name);
  out.run(name, "groups", module, [&](case_check& check) {
    tts_replay replay(set, name, tts_form::streamed, check);
    const auto groups = static_cast<int>(entry.at("steps_per_chunk").size());
    const auto batch = entry.at("chunk_size").get<std::size_t>();
    auto yields = nlohmann::json::array();
    std::vector<std::int64_t> buffer;
    for (int n = 0; n < groups; ++n) {
      const bool last = n + 1 == groups;
      const auto [tokens, hidden] = input(set, n);
      std::vector<at::Tensor> rows{set.words().rows(tokens, hidden, set.tts_config().normalize_projected_hidden)};
      if (last) rows.push_back(set.embeddings().text_eos());
      rows.push_back(set.embeddings().audio_bos());
      const auto steps = replay.run_group(at::cat(rows, 0), {entry.at("max_new_token").get<int>(), 0});
      check.equal("steps", steps, entry.at("steps_per_chunk")[n].get<int>());
      const auto& turn = replay.turn();
      for (auto token : turn.group()) {
        buffer.push_back(token);
        if (buffer.size() == batch) {
          yields.push_back({{"chunk", n}, {"tokens", buffer}, {"last", false}});
          buffer.clear();
        }
      }
      if (last && turn.ended_by_token()) {
        yields.push_back({{"chunk", n}, {"tokens", buffer}, {"last", true}});
        buffer.clear();
      }
      const auto& state = entry.at("state_after_chunk")[n];
      check.equal("position", turn.position(), state.at("text_start_pos").get<std::int64_t>());
      check.equal("cache length", turn.cache().length(), state.at("kv_len").get<std::int64_t>());
      check.equal("buffered", buffer, as_tokens(state.at("buffered")));
      check.equal("generated", turn.tokens().size(), state.at("generated").get<std::size_t>());
    }
    check.equal("yields", yields, entry.at("yields"));
    replay.finish();
  });
}

void replay_tts_duplex(talker_set& set, const std::string& name, report& out) {
  out.run(name, "units", module, [&](case_check& check) {
    tts_replay replay(set, name, tts_form::duplex, check);
    auto& turn = replay.turn();
    for (const auto& call : set.entry(name).at("calls")) {
      const bool ends = call.at("end_of_turn");
      check.equal("position", turn.position(), call.at("text_start_pos").get<std::int64_t>());
      const auto limits = speech::duplex_limits(turn.position() == 0, ends);
      check.equal("least", limits.least, call.at("min_new_tokens").get<int>());
      at::Tensor condition = set.embeddings().audio_bos();
      if (call.at("condition").is_number()) {
        const auto [tokens, hidden] = input(set, call.at("condition").get<int>());
        condition = set.words().duplex(tokens, hidden);
      }
      const auto steps = replay.run_group(condition, limits);
      check.equal("steps", steps, call.at("sampled_steps").get<int>());
      check.equal("returned", vector_of(turn.group()), as_tokens(call.at("returned")));
      check.equal("cache length", turn.cache().length(), call.at("kv_len").get<std::int64_t>());
      if (ends) turn.reset();
      check.equal("next position", turn.position(), call.at("next_text_start_pos").get<std::int64_t>());
    }
    replay.finish();
  });
}

void replay_tts_generate(talker_set& set, const std::string& name, report& out) {
  const auto& entry = set.entry(name);
  out.run(name, "answer", module, [&](case_check& check) {
    tts_replay replay(set, name, tts_form::whole, check);
    replay.run_group(set.tensor(name, "inputs_embeds").squeeze(0),
                     {entry.at("max_new_token").get<int>(), entry.at("min_new_token").get<int>()});
    check.equal("new_ids", vector_of(replay.turn().group()), as_tokens(set.tensor(name, "new_ids").flatten()));
    check.equal("finished", replay.turn().ended_by_token(), entry.at("finished").get<bool>());
    replay.finish();
  });
}

} // namespace parley::inference::verify
