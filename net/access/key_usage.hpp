#pragma once

#include "actors/gateway_api.hpp"
#include "net/access/usage_ledger.hpp"

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace parley::net {

/// What the keys of this process have used of their quotas. With a file it survives the process: what is counted is written
/// there every few seconds and at the end. Thread-safe; never blocks, but for construction and end.
class key_usage {
public:
  using unix_clock = std::function<std::int64_t()>;
  using limits_by_key = std::map<std::string, key_limits, std::less<>>;

  /// `file`: empty = it ends with this process. `clock`: seconds of Unix time. \throws config::settings_error if there is
  /// such a file that cannot be read
  explicit key_usage(std::filesystem::path file = {}, unix_clock clock = system_clock());
  ~key_usage();

  key_usage(const key_usage&) = delete;
  key_usage& operator=(const key_usage&) = delete;

  /// From now on; what was used stays.
  void set_limits(limits_by_key limits);

  key_limits limits_of(const std::string& key) const;

  /// For the sessions of a key; null if nobody counts for it. May outlive this object, which then counts no more for it.
  std::shared_ptr<actors::usage_account> account_of(const std::string& key) const;

  /// The quota of the key that is spent; none = it may use more.
  std::optional<usage_ledger::standing> spent(const std::string& key) const;

  struct holder {
    std::string key;
    std::vector<usage_ledger::standing> quotas;
  };
  holder of(const std::string& key) const;

  /// Of all keys that have limits.
  std::vector<holder> all() const;

  std::int64_t now() const { return clock_(); }

private:
  struct state;
  class account;

  static unix_clock system_clock();
  void write_until_end();
  void write() noexcept;

  const std::filesystem::path file_;
  const unix_clock clock_;
  const std::shared_ptr<state> state_;
  std::mutex mutex_; ///< of what follows
  std::condition_variable ends_;
  bool ending_ = false;
  std::thread writer_; ///< only with a file
};

/// In plain words, for the client.
std::string words_for(const usage_ledger::standing& spent);

/// As in answers: 2026-12-01T00:00:00Z.
std::string utc_time(std::int64_t unix_s);

} // namespace parley::net
