#include "inference/log.hpp"

#include <spdlog/spdlog.h>

namespace parley::inference {

void log_info(const std::string& line) {
  spdlog::info("{}", line);
}

} // namespace parley::inference
