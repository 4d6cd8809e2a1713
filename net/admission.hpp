#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace parley::net {

/// What one client may have; 0 = any number.
struct admission_limits {
  std::size_t sessions_per_address = 0;
  std::size_t sessions_per_key = 0;
  std::size_t starts_per_address = 0; ///< new sessions a minute
  std::size_t starts_per_key = 0;
};

/// Who has how many sessions and how often they start: the refusals with 429. Starts are rationed by a bucket that holds
/// a minute's worth. Time is an argument. Thread-safe.
class admission {
public:
  using time_point = std::chrono::steady_clock::time_point;
  enum class verdict { welcome, too_many_sessions, too_many_starts };

  /// One session's place, held as long as it is open. Must not outlive the admission.
  class pass {
  public:
    pass() = default;
    pass(admission& all, std::string address, std::string key)
        : all_(&all), address_(std::move(address)), key_(std::move(key)) {}
    pass(pass&& other) noexcept
        : all_(std::exchange(other.all_, nullptr)), address_(std::move(other.address_)), key_(std::move(other.key_)) {}
    pass& operator=(pass&&) = delete;
    ~pass() {
      if (all_) all_->leave(address_, key_);
    }

  private:
    admission* all_ = nullptr;
    std::string address_;
    std::string key_;
  };

  explicit admission(admission_limits limits) : limits_(limits) {}

  /// `key` is the name of an API key, empty without keys. The pass holds only what a `welcome` gave.
  std::pair<verdict, pass> enter(const std::string& address, const std::string& key, time_point now);

  /// Clients that are remembered, by address and by key.
  std::size_t remembered() const;

private:
  struct client {
    std::size_t sessions = 0;
    double starts_left = 0;
    time_point counted_at{};
  };
  using clients = std::map<std::string, client, std::less<>>;

  void leave(const std::string& address, const std::string& key);
  void forget_idle(time_point now);

  const admission_limits limits_;
  mutable std::mutex mutex_;
  clients addresses_;
  clients keys_;
  std::size_t sweep_at_ = 1024; ///< clients, at which those without a claim are forgotten
};

} // namespace parley::net
