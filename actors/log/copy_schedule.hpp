#pragma once

#include "actors/log/log_owner.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace parley::actors {

/// Decides which part of which log is sent to the other gateway next. The logs are in files, so nothing is lost if the
/// peer is slow: its copies are only older. Pure; not thread-safe.
class copy_schedule {
public:
  struct part {
    std::string session_id;
    std::uint64_t birth = 0; ///< `session_name::birth`
    std::uint64_t epoch = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };

  /// At most `most_unconfirmed` bytes are under way, in parts of at most `largest_part`.
  copy_schedule(std::size_t most_unconfirmed, std::size_t largest_part)
      : most_unconfirmed_(most_unconfirmed), largest_part_(largest_part) {}

  void begin(const session_name& session, std::uint64_t epoch);

  /// The log has this many bytes now.
  void grew(const std::string& session_id, std::size_t to);

  /// It is not sent any more. False if it was not sent anyway.
  bool end(const std::string& session_id);

  /// There is a peer, which has none of the logs yet.
  void link_up();
  void link_down();

  /// The peer is done with so many of the bytes that were sent, whether it keeps them or not.
  void confirmed(std::size_t bytes) { unconfirmed_ -= bytes < unconfirmed_ ? bytes : unconfirmed_; }

  /// What to send now; sessions take turns. Nothing if there is no peer, nothing to send, or too much unconfirmed.
  std::optional<part> next();

  /// Bytes that have not been sent or confirmed.
  std::size_t behind() const { return unsent_ + unconfirmed_; }

  /// Sessions whose log has been sent as far as it goes.
  std::size_t complete() const;

private:
  struct log {
    std::uint64_t birth = 0;
    std::uint64_t epoch = 0;
    std::size_t size = 0;
    std::size_t sent = 0;
    bool waits = false; ///< is in `turns_`
  };
  void enqueue(const std::string& session_id, log& what);

  const std::size_t most_unconfirmed_;
  const std::size_t largest_part_;
  std::map<std::string, log> logs_;
  std::deque<std::string> turns_;
  std::size_t unconfirmed_ = 0;
  std::size_t unsent_ = 0;
  bool up_ = false;
};

} // namespace parley::actors
