#include "actors/recording/recording_facts.hpp"

#include "protocol/json/document.hpp"
#include "protocol/json/writer.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

namespace parley::actors {

namespace {

using facts = recording_facts;

constexpr std::array<std::pair<std::string_view, std::string facts::*>, 7> texts{{
    {"session_id", &facts::id},
    {"legacy_id", &facts::legacy_id},
    {"folder", &facts::folder},
    {"key", &facts::key},
    {"mode", &facts::mode},
    {"state", &facts::state},
    {"reason", &facts::reason},
}};

constexpr std::array<std::pair<std::string_view, std::int64_t facts::*>, 7> numbers{{
    {"started_ms", &facts::started_ms},
    {"input_samples", &facts::input_samples},
    {"output_samples", &facts::output_samples},
    {"pictures", &facts::pictures},
    {"events", &facts::events},
    {"dropped", &facts::dropped},
    {"bytes", &facts::bytes},
}};

} // namespace

std::string utc_date(std::int64_t unix_ms) {
  const auto days = std::chrono::floor<std::chrono::days>(
      std::chrono::sys_time<std::chrono::milliseconds>(std::chrono::milliseconds(unix_ms)));
  const std::chrono::year_month_day date(days);
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  return text.data();
}

std::string to_json(const recording_facts& facts) {
  std::string out;
  protocol::json::object_writer write(out);
  for (const auto& [name, member] : texts) write.text(name, facts.*member);
  for (const auto& [name, member] : numbers) write.integer(name, facts.*member);
  write.number("seconds", facts.seconds, 3);
  write.close();
  return out;
}

std::optional<recording_facts> facts_from_json(std::string_view text) {
  const auto whole = protocol::json::scan(text);
  const auto root = protocol::json::root(whole);
  if (!root.is(protocol::json::kind::object)) return std::nullopt;
  recording_facts out;
  for (const auto& [name, member] : texts) {
    const auto at = protocol::json::member(root, name);
    if (!at.is(protocol::json::kind::string)) return std::nullopt;
    out.*member = protocol::json::unescape(at);
  }
  for (const auto& [name, member] : numbers) {
    const auto read = protocol::json::to_integer(protocol::json::member(root, name));
    if (!read) return std::nullopt;
    out.*member = *read;
  }
  out.seconds = protocol::json::to_double(protocol::json::member(root, "seconds")).value_or(0);
  return out;
}

} // namespace parley::actors
