#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parley::grammar {

/// A JSON value as it was written: numbers keep their digits, members their order. Of members with one name the last counts.
struct json_value {
  enum class kind : std::uint8_t { null, boolean, number, string, array, object };

  kind type = kind::null;
  bool truth = false;
  std::string text{}; ///< of a string, decoded; of a number, as written
  std::string name{}; ///< that it has as a member of an object
  std::vector<json_value> members{};
  std::vector<json_value> elements{};

  bool is(kind other) const { return type == other; }
  const json_value* find(std::string_view name) const; ///< null if there is none, or this is no object
};

/// Nothing if `text` is not JSON, or nested deeper than 64.
std::optional<json_value> read_json(std::string_view text);

/// Appends `of` without spaces.
void append_json(const json_value& of, std::string& out);
std::string json_text(std::string_view of); ///< a string with its quotes

/// As JSON Schema has it: numbers by value, members in any order. `work` is lowered by what was compared.
bool same(const json_value& a, const json_value& b, std::int64_t& work);

} // namespace parley::grammar
