#include "protocol/openai/shared/field_set.hpp"

#include "base/utf8.hpp"

#include <algorithm>

namespace parley::protocol::openai {

std::string field_set::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void field_set::refuse_type(std::string_view name, std::string_view wanted) {
  const std::string path = path_of(name);
  fail({"invalid_type", "Invalid type for '" + path + "': expected " + std::string(wanted) + ".", path});
}

json::value field_set::require(std::string_view name) {
  const auto found = at(name);
  const std::string path = path_of(name);
  if (!found.given()) fail({"missing_required_parameter", "Missing required parameter: '" + path + "'.", path});
  return found;
}

std::string field_set::required_text(std::string_view name, std::size_t most_bytes) {
  return require(name).given() ? text(name, most_bytes).value_or("") : std::string();
}

std::optional<std::string> field_set::text(std::string_view name, std::size_t most_bytes) {
  const auto found = at(name);
  if (!found.given()) return std::nullopt;
  if (!found.is(json::kind::string)) {
    refuse_type(name, "a string");
    return std::nullopt;
  }
  auto read = json::unescape(found, most_bytes);
  if (!read) refuse_value(name, "it is longer than " + std::to_string(most_bytes) + " bytes.");
  return read;
}

std::optional<borrowed_text> field_set::borrowed(std::string_view name, std::size_t most_bytes) {
  const auto found = at(name);
  if (found.is(json::kind::string) && !found.escaped() && found.raw().size() <= most_bytes)
    return borrowed_text{found.raw()};
  auto unescaped = text(name, most_bytes);
  if (!unescaped) return std::nullopt;
  return borrowed_text{{}, *std::move(unescaped)};
}

std::optional<std::int64_t> field_set::integer(std::string_view name, std::int64_t least, std::int64_t most) {
  const auto found = at(name);
  if (!found.given()) return std::nullopt;
  const auto read = json::to_integer(found);
  if (!read) {
    refuse_type(name, "an integer");
  } else if (*read < least || *read > most) {
    refuse_value(name, "it must be between " + std::to_string(least) + " and " + std::to_string(most) + ".");
    return std::nullopt;
  }
  return read;
}

std::optional<std::int64_t> field_set::required_integer(std::string_view name, std::int64_t least, std::int64_t most) {
  return require(name).given() ? integer(name, least, most) : std::nullopt;
}

std::optional<double> field_set::number(std::string_view name, double least, double most) {
  const auto found = at(name);
  if (!found.given()) return std::nullopt;
  const auto read = json::to_double(found);
  if (!read) {
    refuse_type(name, "a number");
  } else if (*read < least || *read > most) {
    refuse_value(name, "it is out of range.");
    return std::nullopt;
  }
  return read;
}

std::optional<bool> field_set::boolean(std::string_view name) {
  const auto found = at(name);
  if (!found.given()) return std::nullopt;
  if (found.is(json::kind::boolean)) return found.raw() == "true";
  refuse_type(name, "a boolean");
  return std::nullopt;
}

std::string_view field_set::spelled(std::initializer_list<std::string_view> names) const {
  const auto found = std::find_if(names.begin(), names.end(), [&](auto name) { return at(name).given(); });
  return found == names.end() ? *names.begin() : *found;
}

void field_set::only(std::span<const std::string_view> names) {
  constexpr std::size_t most_members = 128, most_shown = 64;
  const auto all = json::members(object_, most_members + 1);
  if (all.size() > most_members)
    return fail(invalid_value(path_.empty() ? "event" : path_, "it has more than 128 members.").value());
  for (const auto& [key, value] : all) {
    if (!value.given()) continue;
    if (std::any_of(names.begin(), names.end(), [&](auto name) { return json::means(key, name); })) continue;
    const auto path = path_of(base::utf8::truncate(json::unescape(key), most_shown));
    return fail({"unknown_parameter", "Unknown parameter: '" + path + "'.", path});
  }
}

field_set field_set::object(std::string_view name) {
  const auto found = at(name);
  if (found.given() && !found.is(json::kind::object)) refuse_type(name, "an object");
  return {found.is(json::kind::object) ? found : json::value(), path_of(name), *first_};
}

} // namespace parley::protocol::openai
