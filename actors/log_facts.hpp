#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parley::actors {

/// While it lives, what this thread logs has these members: as such in JSON, in words after the message otherwise. Never
/// secrets.
class log_facts {
public:
  struct fact {
    std::string_view name; ///< must outlive it
    std::string value;
    bool is_text; ///< else a number
  };

  log_facts() : before_(std::exchange(current(), this)) {}
  ~log_facts() { current() = before_; }
  log_facts(const log_facts&) = delete;
  log_facts& operator=(const log_facts&) = delete;

  void text(std::string_view name, std::string value) { all_.push_back({name, std::move(value), true}); }
  void number(std::string_view name, std::int64_t value) { all_.push_back({name, std::to_string(value), false}); }

  /// In milliseconds' steps.
  void seconds(std::string_view name, double value) {
    auto words = std::to_string(std::round(value * 1000) / 1000);
    words.resize(words.size() - 3);
    all_.push_back({name, std::move(words), false});
  }

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
