#include "base/utf8.hpp"
#include "protocol/json/document.hpp"
#include "tests/fuzz/fuzz.hpp"

#include <nlohmann/json.hpp>

namespace json = parley::protocol::json;

namespace {

enum class opinion { json, no_json, number_too_large };

/// What another JSON reader says about the text.
opinion of_another(std::string_view text) {
  try {
    const auto parsed = nlohmann::json::parse(text);
    return parsed.is_discarded() ? opinion::no_json : opinion::json;
  } catch (const nlohmann::json::out_of_range&) {
    return opinion::number_too_large;
  } catch (const nlohmann::json::exception&) {
    return opinion::no_json;
  }
}

/// The WebSocket layer rejects everything else.
bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto length = parley::base::utf8::sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void walk(const json::document& of) {
  for (auto i = 0U; i < of.nodes.size(); ++i) {
    const auto& node = of.nodes[i];
    parley::test::expect(node.begin <= node.end && node.end <= of.text.size(), "a value lies within its text");
    parley::test::expect(node.next > i && node.next <= of.nodes.size(), "the next value lies behind");
    const json::value v(of, i);
    if (v.is(json::kind::string)) static_cast<void>(json::unescape(v));
    static_cast<void>(json::to_double(v));
    static_cast<void>(json::to_integer(v));
    static_cast<void>(json::elements(v, 4));
    static_cast<void>(json::member(v, "type"));
  }
}

} // namespace

void parley::test::fuzz(std::string_view bytes) {
  const auto document = json::scan(bytes);
  if (document.outcome == json::verdict::good) walk(document);
  if (document.outcome == json::verdict::too_deep || !is_utf8(bytes)) return;
  // The other reader takes a NUL for the end of its input and refuses unpaired surrogates.
  for (const auto odd : {std::string_view("\0", 1), std::string_view("\\ud"), std::string_view("\\uD")})
    if (bytes.find(odd) != bytes.npos) return;
  const auto other = of_another(bytes);
  if (other == opinion::number_too_large) return;
  expect((document.outcome == json::verdict::good) == (other == opinion::json), "two readers of JSON agree");
}
