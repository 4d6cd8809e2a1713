#include "protocol/json/document.hpp"

#include <array>
#include <cstring>
#include <limits>

namespace parley::protocol::json {
namespace {

using bytes16 = unsigned char __attribute__((vector_size(16)));

bool ends_run(char c) {
  return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
}

/// Finds the first quote, backslash or control character, 64 bytes per step, because nearly all of a message is one
/// long string.
const char* skip_run(const char* at, const char* end) {
  for (auto near = end - at < 16 ? end : at + 16; at != near; ++at)
    if (ends_run(*at)) return at;
  for (; end - at >= 64; at += 64) {
    bytes16 hits{};
    for (int i = 0; i < 64; i += 16) {
      bytes16 v;
      std::memcpy(&v, at + i, sizeof v);
      hits |= static_cast<bytes16>(v == '"') | static_cast<bytes16>(v == '\\') | static_cast<bytes16>(v < 0x20);
    }
    std::array<std::uint64_t, 2> halves;
    std::memcpy(halves.data(), &hits, sizeof hits);
    if ((halves[0] | halves[1]) != 0) break;
  }
  while (at != end && !ends_run(*at)) ++at;
  return at;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// One pass without recursion, so that a level of nesting costs a bit and no stack. Beyond the limits of depth and
/// count it continues checking, because text that is not JSON and JSON that is too large are different errors.
class scanner {
public:
  explicit scanner(std::string_view text) : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {
    nodes_.reserve(48);
  }

  document run(std::string_view text) {
    document out;
    out.text = text;
    if (text.size() >= std::numeric_limits<std::uint32_t>::max()) {
      out.outcome = verdict::too_many_values;
      return out;
    }
    if (!check()) {
      out.offset = static_cast<std::size_t>(at_ - begin_);
      return out;
    }
    out.outcome = outcome_;
    if (outcome_ == verdict::good) out.nodes = std::move(nodes_);
    return out;
  }

private:
  enum class wanted : std::uint8_t { value, value_or_end, key, key_or_end, comma_or_end };

  bool check() {
    auto state = wanted::value;
    for (;;) {
      skip_space();
      if (at_ == end_) return false;
      switch (state) {
      case wanted::value_or_end:
        if (*at_ == ']') {
          if (!close(state)) return true_end();
          break;
        }
        [[fallthrough]];
      case wanted::value:
        if (*at_ == '{' || *at_ == '[') {
          state = open(*at_ == '{') ? wanted::key_or_end : wanted::value_or_end;
        } else {
          if (!scalar()) return false;
          if (objects_.empty()) return true_end();
          state = wanted::comma_or_end;
        }
        break;
      case wanted::key_or_end:
        if (*at_ == '}') {
          if (!close(state)) return true_end();
          break;
        }
        [[fallthrough]];
      case wanted::key:
        if (*at_ != '"' || !string()) return false;
        skip_space();
        if (at_ == end_ || *at_ != ':') return false;
        ++at_;
        state = wanted::value;
        break;
      case wanted::comma_or_end:
        if (*at_ == ',') {
          ++at_;
          state = objects_.back() ? wanted::key : wanted::value;
        } else if (*at_ == (objects_.back() ? '}' : ']')) {
          if (!close(state)) return true_end();
        } else {
          return false;
        }
        break;
      }
    }
  }

  /// The outermost value has ended, so only white space may follow.
  bool true_end() {
    skip_space();
    return at_ == end_;
  }

  bool open(bool object) {
    if (objects_.size() == static_cast<std::size_t>(max_depth)) give_up(verdict::too_deep);
    if (outcome_ == verdict::good) {
      open_[objects_.size()] = static_cast<std::uint32_t>(nodes_.size());
      record(object ? kind::object : kind::array, at_, at_, false);
    }
    objects_.push_back(object);
    ++at_;
    return object;
  }

  /// Returns false if that ended the outermost value.
  bool close(wanted& state) {
    ++at_;
    objects_.pop_back();
    if (outcome_ == verdict::good) {
      auto& container = nodes_[open_[objects_.size()]];
      container.end = offset(at_);
      container.next = static_cast<std::uint32_t>(nodes_.size());
    }
    state = wanted::comma_or_end;
    return !objects_.empty();
  }

  bool scalar() {
    switch (*at_) {
    case '"': return string();
    case 't': return literal("true", kind::boolean);
    case 'f': return literal("false", kind::boolean);
    case 'n': return literal("null", kind::null);
    default: return number();
    }
  }

  bool string() {
    auto from = ++at_;
    bool escaped = false;
    for (;;) {
      at_ = skip_run(at_, end_);
      if (at_ == end_) return false;
      if (*at_ == '"') break;
      if (*at_ != '\\' || !escape()) return false;
      escaped = true;
    }
    record(kind::string, from, at_, escaped);
    ++at_;
    return true;
  }

  bool escape() {
    if (++at_ == end_) return false;
    if (*at_ == 'u') {
      for (int i = 0; i < 4; ++i)
        if (++at_; at_ == end_ || !is_hex(*at_)) return false;
    } else if (std::string_view("\"\\/bfnrt").find(*at_) == std::string_view::npos) {
      return false;
    }
    ++at_;
    return true;
  }

  bool literal(std::string_view word, kind type) {
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word)) return false;
    record(type, at_, at_ + word.size(), false);
    at_ += word.size();
    return true;
  }

  bool number() {
    auto from = at_;
    if (*at_ == '-') ++at_;
    if (at_ != end_ && *at_ == '0') {
      ++at_;
    } else if (!digits()) {
      return false;
    }
    if (at_ != end_ && *at_ == '.') {
      ++at_;
      if (!digits()) return false;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!digits()) return false;
    }
    record(kind::number, from, at_, false);
    return true;
  }

  bool digits() {
    auto from = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != from;
  }

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  std::uint32_t offset(const char* at) const { return static_cast<std::uint32_t>(at - begin_); }

  void record(kind type, const char* from, const char* to, bool escaped) {
    if (outcome_ != verdict::good) return;
    if (nodes_.size() == max_values) return give_up(verdict::too_many_values);
    nodes_.push_back({offset(from), offset(to), static_cast<std::uint32_t>(nodes_.size() + 1), type, escaped});
  }

  void give_up(verdict why) {
    if (outcome_ != verdict::good) return;
    outcome_ = why;
    nodes_ = {};
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  std::vector<node> nodes_;
  std::vector<bool> objects_; ///< the open containers, outermost first: true = object, false = array
  std::array<std::uint32_t, max_depth> open_{};
  verdict outcome_ = verdict::good;
};

} // namespace

document scan(std::string_view text) {
  return scanner(text).run(text);
}

} // namespace parley::protocol::json
