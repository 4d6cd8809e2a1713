#pragma once

#include "base/assert.hpp"
#include "protocol/errors.hpp"
#include "protocol/json/document.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace parley::protocol {

/// A value in a client's event, or its absence, with its name for messages.
struct field {
  json::value at;
  std::string path; ///< "input.audio"; empty for the event itself
};

/// Reads the fields of one event. Keeps the first error; the remaining fields can be read as if nothing had happened,
/// and the caller checks `failure` at the end. An optional field that is absent or null leaves its target unchanged
/// (docs/protocol.md 3).
class field_reader {
public:
  static constexpr int any = std::numeric_limits<int>::max();
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  bool failed() const { return failure_.has_value(); }
  /// Takes the recorded error out. Call it once.
  tl::unexpected<error> failure() {
    PARLEY_ASSERT(failure_, "something has failed");
    return tl::unexpected(std::move(*failure_));
  }

  /// Records what is wrong, as "path: what", unless an error was recorded before.
  void fail(error_code code, std::string_view path, std::string_view what);
  void fail(error other);

  /// The value of a result; if it is an error, records it and returns a default value.
  template<class T>
  T take(result<T> from) {
    if (from) return std::move(*from);
    fail(std::move(from.error()));
    return T();
  }

  /// A member by its canonical name or an alias, in order of preference: the first one that is given, else one that is
  /// null, else an absent field.
  static field find(const field& object, std::initializer_list<std::string_view> names);

  /// An array's element, named by its index.
  static field element(const field& array, json::value at, std::size_t index) {
    return {at, array.path + "[" + std::to_string(index) + "]"};
  }

  /// The first field if it is given, else the second if that is, else the first.
  static field either(const field& first, const field& second);

  /// A required member; records missing_field if it is absent.
  field require(const field& object, std::initializer_list<std::string_view> names);

  /// `from` if it is an object; absent if it is not given.
  field object(field from);

  /// `from` if it is an object; null and other types are errors.
  field required_object(field from);

  // Ranges include both ends. Another type or a number out of range records invalid_payload and leaves `into`
  // unchanged.
  template<class T>
  void boolean(const field& from, T& into) {
    if (auto read = read_boolean(from)) into = *read;
  }

  template<class T>
  void integer(const field& from, int least, int most, T& into) {
    if (auto read = read_integer(from, least, most)) into = *read;
  }

  template<class T>
  void number(const field& from, double least, double most, T& into) {
    if (auto read = read_number(from, least, most)) into = *read;
  }

  // The same for a number that never was text.
  void check_integer(std::string_view path, int least, int most, std::int64_t value);
  void check_number(std::string_view path, double least, double most, double value);

  /// Any 64-bit integer, signed or unsigned; negative ones wrap.
  void seed(const field& from, std::optional<std::uint64_t>& into);

  /// The decoded string, copied only if it has escapes, which are resolved in `scratch`. Nothing if `from` is absent.
  std::optional<std::string_view> text(const field& from, std::string& scratch);

  /// Like `text`, for a field that must be a string.
  std::string_view required_text(const field& from, std::string& scratch);

  /// A text that is kept: longer ones are refused before they are decoded.
  std::optional<std::string> short_text(const field& from, std::size_t most_bytes);

  /// What checking the schemas of the event may still cost (`grammar::object_to`).
  std::int64_t& schema_work() { return schema_work_; }

  /// The schemas of the event have been checked before, word for word.
  void trust_schemas() { trusts_schemas_ = true; }
  bool trusts_schemas() const { return trusts_schemas_; }

  static constexpr std::int64_t most_schema_work = 3'000'000;

  /// A name that only the client uses: a string, or a number as written. Empty if it is anything else, too long to be a
  /// name, or not given; none of these is an error.
  static std::string name(const field& from);

private:
  std::optional<bool> read_boolean(const field& from);
  std::optional<int> read_integer(const field& from, int least, int most);
  std::optional<double> read_number(const field& from, double least, double most);

  std::optional<error> failure_;
  std::int64_t schema_work_ = most_schema_work;
  bool trusts_schemas_ = false;
};

} // namespace parley::protocol
