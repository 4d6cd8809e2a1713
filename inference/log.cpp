#include "inference/log.hpp"

#include <spdlog/spdlog.h>

namespace parley::inference {

void log_info(const std::string& line) {
  // With a level of its own, `log.engine_level`, where the program has made that log.
  const auto own = spdlog::get("engine");
  (own ? own : spdlog::default_logger())->info("{}", line);
}

} // namespace parley::inference
