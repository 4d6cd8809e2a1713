#pragma once

#include <spdlog/spdlog.h>

#include <memory>
#include <string_view>
#include <utility>

namespace parley::actors {

/// The log of this layer, with its own level (`log.actors_level`).
inline std::shared_ptr<spdlog::logger> log() {
  auto own = spdlog::get("actors");
  return own ? own : spdlog::default_logger();
}

/// While it lives, everything that this thread logs is labelled with this session. The id must outlive it.
class log_session {
public:
  explicit log_session(std::string_view id) : before_(std::exchange(current(), id)) {}
  ~log_session() { current() = before_; }
  log_session(const log_session&) = delete;
  log_session& operator=(const log_session&) = delete;

  /// Empty = no session.
  static std::string_view& current() {
    static thread_local std::string_view id;
    return id;
  }

private:
  std::string_view before_;
};

} // namespace parley::actors
