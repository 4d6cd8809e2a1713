#pragma once

#include "base/open_file.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace parley::net {

/// The body of an answer: a text of its own, a text that it shares with other answers, or a file that is read piece by
/// piece while it is sent.
class reply_body {
public:
  static constexpr std::size_t piece_bytes = 64u << 10; ///< of a file, held at a time

  reply_body() = default;
  reply_body(std::string own) : what_(std::move(own)) {}
  reply_body(const char* own) : what_(std::string(own)) {}
  reply_body(std::shared_ptr<const std::string> shared) : what_(std::move(shared)) {}
  reply_body(std::shared_ptr<const base::open_file> file) : what_(std::move(file)) {}

  /// `text` lives as long as the program.
  static reply_body constant(std::string_view text) {
    reply_body body;
    body.what_ = text;
    return body;
  }

  /// Null unless it is a file.
  const base::open_file* file() const {
    const auto* file = std::get_if<std::shared_ptr<const base::open_file>>(&what_);
    return file ? file->get() : nullptr;
  }

  /// Empty if it is a file.
  std::string_view text() const {
    if (const auto* own = std::get_if<std::string>(&what_)) return *own;
    if (const auto* constant = std::get_if<std::string_view>(&what_)) return *constant;
    if (const auto* shared = std::get_if<std::shared_ptr<const std::string>>(&what_)) return **shared;
    return {};
  }

  std::uint64_t size() const { return file() ? file()->size() : text().size(); }

  /// What this answer alone keeps in memory while it is sent.
  std::size_t held_bytes() const {
    if (file()) return static_cast<std::size_t>(std::min<std::uint64_t>(file()->size(), piece_bytes));
    const auto* own = std::get_if<std::string>(&what_);
    return own ? own->size() : 0;
  }

  friend bool operator==(const reply_body& body, std::string_view text) { return !body.file() && body.text() == text; }

private:
  std::variant<std::string, std::string_view, std::shared_ptr<const std::string>,
               std::shared_ptr<const base::open_file>>
      what_;
};

} // namespace parley::net
