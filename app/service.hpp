#pragma once

#include "app/service_news.hpp"
#include "config/settings.hpp"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

// What the long-running commands have in common.
namespace parley::app {

/// Their flags, each naming a setting.
struct service_flags {
  std::string config;
  /// `section.key=value`, in the order given.
  std::vector<std::string> overrides;

  struct named {
    std::string flag;
    std::string key;
    std::string value;
  };
  std::vector<std::shared_ptr<named>> settings;

  /// `--config` and `--set`.
  void add_common(CLI::App& sub);

  /// A flag that sets a key.
  void add(CLI::App& sub, const std::string& flag, std::string key, std::string help);
};

/// File, environment, `--set` and flags, in this order. \throws config::settings_error
config::settings settings_from(const service_flags& flags);

/// Prepares the process: raises the limit on descriptors as far as possible, and survives the death of whoever reads
/// its log.
void prepare_process();

/// While this object lives, SIGINT and SIGTERM ask to stop; the second signal exits at once.
class stop_requests {
public:
  explicit stop_requests(service_news& news);
  ~stop_requests();

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

/// The checkpoint that the settings name, or the embedded one; afterwards `worker.model` names it. Throws
/// std::runtime_error when the embedded one is missing.
std::string resolve_model(config::settings& settings);

} // namespace parley::app
