#pragma once

#include "actors/gateway_api.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace parley::net {

/// Limits per client; 0 = no limit.
struct admission_limits {
  std::size_t sessions_per_address = 0;
  std::size_t sessions_per_key = 0;
  std::size_t starts_per_address = 0; ///< new sessions per minute
  std::size_t starts_per_key = 0;
};

/// Limits of one key; 0 = those of all keys.
struct own_limits {
  std::size_t sessions = 0;
  std::size_t starts = 0; ///< new sessions per minute
};

/// Counts each client's sessions and how often it starts one, to refuse with 429. Starts are limited by a token bucket
/// that holds one minute's worth. Time is an argument. Thread-safe.
class admission {
  struct ledger;

public:
  using time_point = std::chrono::steady_clock::time_point;
  enum class verdict { welcome, too_many_sessions, too_many_starts };

  /// One session's share of the limits, held while it is open. May outlive the admission.
  class reservation {
  public:
    reservation() = default;
    reservation(std::shared_ptr<ledger> of, std::string address, std::string key)
        : of_(std::move(of)), address_(std::move(address)), key_(std::move(key)) {}
    reservation(reservation&& other) noexcept = default;
    reservation& operator=(reservation&&) = delete;
    ~reservation();

  private:
    std::shared_ptr<ledger> of_; ///< null = holds nothing
    std::string address_;
    std::string key_;
  };

  explicit admission(admission_limits limits);

  /// `key` is the name of an API key; empty without keys. The reservation holds only what a `welcome` granted.
  /// `returning`: a resumed session, which already holds its share; only the start is counted, and the reservation
  /// holds nothing.
  std::pair<verdict, reservation> enter(const std::string& address, const std::string& key, time_point now,
                                        bool returning = false, own_limits own = {});

  /// For starts of this client besides its connections. May outlive the admission.
  std::shared_ptr<actors::start_limit> starts_of(std::string address, std::string key, own_limits own = {}) const;

  /// Number of clients remembered, by address and by key: those that hold something or started recently.
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
    std::size_t sweep_at = 1024; ///< once this many clients are remembered, those that hold nothing are forgotten
  };

  class starts;

  void forget_idle(time_point now);

  const admission_limits limits_;
  std::shared_ptr<ledger> ledger_;
};

} // namespace parley::net
