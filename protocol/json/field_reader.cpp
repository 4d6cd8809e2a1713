#include "protocol/json/field_reader.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace parley::protocol {
namespace {

std::string show(double number) {
  std::array<char, 32> out;
  return {out.data(), std::to_chars(out.data(), out.data() + out.size(), number).ptr};
}

std::string outside(std::string_view raw, std::string_view least, std::string_view most) {
  auto shown = raw.size() > 32 ? std::string(raw.substr(0, 29)).append("...") : std::string(raw);
  return shown.append(" is outside ").append(least).append("..").append(most);
}

std::string member_path(const field& object, std::string_view name) {
  return object.path.empty() ? std::string(name) : std::string(object.path).append(".").append(name);
}

} // namespace

void field_reader::fail(error_code code, std::string_view path, std::string_view what) {
  fail({code, std::string(path).append(": ").append(what)});
}

void field_reader::fail(error other) {
  if (!failure_) failure_ = std::move(other);
}

field field_reader::find(const field& object, std::initializer_list<std::string_view> names) {
  field null_one;
  for (auto name : names) {
    auto at = json::member(object.at, name);
    if (at.given()) return {at, member_path(object, name)};
    if (at.present() && !null_one.at.present()) null_one = {at, member_path(object, name)};
  }
  return null_one.at.present() ? null_one : field{{}, member_path(object, *names.begin())};
}

field field_reader::either(const field& first, const field& second) {
  return first.at.given() ? first : second.at.given() ? second : first;
}

field field_reader::require(const field& object, std::initializer_list<std::string_view> names) {
  auto found = find(object, names);
  if (!found.at.present()) fail(error_code::missing_field, found.path, "required");
  return found;
}

field field_reader::object(field from) {
  if (!from.at.given()) return {{}, std::move(from.path)};
  return required_object(std::move(from));
}

field field_reader::required_object(field from) {
  if (from.at.is(json::kind::object)) return from;
  fail(error_code::invalid_payload, from.path, "not an object");
  return {{}, std::move(from.path)};
}

void field_reader::seed(const field& from, std::optional<std::uint64_t>& into) {
  if (!from.at.given()) return;
  if (auto small = json::to_integer(from.at)) {
    into = static_cast<std::uint64_t>(*small);
    return;
  }
  std::uint64_t large = 0;
  auto raw = from.at.raw();
  auto [end, failure] = std::from_chars(raw.data(), raw.data() + raw.size(), large);
  if (from.at.is(json::kind::number) && failure == std::errc() && end == raw.data() + raw.size()) {
    into = large;
  } else {
    fail(error_code::invalid_payload, from.path, "not a 64-bit integer");
  }
}

std::optional<std::string_view> field_reader::text(const field& from, std::string& scratch) {
  if (!from.at.given()) return {};
  if (!from.at.is(json::kind::string)) {
    fail(error_code::invalid_payload, from.path, "not a string");
    return {};
  }
  if (!from.at.escaped()) return from.at.raw();
  scratch = json::unescape(from.at);
  return scratch;
}

std::optional<std::string> field_reader::short_text(const field& from, std::size_t most_bytes) {
  if (from.at.is(json::kind::string)) {
    if (auto text = json::unescape(from.at, most_bytes)) return text;
    fail(error_code::invalid_payload, from.path, "more than " + std::to_string(most_bytes) + " bytes");
    return {};
  }
  std::string scratch;
  text(from, scratch); // says what is wrong
  return {};
}

std::string field_reader::name(const field& from) {
  constexpr std::size_t longest = 256;
  if (from.at.is(json::kind::string)) {
    return json::unescape(from.at, longest).value_or("");
  }
  const auto number = from.at.is(json::kind::number) ? from.at.raw() : std::string_view();
  return number.size() <= longest ? std::string(number) : std::string();
}

std::string_view field_reader::required_text(const field& from, std::string& scratch) {
  if (auto read = text(from, scratch)) return *read;
  fail(error_code::invalid_payload, from.path, "not a string");
  return {};
}

std::optional<bool> field_reader::read_boolean(const field& from) {
  if (!from.at.given()) return {};
  if (from.at.is(json::kind::boolean)) return from.at.raw() == "true";
  fail(error_code::invalid_payload, from.path, "neither true nor false");
  return {};
}

std::optional<int> field_reader::read_integer(const field& from, int least, int most) {
  if (!from.at.given()) return {};
  auto read = json::to_integer(from.at);
  if (read && *read >= least && *read <= most) return static_cast<int>(*read);
  auto whole = json::to_double(from.at);
  if (!from.at.is(json::kind::number) || (!read && whole && std::trunc(*whole) != *whole)) {
    fail(error_code::invalid_payload, from.path, "not an integer");
  } else {
    fail(error_code::invalid_payload, from.path,
         outside(from.at.raw(), std::to_string(least), most == any ? "" : std::to_string(most)));
  }
  return {};
}

void field_reader::check_integer(std::string_view path, int least, int most, std::int64_t value) {
  if (value >= least && value <= most) return;
  fail(error_code::invalid_payload, path,
       outside(std::to_string(value), std::to_string(least), most == any ? "" : std::to_string(most)));
}

void field_reader::check_number(std::string_view path, double least, double most, double value) {
  if (value >= least && value <= most) return;
  fail(error_code::invalid_payload, path, outside(show(value), show(least), most == unlimited ? "" : show(most)));
}

std::optional<double> field_reader::read_number(const field& from, double least, double most) {
  if (!from.at.given()) return {};
  auto read = json::to_double(from.at);
  if (read && *read >= least && *read <= most) return read;
  if (from.at.is(json::kind::number)) {
    fail(error_code::invalid_payload, from.path,
         outside(from.at.raw(), show(least), most == unlimited ? "" : show(most)));
  } else {
    fail(error_code::invalid_payload, from.path, "not a number");
  }
  return {};
}

} // namespace parley::protocol
