#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace parley::net {

/// HTTP and WebSocket by hand over a plain socket, so that tests can also send what no library would. Everything waits ten seconds at
/// most and then throws.
class wire_client {
public:
  enum opcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

  struct response {
    int status = 0;
    std::string head; ///< status line and headers
    std::string body;

    /// Value of a header (any case), empty if absent.
    std::string header(std::string_view name) const;
  };

  struct frame {
    std::uint8_t op = 0;
    std::string payload;

    std::uint16_t close_code() const;
  };

  explicit wire_client(std::uint16_t port);
  ~wire_client();
  wire_client(wire_client&& other) noexcept;
  wire_client& operator=(wire_client&&) = delete;

  void send(std::string_view bytes);
  response read_response(bool head_only = false);
  response get(std::string_view target, std::string_view method = "GET", std::string_view headers = {},
               std::string_view body = {});

  /// Asks for a WebSocket; the answer is 101 when it is one.
  response upgrade(std::string_view target = "/v1/realtime", std::string_view headers = {});

  /// A masked frame, as clients send it.
  static std::string encode(std::uint8_t op, std::string_view payload, bool fin = true);
  void send_frame(std::uint8_t op, std::string_view payload, bool fin = true) { send(encode(op, payload, fin)); }

  /// The next frame; none when the connection ended.
  std::optional<frame> read_frame();

  /// The next frame that is no ping. Throws when the connection ended.
  frame read_data();

  /// Reads on to the close frame and answers it. 0 when the connection ended without one.
  std::uint16_t read_close();

  /// True when the peer closed or reset the connection within ten seconds.
  bool ended();

  /// Closes with a reset instead of a goodbye.
  void reset();

  /// So many bytes as they come. Throws when the connection ends before.
  std::string read_bytes(std::size_t count);

  /// Makes the kernel hold little that was not read yet. Before anything is sent.
  void shrink_receive_buffer();

  /// Reads at most so many bytes of what comes and forgets them. 0 when the connection ended.
  std::size_t skip(std::size_t most);

  /// Whether everything could be sent without waiting longer than that.
  bool try_send(std::string_view bytes, std::chrono::milliseconds patience);

private:
  bool fill();
  std::string take(std::size_t bytes);

  int socket_ = -1;
  std::string unread_;
};

} // namespace parley::net
