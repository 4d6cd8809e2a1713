#pragma once

#include "actors/gateway_api.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace parley::tests {

/// A client's end of a link: records what its session sends. A wait ends when its condition holds, or fails at a
/// deadline that only a broken program reaches.
class recording_link : public actors::client_link {
public:
  void send(std::shared_ptr<const std::string> frame) override {
    change([&] {
      if (!close_code_) events_.push_back(nlohmann::json::parse(*frame));
    });
  }

  void close(std::uint16_t code, std::string) override {
    change([&] {
      if (!close_code_) close_code_ = code;
    });
  }

  void taken(std::size_t bytes) override {
    change([&] { taken_ += bytes; });
  }

  /// The next event of this type after the last one waited for.
  nlohmann::json next(const std::string& type) {
    std::unique_lock lock(mutex_);
    const auto come = [&] {
      for (; cursor_ < events_.size(); ++cursor_)
        if (events_[cursor_]["type"] == type) return true;
      return close_code_.has_value();
    };
    if (!changed_.wait_for(lock, deadline, come)) throw std::runtime_error("no " + type + " came");
    if (cursor_ == events_.size()) throw std::runtime_error("closed before " + type);
    return events_[cursor_++];
  }

  /// The code of the close frame.
  std::uint16_t closed() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, deadline, [&] { return close_code_.has_value(); }))
      throw std::runtime_error("not closed");
    return *close_code_;
  }

  bool eventually_taken(std::size_t bytes) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, deadline, [&] { return taken_ == bytes; });
  }

  std::vector<nlohmann::json> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }

private:
  static constexpr std::chrono::seconds deadline{30};

  template<class Change>
  void change(Change what) {
    const std::lock_guard lock(mutex_);
    what();
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<nlohmann::json> events_;
  std::size_t cursor_ = 0;
  std::size_t taken_ = 0;
  std::optional<std::uint16_t> close_code_;
};

} // namespace parley::tests
