#pragma once

#include "protocol/json/document.hpp"
#include "protocol/openai/shared/fault.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace parley::protocol::openai {

/// A string of a client's event: a view of the frame, or a copy if it has escapes there. Some writers escape every slash
/// of base64.
struct borrowed_text {
  std::string_view in_frame;
  std::string unescaped{};

  std::string_view view() const { return unescaped.empty() ? in_frame : unescaped; }
};

/// The members of one object in a client's event. Keeps the first fault of the event in `first`; afterwards reading goes
/// on with defaults, and the caller checks at the end. Null counts as absent.
class field_set {
public:
  field_set(json::value object, std::string path, std::optional<fault>& first)
      : object_(object), path_(std::move(path)), first_(&first) {}

  /// Whether the object itself is there.
  bool given() const { return object_.given(); }

  json::value at(std::string_view name) const { return json::member(object_, name); }
  bool has(std::string_view name) const { return at(name).present(); }

  /// Present and null.
  bool is_null(std::string_view name) const { return at(name).is(json::kind::null); }

  static constexpr std::size_t longest_name = 512; ///< bytes of a name or an id

  // A longer text is refused before it is copied.
  json::value require(std::string_view name);
  std::string required_text(std::string_view name, std::size_t most_bytes = longest_name);
  std::optional<std::string> text(std::string_view name, std::size_t most_bytes = longest_name);
  std::optional<borrowed_text> borrowed(std::string_view name, std::size_t most_bytes); ///< the same, for long texts

  /// A name that the server repeats.
  std::optional<std::string> short_text(std::string_view name) { return text(name, 256); }
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t least, std::int64_t most);
  std::optional<std::int64_t> required_integer(std::string_view name, std::int64_t least, std::int64_t most);
  std::optional<double> number(std::string_view name, double least, double most);
  std::optional<bool> boolean(std::string_view name);

  /// The first of several spellings of one member that is given; if none is, the first.
  std::string_view spelled(std::initializer_list<std::string_view> names) const;

  /// Refuses members that have another name and are not null: a wish that has no effect may cost its client something.
  void only(std::span<const std::string_view> names);

  /// A nested object; not `given` if it is absent, null or wrong.
  field_set object(std::string_view name);

  void fail(fault why) {
    if (!*first_) *first_ = std::move(why);
  }
  void refuse_value(std::string_view name, std::string_view why) { fail(invalid_value(path_of(name), why).value()); }
  bool failed() const { return first_->has_value(); }
  std::string path_of(std::string_view name) const;

private:
  void refuse_type(std::string_view name, std::string_view wanted);

  json::value object_;
  std::string path_;
  std::optional<fault>* first_;
};

} // namespace parley::protocol::openai
