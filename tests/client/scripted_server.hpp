#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parley::client {

/// A WebSocket server for one connection after another, each played by a script, on a thread of its own.
class scripted_server {
public:
  class peer {
  public:
    virtual ~peer() = default;
    virtual std::string target() const = 0; ///< target of the upgrade request
    virtual void send(std::string_view frame) = 0;
    virtual std::optional<std::string> receive() = 0; ///< nothing if the client closed or left
    virtual void close(std::uint16_t code) = 0;
    virtual void vanish() = 0; ///< no closing handshake
  };

  using script = std::function<void(peer&)>;

  /// If a script returns without closing the connection, it is closed with 1000.
  explicit scripted_server(script only) : scripted_server(std::vector{std::move(only)}) {}
  explicit scripted_server(std::vector<script> scripts);

  /// Waits for the last script and rethrows what it threw.
  ~scripted_server() noexcept(false);

  std::string url() const;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace parley::client
