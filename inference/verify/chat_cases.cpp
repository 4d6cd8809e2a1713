#include "inference/tts/condition.hpp"
#include "inference/verify/chat_replay.hpp"
#include "inference/verify/families.hpp"
#include "inference/verify/half_duplex_cases.hpp"

#include <ATen/ATen.h>

namespace parley::inference::verify {

namespace {

using nlohmann::json;

std::vector<token_id> ids(const json& j) {
  return j.get<std::vector<token_id>>();
}

/// Strips surrounding white space like Python (ASCII only).
std::string trimmed(const std::string& text) {
  constexpr std::string_view space = " \t\n\v\f\r\x1c\x1d\x1e\x1f";
  auto begin = text.find_first_not_of(space);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(space) + 1 - begin);
}

void replay_template(golden_set& files, const json& c, case_check& check) {
  auto talk = read_talk(files, c.at("messages"), "\n");
  chat::template_options how{c.at("add_generation_prompt"), c.at("enable_thinking"), c.at("use_tts_template")};
  auto text = chat::apply_template(talk.messages, how);
  check.equal("prompt", text.text, c.at("prompt").get<std::string>());
  check.equal("ids", files.text().encode(text.text), ids(c.at("ids")));
}

void replay_chat(golden_set& files, const thinker& model, const json& c, const json& cases,
                 const safetensors_file& golden, case_check& check) {
  const auto& kw = c.at("kwargs");
  auto by_seconds = kw.value("stream_input", false);
  auto talk = read_talk(files, c.at("messages"), by_seconds || kw.value("omni_mode", false) ? "" : "\n",
                        picture_arguments::of(kw));
  chat::template_options how;
  how.enable_thinking = kw.value("enable_thinking", false);
  how.use_tts_template = kw.value("use_tts_template", false) || !talk.sounds.empty();
  auto text = chat::apply_template(talk.messages, how);
  check.equal("prompt", text.text, c.at("prompt").get<std::string>());

  chat_replay session(model);
  auto prompt = session.encode(text, talk, by_seconds);
  if (auto most = kw.value("max_inp_length", std::int64_t{8192}); std::ssize(prompt.ids) > most)
    prompt.ids.resize(static_cast<std::size_t>(most));
  check.equal("input_ids", prompt.ids, ids(c.at("input_ids")));
  std::vector<chat::bound> bounds;
  for (const auto& b : c.at("audio_bounds")) bounds.push_back({b[0], b[1]});
  check.equal("audio_bounds", prompt.audio, bounds);
  bounds.clear();
  for (const auto& b : c.value("image_bound", json::array())) bounds.push_back({b[0], b[1]});
  check.equal("image_bound", prompt.image, bounds);

  auto max_new_tokens = kw.at("max_new_tokens").get<int>();
  auto hidden = session.prefill(prompt, talk);
  std::vector<token_id> tokens;
  std::vector<at::Tensor> states{hidden};
  if (auto beams = kw.value("num_beams", 3); beams > 1)
    tokens = session.search_beams(hidden, beams, max_new_tokens, kw.value("repetition_penalty", 1.2));
  else
    tokens = session.generate(hidden, max_new_tokens, kw.value("repetition_penalty", 1.02), &states);
  check.equal("generated_ids", tokens, ids(c.at("generated_ids")));
  std::string raw;
  check.equal("answer", stripped_answer(files.text(), tokens, raw), c.at("answer").get<std::string>());
  check.equal("decoded_raw", raw, c.at("decoded_raw").get<std::string>());

  auto key = "chat." + c.at("name").get<std::string>();
  if (!has_golden(golden, key + ".tts_inputs_embeds")) return;
  const auto& spoken = cases.at(c.at("name").get<std::string>());
  auto all = prompt.ids;
  all.insert(all.end(), tokens.begin(), tokens.end());
  check.equal("full_sequence", all, ids(spoken.at("full_sequence")));
  auto fed = at::cat(states);
  check.equal("n_hidden_rows", fed.size(0), spoken.at("n_hidden_rows").get<std::int64_t>());
  check.close("hidden", fed, golden_of(golden, key + ".last_hidden_of_fed_tokens"));
  auto begin = spoken.at("tts_bound")[0].get<std::size_t>(), end = spoken["tts_bound"][1].get<std::size_t>();
  llm::tts_condition condition(files.config().tts, files.view("tts."));
  auto count = static_cast<std::int64_t>(end - begin);
  check.close("tts_inputs_embeds",
              condition.chat(std::span(all).subspan(begin, end - begin),
                             fed.narrow(0, static_cast<std::int64_t>(begin), count)),
              golden_of(golden, key + ".tts_inputs_embeds"));
}

void replay_streaming(const thinker& model, const chat::prompt_ids& prompt, const recorded_talk& talk, const json& v,
                      const safetensors_file& golden, case_check& check) {
  const auto& kw = v.at("kwargs");
  chat_replay session(model);
  session.prefill(prompt, talk);
  chat::template_options how;
  how.enable_thinking = kw.value("enable_thinking", false);
  how.use_tts_template = kw.value("use_tts_template", true);
  auto opening = model.text().encode("<|im_end|>\n" + chat::generation_prompt(how));
  // The number of chunks is not recorded; the recordings used chunks of 40 tokens.
  auto chunks = session.stream(opening, 40, kw.value("length_penalty", 1.0));
  check.equal("chunks", chunks.size(), v.at("chunks").size());
  for (auto i = std::size_t{0}; i < std::min(chunks.size(), v["chunks"].size()); ++i) {
    const auto& expected = v["chunks"][i];
    check.equal("ids", chunks[i].ids, ids(expected.at("ids")));
    check.equal("finished", chunks[i].finished, expected.at("finished").get<bool>());
    auto rows = chunks[i].hidden.defined() ? chunks[i].hidden.size(0) : 0;
    check.equal("n_hidden", rows, expected.at("n_hidden").get<std::int64_t>());
    check.equal("yield", json::array({chunks[i].text, chunks[i].finished}), v.at("yields").at(i));
  }
  check.equal("kv_end", session.cache.length(), v.at("kv_end").get<std::int64_t>());
  auto key = v.at("hidden_key").get<std::string>() + ".hidden_first_chunk";
  if (has_golden(golden, key)) check.close("hidden", chunks.front().hidden, golden_of(golden, key));
}

void replay_prefill(golden_set& files, const thinker& model, const std::string& stem, const json& c, report& out) {
  auto name = "non_streaming_prefill." + c.at("name").get<std::string>();
  const auto& golden = files.tensors(stem);
  auto talk = read_talk(files, c.at("messages"), "\n", picture_arguments::of(c.at("kwargs")));
  chat::template_options how;
  how.generation_prompt = false;
  auto text = chat::apply_template(talk.messages, how);
  auto prompt = chat_replay(model).encode(text, talk, false);
  out.run(stem, name, thinker_tolerance, [&](case_check& check) {
    check.equal("prompt", text.text, c.at("prompt").get<std::string>());
    check.equal("input_ids", prompt.ids, ids(c.at("input_ids")));
    chat_replay session(model);
    session.prefill(prompt, talk);
    check.equal("kv_after_prefill", session.cache.length(), c.at("kv_after_prefill").get<std::int64_t>());
    // One beam: the first token is the argmax, and 16 more are generated after it.
    how.use_tts_template = true;
    auto hidden = session.feed(files.text().encode("<|im_end|>\n" + chat::generation_prompt(how)));
    auto tokens = session.generate(hidden, 1, 1.0);
    if (tokens.front() != files.text().eos()) {
      auto rest = session.generate(session.feed(tokens), 16, 1.02);
      tokens.insert(tokens.end(), rest.begin(), rest.end());
    }
    std::string raw;
    check.equal("greedy1", trimmed(stripped_answer(files.text(), tokens, raw)),
                c.at("non_streaming_generate_greedy1").get<std::string>());
  });
  for (const auto& v : c.at("variants"))
    out.run(stem, v.at("hidden_key").get<std::string>(), thinker_tolerance,
            [&](case_check& check) { replay_streaming(model, prompt, talk, v, golden, check); });
}

} // namespace

void replay_chat_family(golden_set& files, const std::string& stem, report& out) {
  const auto& cases = files.cases(stem);
  const auto& golden = files.tensors(stem);
  thinker model(files.weights(), files.config(), files.dtype(), files.device());
  auto index = 0;
  for (const auto& c : cases.at("template_only"))
    out.run(stem, "template_only." + std::to_string(index++), thinker_tolerance,
            [&](case_check& check) { replay_template(files, c, check); });
  for (const auto& c : cases.at("chat")) {
    auto name = "chat." + c.at("name").get<std::string>();
    out.run(stem, name, thinker_tolerance,
            [&](case_check& check) { replay_chat(files, model, c, cases, golden, check); });
  }
  for (const auto& c : cases.at("non_streaming_prefill")) replay_prefill(files, model, stem, c, out);
  for (const auto& c : cases.at("half_duplex"))
    out.run(stem, "half_duplex." + c.at("name").get<std::string>(), thinker_tolerance,
            [&](case_check& check) { replay_half_duplex(files, model, c, check); });
}

} // namespace parley::inference::verify
