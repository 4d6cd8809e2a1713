#pragma once

#include "actors/gateway_api.hpp"
#include "actors/meters/meters.hpp"
#include "protocol/errors.hpp"
#include "protocol/session/resume_token.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace parley::actors {

/// Why a connection is closed when a newer one has its session.
constexpr std::string_view continues_elsewhere = "the session continues over another connection";

/// A new connection that claims a session, on its way to the session's actor. It must end with `take`, `refuse` or
/// `superseded`: if the actor ends first, the registry still has it (session_registry::offer).
class resume_request {
public:
  /// `counted` must outlive it.
  resume_request(std::uint64_t number, std::shared_ptr<client_link> link, std::string remote, meters& counted)
      : number_(number), link_(std::move(link)), remote_(std::move(remote)), meters_(counted) {}
  resume_request(const resume_request&) = delete;
  resume_request& operator=(const resume_request&) = delete;

  /// The connection's number, which marks its frames.
  std::uint64_t number() const { return number_; }
  const std::string& remote() const { return remote_; }

  /// The session takes over the link; call it once.
  std::shared_ptr<client_link> take();

  /// Tells the client why, and closes the connection.
  void refuse(const protocol::error& why);

  /// A newer connection has the session: closes this one as if it had had it before.
  void superseded();

private:
  std::shared_ptr<client_link> release(bool resumed);

  std::uint64_t number_;
  std::shared_ptr<client_link> link_;
  std::string remote_; ///< address, for logs
  meters& meters_;
};

} // namespace parley::actors
