#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A JSON text, checked as a whole in one pass and indexed in place: no DOM, nothing is copied out of the text. An 85 KB
// append has a dozen values, so its index fits into one small allocation.
namespace parley::protocol::json {

inline constexpr int max_depth = 32;                 ///< PROTOCOL.md 1
inline constexpr std::size_t max_values = 1'048'576; ///< bounds the index of a message to 16 MiB

/// The types of RFC 8259.
enum class kind : std::uint8_t { null, boolean, number, string, object, array };

/// One value. In an object, keys (strings) and values take turns.
struct node {
  std::uint32_t begin; ///< of its text, in bytes; for strings without the quotes
  std::uint32_t end;
  std::uint32_t next; ///< index of the first node behind it and all that it contains
  kind type;
  bool escaped; ///< a string with a backslash in it
};

/// What a scan found.
enum class verdict : std::uint8_t {
  good,
  malformed,      ///< not JSON (RFC 8259)
  too_deep,       ///< JSON, nested deeper than `max_depth`
  too_many_values ///< JSON, more than `max_values`
};

/// The index of a text, which has to outlive it. Thread-compatible.
struct document {
  std::string_view text;
  std::vector<node> nodes; ///< the first one is the root; empty unless `good`
  verdict outcome = verdict::malformed;
  std::size_t offset = 0; ///< of the first wrong byte, if malformed
};

/// Checks and indexes `text`, valid UTF-8 (the WebSocket layer closes with 1007 before us). Linear in its length,
/// whatever it holds.
document scan(std::string_view text);

/// A value of a document, or the absence of one. Views the document, which has to stay where it is.
class value {
public:
  value() = default;
  value(const document& of, std::uint32_t index) : document_(&of), index_(index) {}

  bool present() const { return document_ != nullptr; }

  /// Neither absent nor null: null counts as absent for optional fields (PROTOCOL.md 3).
  bool given() const { return present() && at().type != kind::null; }

  bool is(kind type) const { return present() && at().type == type; }

  /// The text of a number or literal; of a string what is between its quotes, escapes and all.
  std::string_view raw() const { return document_->text.substr(at().begin, at().end - at().begin); }

  bool escaped() const { return at().escaped; }

  const document& in() const { return *document_; }
  std::uint32_t index() const { return index_; }

private:
  const node& at() const { return document_->nodes[index_]; }

  const document* document_ = nullptr;
  std::uint32_t index_ = 0;
};

/// The document's outermost value.
value root(const document& of);

/// An object's member, the last one of that name; absent if there is none, or if `object` is absent or no object.
value member(value object, std::string_view name);

/// An array's elements, no more than `at_most`; none if `array` is absent or no array.
std::vector<value> elements(value array, std::size_t at_most);

/// A number, if it is one and a double can hold it.
std::optional<double> to_double(value number);

/// A number without a fraction (`20`, `20.0` and `2e1` alike), if it is one and fits.
std::optional<std::int64_t> to_integer(value number);

/// What a string means: escapes resolved, an unpaired surrogate becomes U+FFFD. UTF-8; may hold NUL.
std::string unescape(value string);

/// Whether a string (a key, for instance) means `text`.
bool means(value string, std::string_view text);

} // namespace parley::protocol::json
