#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// A JSON text, checked as a whole in one pass and indexed in place: no DOM, and nothing is copied out of the text. An
// 85 KB append has about a dozen values, so its index fits into one small allocation.
namespace parley::protocol::json {

inline constexpr int max_depth = 32;                 ///< docs/protocol.md 1
inline constexpr std::size_t max_values = 1'048'576; ///< limits the index of a message to 16 MiB

/// The types of RFC 8259.
enum class kind : std::uint8_t { null, boolean, number, string, object, array };

/// One value. In an object, keys (strings) and values alternate.
struct node {
  std::uint32_t begin; ///< offset of its text in bytes; for strings inside the quotes
  std::uint32_t end;
  std::uint32_t next; ///< index of the first node after it and all its contents
  kind type;
  bool escaped; ///< the string contains a backslash
};

/// The result of a scan.
enum class verdict : std::uint8_t {
  good,
  malformed,      ///< not JSON (RFC 8259)
  too_deep,       ///< JSON, nested deeper than `max_depth`
  too_many_values ///< JSON with more than `max_values` values
};

/// The index of a text, which must outlive it. Thread-compatible.
struct document {
  std::string_view text;
  std::vector<node> nodes; ///< the root comes first; empty unless `good`
  verdict outcome = verdict::malformed;
  std::size_t offset = 0; ///< of the first wrong byte, if malformed
};

/// Checks and indexes `text`, which must be valid UTF-8 (the WebSocket layer closes with 1007 otherwise). Takes linear
/// time, whatever it contains.
document scan(std::string_view text);

/// A value in a document, or its absence. Refers to the document, which must not move.
class value {
public:
  value() = default;
  value(const document& of, std::uint32_t index) : document_(&of), index_(index) {}

  bool present() const { return document_ != nullptr; }

  /// Neither absent nor null: null counts as absent for optional fields (docs/protocol.md 3).
  bool given() const { return present() && at().type != kind::null; }

  bool is(kind type) const { return present() && at().type == type; }

  /// The text of a number or literal; for a string, the text between its quotes, with escapes. Empty if absent.
  std::string_view raw() const {
    return present() ? document_->text.substr(at().begin, at().end - at().begin) : std::string_view{};
  }

  bool escaped() const { return present() && at().escaped; }

  const document& in() const { return *document_; }
  std::uint32_t index() const { return index_; }

private:
  const node& at() const { return document_->nodes[index_]; }

  const document* document_ = nullptr;
  std::uint32_t index_ = 0;
};

/// The document's outermost value.
value root(const document& of);

/// An object's member; the last one if several have that name. Absent if there is none or `object` is no object.
value member(value object, std::string_view name);

/// How many members an object has, counted to `at_most`; 0 if `object` is absent or not an object.
std::size_t count_members(value object, std::size_t at_most);

/// An object's keys and their values, at most `at_most`; empty if `object` is absent or not an object.
std::vector<std::pair<value, value>> members(value object, std::size_t at_most);

/// An array's elements, at most `at_most`; empty if `array` is absent or not an array.
std::vector<value> elements(value array, std::size_t at_most);

/// The number, if it is one and fits into a double.
std::optional<double> to_double(value number);

/// The number, if it has no fraction (`20`, `20.0` and `2e1` alike) and fits.
std::optional<std::int64_t> to_integer(value number);

/// The decoded string: escapes are resolved, an unpaired surrogate becomes U+FFFD. UTF-8; may contain NUL.
std::string unescape(value string);

/// The same if it has at most so many bytes, and nothing else: a much longer text is judged by its length, and not decoded.
std::optional<std::string> unescape(value string, std::size_t most_bytes);

/// Whether a string (for instance a key) decodes to `text`.
bool means(value string, std::string_view text);

} // namespace parley::protocol::json
