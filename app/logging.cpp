#include "app/logging.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

namespace parley::app {

void start_logging(const config::settings& settings) {
  auto logger = std::make_shared<spdlog::logger>("parley", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_level(spdlog::level::from_str(settings.log.level));
  if (settings.log.format == config::log_format::json)
    logger->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","thread":%t,"message":"%v"})");
  else
    logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  spdlog::set_default_logger(std::move(logger));
}

} // namespace parley::app
