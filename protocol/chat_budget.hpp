#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

namespace parley::protocol {

inline constexpr std::size_t max_chat_messages = 256;        ///< of one append
inline constexpr std::size_t max_chat_items = 1024;          ///< content items in all messages of one append
inline constexpr std::size_t max_chat_pictures = 512;        ///< pictures and video frames in all messages
inline constexpr std::size_t max_chat_text_bytes = 1u << 20; ///< text of all messages, as written in the JSON
inline constexpr double max_chat_seconds = 820.0;            ///< all sound that fits 8192 tokens at 10 per second

/// What one chat append may still contain. The budget covers the whole append, not each item, and is charged before
/// anything is decoded. Each call returns what is wrong, in words, or nothing.
class chat_budget {
public:
  std::optional<std::string> add_items(std::size_t count) { return charge(items_, count, max_chat_items, "items"); }

  std::optional<std::string> add_pictures(std::size_t count) {
    return charge(pictures_, count, max_chat_pictures, "pictures");
  }

  std::optional<std::string> add_text(std::size_t bytes) {
    return charge(text_bytes_, bytes, max_chat_text_bytes, "bytes of text");
  }

  std::optional<std::string> add_seconds(double of_sound) {
    return charge(seconds_, of_sound, max_chat_seconds, "s of sound");
  }

  /// Seconds of sound still available.
  double seconds_left() const { return std::max(0.0, max_chat_seconds - seconds_); }

private:
  template<class T>
  static std::optional<std::string> charge(T& sum, T more, T most, const char* of_what) {
    sum += more;
    if (sum <= most) return std::nullopt;
    return "more than " + std::to_string(static_cast<std::size_t>(most)) + " " + of_what + " in one append";
  }

  std::size_t items_ = 0;
  std::size_t pictures_ = 0;
  std::size_t text_bytes_ = 0;
  double seconds_ = 0;
};

} // namespace parley::protocol
