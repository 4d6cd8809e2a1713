#pragma once

#include "app/file_watch.hpp"
#include "app/service_news.hpp"
#include "config/settings.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// What the long-running commands share.
namespace parley::app {

/// Time for the last frames of closed sessions to reach their clients.
inline constexpr std::chrono::seconds flush_time{2};

/// Their flags, each of which sets a setting.
struct service_flags {
  std::string config;
  const CLI::Option* config_option = nullptr;
  /// `section.key=value`, in the order given.
  std::vector<std::string> overrides;

  struct named {
    std::string flag;
    std::string key;
    std::string value;
    const CLI::Option* option = nullptr;

    /// Even if it is empty, which is a value too.
    bool given() const { return option->count() > 0; }
  };
  std::vector<std::shared_ptr<named>> settings;

  bool has_config() const { return config_option->count() > 0; }

  /// `--config` and `--set`.
  void add_common(CLI::App& sub);

  /// Adds a flag that sets `key`.
  void add(CLI::App& sub, const std::string& flag, std::string key, std::string help);
};

/// Merges file, environment, `--set` and flags; later ones win. \throws config::settings_error
config::settings settings_from(const service_flags& flags);

/// Prepares the process: raises the limit on open descriptors as far as possible, and keeps it running when the reader
/// of its log goes away.
void prepare_process();

/// While this object lives, SIGINT and SIGTERM request a stop; the second signal exits at once. SIGHUP requests that keys
/// and certificates are read again, or a stop if it says that the process's terminal was closed.
class stop_requests {
public:
  explicit stop_requests(service_news& news);
  ~stop_requests();

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

/// Reads something again, and returns what applies it; throws if it cannot be read.
using reading = std::function<std::function<void()>()>;

/// Reads everything again, then applies it. If anything cannot be read, nothing changes, and the log says why.
void reload(const std::vector<reading>& parts);

/// Asks for a reload when keys or certificates have changed, if `auth.reload_seconds` says so.
std::unique_ptr<file_watch> watch_secrets(const config::settings& settings, service_news& news);

/// Returns the checkpoint that the settings name, or else the embedded one, and stores its path in `worker.model`.
/// Throws std::runtime_error if the embedded one is missing.
std::string resolve_model(config::settings& settings);

} // namespace parley::app
