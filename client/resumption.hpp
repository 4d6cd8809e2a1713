#pragma once

#include "client/codec/server_glance.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace parley::client {

/// What a client remembers of its session to continue it over another connection, and when and where it tries that
/// (docs/protocol.md 14). Times are passed in, in seconds: no clock, no sockets.
class resumption {
public:
  using frame = std::shared_ptr<const std::string>;

  /// The next connection: to which of the client's addresses, and after how many seconds.
  struct attempt {
    std::size_t address;
    double wait;
  };

  /// `address`: which of them has the session.
  explicit resumption(std::size_t addresses, std::size_t address = 0) : refused_(addresses), address_(address) {}

  /// Call for each event that arrives.
  void heard(const server_glance& event);

  /// Keeps an append that is sent, or that waits for the return.
  void sent(frame append);

  /// Whether the server keeps the session for this client.
  bool possible() const { return !token_.empty() && !closed_; }

  /// The connection ended, or an attempt failed. None if the session is over: its time is up, or every address has
  /// refused it. `chance`: 0 to 1, drawn anew for each call, so that clients do not come back all at once.
  std::optional<attempt> next(double now, double chance);

  /// Query of the URL that resumes the session.
  std::string query() const;

  /// Appends that the server lacks, in order. Call for a session.resumed, after `heard`: the break is over.
  std::vector<frame> missing();

private:
  void forget_answered(std::int64_t input);

  std::string session_, token_;
  double seconds_ = 0;          ///< how long the server keeps the session
  std::int64_t last_event_ = 0; ///< number of the last event received
  std::deque<frame> kept_;      ///< the latest appends ...
  std::int64_t forgotten_ = 0;  ///< ... and how many were sent before them
  std::int64_t inputs_ = 0;     ///< how many the server has, as its last session.resumed said
  std::vector<bool> refused_;   ///< addresses that refused the session since the break
  std::size_t address_;         ///< of the latest connection
  std::optional<double> lost_;  ///< since when there is no connection
  double wait_ = 0;             ///< before the next attempt, without the part by chance
  double told_wait_ = 0;        ///< what the server asked for; 0 = nothing
  bool closed_ = false;
};

} // namespace parley::client
