#include "protocol/trace/otlp_json.hpp"

#include "base/utf8.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/trace/context.hpp"

#include <charconv>
#include <cmath>
#include <cstddef>

namespace parley::protocol::trace {
namespace {

constexpr std::size_t most_text = 256;
constexpr std::int64_t remote_is_known = 0x100, is_remote = 0x200; // bits of Span.flags

std::string_view shortened(std::string_view text) {
  return base::utf8::truncate(text, most_text);
}

/// Integers of 64 bits are strings there.
void write_long(json::object_writer& to, std::string_view key, std::int64_t value) {
  to.text(key, std::to_string(value));
}

struct value_writer {
  json::object_writer& to;

  void operator()(const std::string& text) const { to.text("stringValue", shortened(text)); }
  void operator()(std::int64_t number) const { write_long(to, "intValue", number); }
  void operator()(double number) const {
    std::array<char, 32> digits{};
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), std::isfinite(number) ? number : 0).ptr;
    to.json("doubleValue", {digits.data(), static_cast<std::size_t>(end - digits.data())});
  }
};

std::string written(const attribute& one) {
  std::string out;
  json::object_writer object(out);
  object.text("key", shortened(one.key));
  auto value = object.object("value");
  if (one.list) {
    std::string only;
    json::object_writer member(only);
    std::visit(value_writer{member}, one.value);
    member.close();
    auto list = value.object("arrayValue");
    list.json("values", "[" + only + "]");
    list.close();
  } else {
    std::visit(value_writer{value}, one.value);
  }
  value.close();
  object.close();
  return out;
}

std::string written(const moment& one) {
  std::string out;
  json::object_writer object(out);
  write_long(object, "timeUnixNano", one.at_ns);
  object.text("name", one.name);
  object.close();
  return out;
}

std::string written(const span& one);

template<class Items>
std::string list_of(const Items& items) {
  std::string out = "[";
  for (const auto& each : items) out.append(out.size() > 1 ? "," : "").append(written(each));
  return out += ']';
}

std::string written(const span& one) {
  std::string out;
  json::object_writer object(out);
  object.text("traceId", hex(one.trace));
  object.text("spanId", hex(one.id));
  if (one.state) object.text("traceState", *one.state);
  if (one.parent) object.text("parentSpanId", hex(*one.parent));
  object.integer("flags", one.flags | remote_is_known | (one.parent_is_remote ? is_remote : 0));
  object.text("name", shortened(one.name));
  object.integer("kind", static_cast<std::int64_t>(one.kind));
  write_long(object, "startTimeUnixNano", one.start_ns);
  write_long(object, "endTimeUnixNano", one.end_ns);
  if (!one.attributes.empty()) object.json("attributes", list_of(one.attributes));
  if (!one.moments.empty()) object.json("events", list_of(one.moments));
  if (!one.error.empty()) {
    auto status = object.object("status");
    status.integer("code", 2); // ERROR
    status.close();
  }
  object.close();
  return out;
}

} // namespace

std::string encode(const resource& from, std::span<const span> spans) {
  std::string out;
  json::object_writer request(out);
  std::string all;
  json::object_writer resource_spans(all);
  auto sender = resource_spans.object("resource");
  sender.json("attributes", list_of(from.attributes));
  sender.close();
  std::string ours;
  json::object_writer scope_spans(ours);
  auto scope = scope_spans.object("scope");
  scope.text("name", "parley");
  scope.text("version", from.version);
  scope.close();
  scope_spans.json("spans", list_of(spans));
  scope_spans.close();
  resource_spans.json("scopeSpans", "[" + ours + "]");
  resource_spans.close();
  request.json("resourceSpans", "[" + all + "]");
  request.close();
  return out;
}

} // namespace parley::protocol::trace
