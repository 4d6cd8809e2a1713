#pragma once

#include "actors/gateway_api.hpp"
#include "net/access/admission.hpp"
#include "net/default_voice.hpp"
#include "net/limits.hpp"
#include "net/tls_options.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace parley::net {

/// Section `tracing` of the settings.
struct tracing_options {
  std::string endpoint; ///< URL of a collector; empty = nothing is traced
  double sample = 1;
  std::filesystem::path headers_file;
  std::string node; ///< name of this process, for humans
};

/// The server's options, fixed when it starts.
struct server_options {
  std::string host = "127.0.0.1"; ///< an address or a name; an IPv6 address without brackets
  std::uint16_t port = 0;         ///< 0 = any free port
  std::string names;              ///< other host names of the server, separated by spaces
  std::string trusted_proxies;    ///< addresses and networks, separated by spaces
  int threads = 1;                ///< number of I/O threads
  tls_options tls;
  std::filesystem::path keys_file;  ///< empty = no key is needed
  std::filesystem::path usage_file; ///< what keys have used; empty = it ends with this process
  std::string allowed_origins = "same";
  admission_limits admission;
  connection_limits limits;
  config::openai_door openai = config::openai_door::automatic;
  bool transcribes = false;                    ///< setting `openai.transcribe`
  std::filesystem::path ephemeral_secret_file; ///< empty = a secret of this process
  bool webrtc = true;                          ///< calls, if the program was built with them
  std::uint16_t webrtc_port = 0;               ///< UDP; 0 = the number of the port above
  std::string webrtc_addresses;                ///< separated by spaces; empty = those of this machine
  tracing_options tracing;
  default_voice voice;
  std::string model = "default"; ///< id in GET /v1/models
};

/// Takes the options from the settings; voice and model keep their defaults.
server_options options_from(const config::settings& settings);

/// HTTP and WebSocket on one port: docs/protocol.md 1 and 13. Accepts connections from construction to `stop`.
class server {
public:
  /// Binds, listens and starts the I/O threads. `core` must outlive the server. \throws std::system_error naming the
  /// address if it cannot listen there, config::settings_error for keys and certificates that cannot be used.
  server(server_options options, actors::gateway_api& core);

  /// Cuts connections that are still open.
  ~server();

  server(const server&) = delete;
  server& operator=(const server&) = delete;

  std::uint16_t port() const;

  /// `http://HOST:PORT` or `https://…`, with the actual port.
  std::string url() const;

  /// Number of open sockets, HTTP and WebSocket.
  std::size_t connections() const;

  /// Reads API keys and certificates again, from the same files; what it returns puts them into effect: new connections
  /// use them, and what belongs to keys that are gone is ended. \throws config::settings_error, and then nothing has changed
  std::function<void()> read_again();

  /// Stops accepting, lets open connections close by themselves for up to `grace`, then cuts the rest and joins the I/O
  /// threads. Blocks; must not be called on an I/O thread. Does not end sessions: drain the server core first, so that
  /// late clients still get its refusal. A second call does nothing.
  void stop(std::chrono::milliseconds grace);

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace parley::net
