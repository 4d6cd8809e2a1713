#include "inference/verify/families.hpp"

#include <algorithm>

namespace parley::inference::verify {

namespace {

using ids_type = std::vector<token_id>;

void replay_info(const tokenizer& text, const nlohmann::json& info, case_check& check) {
  check.equal("len", text.size(), info.at("len").get<token_id>());
  auto named = [&](const char* key, token_id mine) {
    check.equal(key, mine, info.at(key).at(1).get<token_id>());
    check.equal(key, text.find(info.at(key).at(0).get<std::string>()).value_or(-1), mine);
  };
  named("eos", text.eos());
  named("bos", text.bos());
  named("pad", text.pad());
  named("unk", text.unk());
  std::vector<std::pair<std::string, token_id>> added;
  for (const auto& [token, id] : info.at("added_tokens").items()) added.emplace_back(token, id.get<token_id>());
  std::sort(added.begin(), added.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  check.equal("added_tokens", text.added_tokens(), added);
  for (auto id : info.at("all_special_ids_sorted").get<ids_type>()) check.exact("special ids", text.is_special(id));
  check.equal("bad_token_ids", text.bad_token_ids().size(), info.at("n_bad_token_ids").get<std::size_t>());
  for (const auto& [token, id] : info.at("convert_probe").items())
    check.equal("convert " + token, text.id(token), id.get<token_id>());
}

void replay_both_ways(const tokenizer& text, const nlohmann::json& c, case_check& check) {
  auto ids = c.at("ids").get<ids_type>();
  if (c.contains("text")) check.equal("ids", text.encode(c["text"].get<std::string>()), ids);
  check.equal("decoded", text.decode(ids), c.at("decoded").get<std::string>());
  check.equal("decoded_skip_special", text.decode(ids, true), c.at("decoded_skip_special").get<std::string>());
}

void replay_stream(const tokenizer& text, const nlohmann::json& c, case_check& check) {
  stream_decoder decoder(text);
  for (std::size_t i = 0; i < c.at("chunks").size(); ++i) {
    const auto& chunk = c["chunks"][i];
    auto out = decoder.push(chunk.at("ids").get<ids_type>());
    if (chunk.at("finished").get<bool>()) out += decoder.finish();
    check.equal("chunk " + std::to_string(i), out, c.at("yields").at(i).at(0).get<std::string>());
  }
}

} // namespace

void replay_tokenizer(golden_set& files, const std::string& stem, report& out) {
  const auto& cases = files.cases(stem);
  auto full_directory = files.directory() / "tokenizer_full";
  std::optional<tokenizer> full;
  if (cases.contains("full")) full = tokenizer::open(full_directory);
  auto named = [&](const std::string& name) -> const tokenizer& {
    return name == "full" ? full.value() : files.text();
  };

  for (const auto& [section, content] : cases.items()) {
    if (section == "decode_random" || section == "streaming_decode") {
      for (std::size_t i = 0; i < content.size(); ++i)
        out.run(stem, section + "." + std::to_string(i), 0, [&](case_check& check) {
          const auto& text = named(content[i].at("tok").get<std::string>());
          section == "decode_random" ? replay_both_ways(text, content[i], check)
                                     : replay_stream(text, content[i], check);
        });
    } else if (content.is_object() && content.contains("cases")) {
      const auto& text = named(section);
      out.run(stem, section + ".info", 0, [&](case_check& check) { replay_info(text, content.at("info"), check); });
      for (std::size_t i = 0; i < content["cases"].size(); ++i)
        out.run(stem, section + ".cases." + std::to_string(i), 0,
                [&](case_check& check) { replay_both_ways(text, content["cases"][i], check); });
    } else {
      out.unknown(stem, section);
    }
  }
}

} // namespace parley::inference::verify
