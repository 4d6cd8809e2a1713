#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace parley::actors {

/// While it lives, what this thread logs has these members: as such in JSON, in words after the message otherwise. Never
/// secrets.
class log_facts {
public:
  struct fact {
    std::string_view name; ///< must outlive it
    std::variant<std::string, std::int64_t, double> value;

    const std::string* text() const { return std::get_if<std::string>(&value); } ///< null = it is a number

    /// As in a line of the log.
    std::string words() const {
      if (const auto* of = text()) return *of;
      if (const auto* count = std::get_if<std::int64_t>(&value)) return std::to_string(*count);
      auto out = std::to_string(std::get<double>(value));
      out.resize(out.size() - 3); // milliseconds
      return out;
    }
  };

  log_facts() : before_(std::exchange(current(), this)) {}
  ~log_facts() { current() = before_; }
  log_facts(const log_facts&) = delete;
  log_facts& operator=(const log_facts&) = delete;

  void text(std::string_view name, std::string value) { all_.push_back({name, std::move(value)}); }
  void number(std::string_view name, std::int64_t value) { all_.push_back({name, value}); }

  /// In milliseconds' steps.
  void seconds(std::string_view name, double value) { all_.push_back({name, std::round(value * 1000) / 1000}); }

  const std::vector<fact>& all() const { return all_; }

  /// Null = none.
  static const log_facts*& current() {
    static thread_local const log_facts* facts = nullptr;
    return facts;
  }

private:
  const log_facts* before_;
  std::vector<fact> all_;
};

} // namespace parley::actors
