#include "protocol/server_glance.hpp"

#include "protocol/base64.hpp"
#include "protocol/json_document.hpp"

#include <charconv>

namespace parley::protocol {
namespace {

std::size_t samples_in(json::value audio) {
  if (!audio.is(json::kind::string)) return 0;
  return base64::decoded_size(audio.raw()).value_or(0) / sizeof(float);
}

/// `input_<n>`.
std::int64_t ordinal(json::value id) {
  constexpr std::string_view prefix = "input_";
  std::int64_t number = 0;
  if (id.is(json::kind::string) && id.raw().starts_with(prefix))
    std::from_chars(id.raw().data() + prefix.size(), id.raw().data() + id.raw().size(), number);
  return number;
}

std::string text_of(json::value string) {
  return string.is(json::kind::string) ? json::unescape(string) : std::string();
}

} // namespace

std::optional<server_glance> glance(std::string_view frame) {
  const auto document = json::scan(frame);
  const auto event = json::root(document);
  const auto name = json::member(event, "type");
  if (!name.is(json::kind::string)) return std::nullopt;
  server_glance got;
  got.type = server_event_type_of(name.raw());
  if (got.type == server_event_type::spoken) {
    const auto kind = json::member(event, "kind");
    if (kind.is(json::kind::string) && kind.raw() == "listen") got.type = server_event_type::listen;
  }
  const auto text = json::member(event, "text");
  got.text = text.is(json::kind::string) && !text.raw().empty();
  got.audio_samples = samples_in(json::member(event, "audio"));
  const auto ends = json::member(event, "end_of_turn");
  got.end_of_turn = ends.is(json::kind::boolean) && ends.raw() == "true";
  got.input = ordinal(json::member(event, "input_id"));
  got.reason = text_of(json::member(event, "reason"));
  got.error_code = text_of(json::member(json::member(event, "error"), "code"));
  // The legacy dialect has one event a step, the current one marks the last.
  const bool legacy = name.raw() == "response.listen" || name.raw() == "response.output_audio.delta";
  const bool output = got.type == server_event_type::listen || got.type == server_event_type::spoken;
  const auto metrics = json::member(event, "metrics");
  got.answers_unit = legacy || (output && json::member(metrics, "wall_clock_ms").given());
  got.dropped_units = json::to_integer(json::member(metrics, "dropped_chunks")).value_or(0);
  return got;
}

} // namespace parley::protocol
