#pragma once

#include "protocol/errors.hpp"
#include "protocol/json_document.hpp"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace parley::protocol {

/// A value in a client's event, or the lack of one, and what to call it in a message.
struct field {
  json::value at;
  std::string path; ///< "input.audio"; empty for the event itself
};

/// Reads the fields of one event. The first thing wrong is kept and the rest may be read as if nothing were: whoever
/// called looks at `failure` in the end. An optional field that is absent or null leaves its target as it is
/// (PROTOCOL.md 3).
class field_reader {
public:
  static constexpr int any = std::numeric_limits<int>::max();
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  bool failed() const { return failure_.has_value(); }
  tl::unexpected<error> failure() { return tl::unexpected(std::move(*failure_)); }

  /// Notes what is wrong, unless something was before: "path: what".
  void fail(error_code code, std::string_view path, std::string_view what);
  void fail(error other);

  /// The value of a result; a default one after noting its error.
  template<class T>
  T take(result<T> from) {
    if (from) return std::move(*from);
    fail(std::move(from.error()));
    return T();
  }

  /// A member by its canonical name and aliases, best first: the first one given, else one that is null, else none.
  static field find(const field& object, std::initializer_list<std::string_view> names);

  /// The first of the fields that is given, else the first.
  static field either(const field& first, const field& second);

  /// A member that has to be there; missing_field if it is not.
  field require(const field& object, std::initializer_list<std::string_view> names);

  /// `from` if it is an object; absent if it is not given.
  field object(field from);

  /// `from` if it is an object: null and other types are wrong.
  field required_object(field from);

  // Ranges include both ends. Another type or a number outside is invalid_payload, and leaves `into` as it is.
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

  /// Any 64-bit integer, signed or not; negative ones wrap.
  void seed(const field& from, std::optional<std::uint64_t>& into);

  /// What a string means, without a copy unless it has escapes; those are resolved in `scratch`. Nothing if `from` is
  /// not given.
  std::optional<std::string_view> text(const field& from, std::string& scratch);

  /// `text` for a field that has to be a string.
  std::string_view required_text(const field& from, std::string& scratch);

  /// A name that only the client understands: a string, or a number as it is written. Empty if it is anything else, is too
  /// long to be a name, or is not given; none of that is an error.
  static std::string name(const field& from);

private:
  std::optional<bool> read_boolean(const field& from);
  std::optional<int> read_integer(const field& from, int least, int most);
  std::optional<double> read_number(const field& from, double least, double most);

  std::optional<error> failure_;
};

} // namespace parley::protocol
