#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
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

/// Who has how many sessions and how often they start: the refusals with 429. Starts are rationed by a bucket that
/// holds a minute's worth. Time is an argument. Thread-safe.
class admission {
  struct ledger;

public:
  using time_point = std::chrono::steady_clock::time_point;
  enum class verdict { welcome, too_many_sessions, too_many_starts };

  /// One session's place, held as long as it is open. May outlive the admission.
  class pass {
  public:
    pass() = default;
    pass(std::shared_ptr<ledger> of, std::string address, std::string key)
        : of_(std::move(of)), address_(std::move(address)), key_(std::move(key)) {}
    pass(pass&& other) noexcept = default;
    pass& operator=(pass&&) = delete;
    ~pass();

  private:
    std::shared_ptr<ledger> of_; ///< null = nothing is held
    std::string address_;
    std::string key_;
  };

  explicit admission(admission_limits limits);

  /// `key` is the name of an API key, empty without keys. The pass holds only what a `welcome` gave. `returning`: not
  /// one more session, whose place is held already; only its start is counted, and the pass holds nothing.
  std::pair<verdict, pass> enter(const std::string& address, const std::string& key, time_point now,
                                 bool returning = false);

  /// How many clients are remembered, by address and by key: those that hold something or started of late.
  std::size_t remembered() const;

private:
  struct client {
    std::size_t sessions = 0;
    double starts_left = 0;
    time_point counted_at{};
  };
  using clients = std::map<std::string, client, std::less<>>;
  struct ledger {
    std::mutex mutex;
    clients addresses;
    clients keys;
    std::size_t sweep_at = 1024; ///< clients, at which those without a claim are forgotten
  };

  void forget_idle(time_point now);

  const admission_limits limits_;
  std::shared_ptr<ledger> ledger_;
};

} // namespace parley::net
