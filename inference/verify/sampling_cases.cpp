#include "inference/llm/sampling.hpp"
#include "inference/verify/duplex_arguments.hpp"
#include "inference/verify/families.hpp"
#include "inference/verify/recorded_draws.hpp"

#include <ATen/ATen.h>

#include <set>

namespace parley::inference::verify {

namespace {

using nlohmann::json;

std::vector<token_id> ids(const json& j) {
  return j.get<std::vector<token_id>>();
}

std::vector<float> row_of(const at::Tensor& logits, std::int64_t row) {
  auto r = logits[row].contiguous();
  return {r.const_data_ptr<float>(), r.const_data_ptr<float>() + r.numel()};
}

llm::chat_sampling chat_options(const json& c) {
  llm::chat_sampling o;
  o.greedy = !c.value("do_sample", true);
  o.temperature = c.value("temperature", o.temperature);
  o.top_k = c.value("top_k", o.top_k);
  o.top_p = c.value("top_p", o.top_p);
  o.repetition_penalty = c.value("repetition_penalty", o.repetition_penalty);
  o.length_penalty = c.value("length_penalty", o.length_penalty);
  return o;
}

/// Compares `kept` with recorded (id, probability) pairs; every recorded pair must occur.
void same_probabilities(case_check& check, const std::vector<llm::sampling_scratch::candidate>& kept,
                        const json& expected) {
  auto total = 0.0;
  for (const auto& c : kept) total += c.weight;
  std::vector<double> mine, golden;
  for (const auto& pair : expected) {
    golden.push_back(pair[1].get<double>());
    auto id = pair[0].get<token_id>();
    auto at = std::find_if(kept.begin(), kept.end(), [id](const auto& c) { return c.id == id; });
    mine.push_back(at == kept.end() ? -1.0 : at->weight / total);
  }
  check.close("probabilities", at::tensor(mine, at::kDouble), at::tensor(golden, at::kDouble));
}

/// The random numbers that led to a result; `u` also lists those tried before.
recorded_draws used_numbers(const json& c) {
  std::vector<double> numbers;
  for (const auto& draw : c.at("draws")) numbers.push_back(draw.at("u"));
  return recorded_draws(numbers);
}

void same_draws(case_check& check, const std::vector<llm::draw_record>& mine, const json& golden) {
  check.equal("number of draws", mine.size(), golden.size());
  for (auto i = std::size_t{0}; i < std::min(mine.size(), golden.size()); ++i) {
    check.equal("sampled token", mine[i].token, golden[i].at("token").get<token_id>());
    check.equal("tokens with a probability", mine[i].candidates, golden[i].at("n_nonzero").get<int>());
  }
}

void replay_duplex_decode(const json& c, const json& all, const at::Tensor& logits,
                          const llm::duplex_sampling_ids& names, case_check& check) {
  auto forbidden = ids(all.at("forbidden_token_ids"));
  check.equal("forbidden ids", std::set<token_id>(names.forbidden.begin(), names.forbidden.end()),
              std::set<token_id>(forbidden.begin(), forbidden.end()));
  check.equal("listen id", names.listen, all.at("listen_id_used_by_decoder").get<token_id>());
  auto row = row_of(logits, c.at("logits_row"));
  auto history = ids(c.at("history"));
  auto chance = used_numbers(c);
  std::vector<llm::draw_record> records;
  llm::sampling_scratch scratch;
  auto options = duplex_sampling_of(c.at("cfg"), "mode");
  if (!options.base.greedy) scratch.records = &records;
  auto token = llm::draw_duplex(row, names, options, quirks::literal(), history, chance, scratch);
  check.equal("token", token, c.at("token").get<token_id>());
  check.equal("history", history.size(), c.at("history_after_len").get<std::size_t>());
  same_draws(check, records, c.at("draws"));
  if (records.size() == 2 && c.at("draws").size() == 2)
    same_probabilities(check, scratch.kept, c.at("draws")[1].at("top"));
}

void replay_chunk(const json& c, const json& names, const at::Tensor& logits, case_check& check) {
  const auto& cfg = c.at("cfg");
  auto options = chat_options(cfg);
  auto banned = cfg.value("suppress_forbidden_tokens", true) ? ids(names.at("forbidden")) : std::vector<token_id>{};
  auto terminators = ids(names.at("terminators"));
  auto seen = ids(c.at("all_input_ids"));
  if (seen.size() > 128) seen.erase(seen.begin(), seen.end() - 128);
  auto chance = used_numbers(c);
  std::vector<llm::draw_record> records;
  llm::sampling_scratch scratch;
  if (!options.greedy) scratch.records = &records;
  std::vector<token_id> tokens;
  auto forwards = 0;
  auto finished = false;
  for (const auto& r : c.at("rows")) {
    auto row = row_of(logits, r);
    ++forwards;
    auto token = llm::draw_chat(row, banned, terminators, seen, options, chance, scratch);
    finished = std::find(terminators.begin(), terminators.end(), token) != terminators.end();
    if (finished) break;
    tokens.push_back(token);
    seen.push_back(token);
  }
  check.equal("tokens", tokens, ids(c.at("tokens")));
  check.equal("finished", finished, c.at("finished").get<bool>());
  check.equal("n_hidden", forwards - 1, c.at("n_hidden").get<int>());
  same_draws(check, records, c.at("draws"));
  if (!records.empty() && records.size() == c.at("draws").size())
    same_probabilities(check, scratch.kept, c.at("draws").back().at("top"));
}

void replay_hf(const json& c, const at::Tensor& logits, case_check& check) {
  auto options = chat_options(c);
  options.exact_top_k = false;
  auto row = row_of(logits, c.at("logits_row"));
  recorded_draws chance({0.5});
  llm::sampling_scratch scratch;
  llm::draw_chat(row, {}, {}, ids(c.at("history")), options, chance, scratch);
  check.equal("tokens with a probability", scratch.kept.size(), c.at("probs").size());
  same_probabilities(check, scratch.kept, c.at("probs"));
}

} // namespace

void replay_sampling(golden_set& files, const std::string& stem, report& out) {
  const auto& cases = files.cases(stem);
  auto logits = files.tensors(stem).tensor("logits");
  auto names = llm::make_duplex_sampling_ids(files.text(), quirks::literal());
  auto each = [&](const char* list, auto replay) {
    auto index = 0;
    for (const auto& c : cases.at(list))
      out.run(stem, list + ("." + std::to_string(index++)), thinker_tolerance,
              [&](case_check& check) { replay(c, check); });
  };
  each("duplex_decode",
       [&](const json& c, case_check& check) { replay_duplex_decode(c, cases, logits, names, check); });
  each("chunk_generate",
       [&](const json& c, case_check& check) { replay_chunk(c, cases.at("chunk_generate_ids"), logits, check); });
  each("hf", [&](const json& c, case_check& check) { replay_hf(c, logits, check); });
}

} // namespace parley::inference::verify
