#pragma once

#include "net/server.hpp"
#include "tests/net/echo_gateway.hpp"
#include "tests/net/wire_client.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace parley::net {

/// A server on a free port, in front of a server core that echoes.
struct server_fixture {
  explicit server_fixture(connection_limits limits = {}, int threads = 2) {
    options.limits = limits;
    options.threads = threads;
  }

  server& start() {
    if (!server_) server_ = std::make_unique<server>(options, gateway);
    return *server_;
  }

  wire_client connect() { return wire_client(start().port()); }

  /// A WebSocket. Its session begins a moment later, on whichever thread is free.
  wire_client upgraded(std::string_view target) {
    wire_client client = connect();
    if (client.upgrade(target).status != 101) throw std::runtime_error("no upgrade");
    return client;
  }

  /// A WebSocket whose session has begun: sessions are numbered in the order of these calls.
  wire_client open(std::string_view target = "/v1/realtime?mode=audio") {
    const std::size_t before = gateway.begun();
    wire_client client = upgraded(target);
    if (!gateway.eventually([&](auto& sessions) { return sessions.size() > before; }))
      throw std::runtime_error("no session");
    return client;
  }

  /// True once no socket is open any more; false after ten seconds.
  bool empties() { return comes_to(0); }

  /// True once so many sockets are open; false after ten seconds.
  bool comes_to(std::size_t connections) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (server_->connections() != connections) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  echo_gateway gateway;
  server_options options;

private:
  std::unique_ptr<server> server_;
};

} // namespace parley::net
