#pragma once

#include "actors/execution.hpp"
#include "actors/gateway_api.hpp"

#include <caf/all.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

// A session of Parley's own protocol whose client is another actor of the server.
namespace parley::actors {

/// Opens one (server_core::admit).
using inner_opener = std::function<std::unique_ptr<session_handle>(connection_info, std::shared_ptr<client_link>)>;

/// A frame of the session that the actor opened as number `number`.
struct inner_frame {
  std::uint64_t number = 0;
  std::shared_ptr<const std::string> text;
};

/// That session has closed.
struct inner_closed {
  std::uint64_t number = 0;
};

/// Where such a session's frames go: to the actor that opened it.
template<class Actor>
class inner_link final : public client_link {
public:
  inner_link(Actor to, std::uint64_t number) : to_(std::move(to)), number_(number) {}
  void send(std::shared_ptr<const std::string> frame) override { pass(to_, inner_frame{number_, std::move(frame)}); }
  void close(std::uint16_t, std::string) override { pass(to_, inner_closed{number_}); }
  void taken(std::size_t) override {} // little is sent ahead of the answers

private:
  const Actor to_;
  const std::uint64_t number_;
};

} // namespace parley::actors

// These never leave their process.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::inner_frame)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::inner_closed)
