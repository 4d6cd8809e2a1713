#pragma once

#include "protocol/json/field_reader.hpp"

#include <optional>
#include <string>
#include <string_view>

// What goes through the numbers of an event: the same list of names, bounds and members serves JSON and events that never
// were text.
namespace parley::protocol {

/// Reads them from the members of a JSON object.
struct number_reader {
  field_reader& in;
  const field& from;

  field at(std::string_view name) const { return field_reader::find(from, {name}); }
  std::string path(std::string_view name) const { return at(name).path; }
  void number(std::string_view name, double least, double most, auto& into) { in.number(at(name), least, most, into); }
  void integer(std::string_view name, int least, int most, auto& into) { in.integer(at(name), least, most, into); }
};

/// Judges the values that an event has; none = the client has not chosen one.
struct number_checker {
  field_reader& in;
  std::string_view prefix; ///< of their paths

  std::string path(std::string_view name) const { return std::string(prefix).append(name); }
  void number(std::string_view name, double least, double most, std::optional<double> value) {
    if (value) in.check_number(path(name), least, most, *value);
  }
  void integer(std::string_view name, int least, int most, std::optional<int> value) {
    if (value) in.check_integer(path(name), least, most, *value);
  }
};

} // namespace parley::protocol
