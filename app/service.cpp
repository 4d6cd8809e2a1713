#include "app/service.hpp"

#include "config/load.hpp"
#include "inference/engine/default_model.hpp"
#include "net/descriptors.hpp"
#include "net/signals.hpp"

#include <spdlog/spdlog.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

namespace parley::app {

namespace {

/// `timeout` and some shells signal both a process and its group: two signals within this time are one request to stop.
constexpr std::chrono::seconds same_request{1};

using std::chrono::steady_clock;

/// Whether the process has a controlling terminal.
bool has_terminal() {
  const int terminal = ::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (terminal >= 0) ::close(terminal);
  return terminal >= 0;
}

} // namespace

void service_flags::add_common(CLI::App& sub) {
  config_option = sub.add_option("--config", config, "Settings file (TOML); config/parley.toml documents every key");
  sub.add_option("--set", overrides, "section.key=value: overrides a setting; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void service_flags::add(CLI::App& sub, const std::string& flag, std::string key, std::string help) {
  const auto one = std::make_shared<named>(named{flag, std::move(key), {}, nullptr});
  settings.push_back(one);
  one->option = sub.add_option(flag, one->value, std::move(help));
}

config::settings settings_from(const service_flags& flags) {
  config::settings settings;
  if (flags.has_config()) config::load_file(settings, flags.config);
  config::apply_environment(settings, environ);
  for (const auto& one : flags.overrides) config::apply_override(settings, one);
  for (const auto& one : flags.settings)
    if (one->given()) config::apply_flag(settings, one->flag, one->key, one->value);
  config::check_whole(settings);
  return settings;
}

void prepare_process() {
  net::raise_descriptor_limit();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN); // until somebody handles it
}

class stop_requests::impl {
public:
  explicit impl(service_news& news)
      : signals_([&news, had_terminal = has_terminal(),
                  asked = std::optional<steady_clock::time_point>()](int number) mutable {
          if (number == SIGHUP && !(had_terminal && !has_terminal())) return news.ask_to_reload();
          if (number == SIGHUP) spdlog::info("the terminal was closed");
          if (!asked) {
            asked = steady_clock::now();
            news.ask_to_stop();
          } else if (steady_clock::now() - *asked > same_request) {
            spdlog::warn("asked to stop again: exiting at once");
            std::_Exit(0);
          }
        }) {}

private:
  const net::process_signals signals_;
};

stop_requests::stop_requests(service_news& news) : impl_(std::make_unique<impl>(news)) {}
stop_requests::~stop_requests() = default;

void reload(const std::vector<reading>& parts) {
  try {
    std::vector<std::function<void()>> effects;
    effects.reserve(parts.size());
    for (const auto& read : parts) effects.push_back(read());
    for (const auto& put_into_effect : effects) put_into_effect();
  } catch (const std::exception& problem) {
    spdlog::error("keys and certificates stay as they were: {}", problem.what());
  }
}

std::unique_ptr<file_watch> watch_secrets(const config::settings& settings, service_news& news) {
  std::vector<std::filesystem::path> files{settings.auth.keys_file, settings.nodes.cert, settings.nodes.key,
                                           settings.nodes.ca};
  if (settings.tls.mode == config::tls_mode::file) files.insert(files.end(), {settings.tls.cert, settings.tls.key});
  const auto every = std::chrono::milliseconds(static_cast<std::int64_t>(settings.auth.reload_seconds * 1000));
  return std::make_unique<file_watch>(std::move(files), every, [&news] { news.ask_to_reload(); });
}

std::string resolve_model(config::settings& settings) {
  if (settings.worker.model.empty()) settings.worker.model = inference::default_model_directory().string();
  return settings.worker.model;
}

} // namespace parley::app
