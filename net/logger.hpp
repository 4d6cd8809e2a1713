#pragma once

#include <spdlog/spdlog.h>

#include <memory>

namespace parley::net {

/// The log of this layer, with its own level (`log.net_level`).
inline std::shared_ptr<spdlog::logger> log() {
  auto own = spdlog::get("net");
  return own ? own : spdlog::default_logger();
}

} // namespace parley::net
