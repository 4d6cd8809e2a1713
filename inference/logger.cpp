#include "inference/logger.hpp"

#include <spdlog/spdlog.h>

#include <memory>

namespace parley::inference {

namespace {

/// A log with its own level, `log.engine_level`, if the program has created it.
std::shared_ptr<spdlog::logger> log() {
  auto own = spdlog::get("engine");
  return own ? own : spdlog::default_logger();
}

} // namespace

void log_info(const std::string& line) {
  log()->info("{}", line);
}

void log_warning(const std::string& line) {
  log()->warn("{}", line);
}

void log_trace(const std::string& line) {
  log()->trace("{}", line);
}

bool traces() {
  return log()->should_log(spdlog::level::trace);
}

} // namespace parley::inference
