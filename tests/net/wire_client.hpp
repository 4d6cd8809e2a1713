#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace parley::net {

/// HTTP and WebSocket by hand over a plain socket, so that tests can send what no library would. Every call waits at
/// most ten seconds, then throws.
class wire_client {
public:
  enum opcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

  struct response {
    int status = 0;
    std::string head; ///< status line and headers
    std::string body;

    /// The value of a header (case-insensitive); empty if absent.
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

  /// Requests a WebSocket; status 101 means success.
  response upgrade(std::string_view target = "/v1/realtime?mode=audio", std::string_view headers = {});

  /// A masked frame, as clients send it.
  static std::string encode(std::uint8_t op, std::string_view payload, bool fin = true);
  void send_frame(std::uint8_t op, std::string_view payload, bool fin = true) { send(encode(op, payload, fin)); }

  /// The next frame; nothing if the connection ended.
  std::optional<frame> read_frame();

  /// The next frame that is not a ping. Throws if the connection ended.
  frame read_data();

  /// Reads up to the close frame and answers it. 0 if the connection ended without one.
  std::uint16_t read_close();

  /// True when the peer closed or reset the connection within ten seconds.
  bool ended();

  /// The same as `read_close`, while `frame` is sent again and again, as by a microphone that goes on.
  std::uint16_t read_close_while_sending(std::string_view frame);

  /// Reads and drops everything until the connection ends, while `frame` is sent again and again.
  void drop_rest(std::string_view frame);

  /// Closes with a TCP reset instead of a close frame.
  void reset();

  /// Sends nothing more, and still reads.
  void shut_down_sending();

  /// Reads exactly that many bytes. Throws if the connection ends earlier.
  std::string read_bytes(std::size_t count);

  /// Makes the kernel buffer little unread data. Call it before anything is sent.
  void shrink_receive_buffer();

  /// Reads and discards at most that many bytes. 0 if the connection ended.
  std::size_t skip(std::size_t most);

  /// Whether everything could be sent without waiting longer than `patience`.
  bool try_send(std::string_view bytes, std::chrono::milliseconds patience);

  /// Sends a byte every ten milliseconds. False if the connection ended before the last one.
  bool trickle(std::string_view bytes);

private:
  bool fill();
  std::string take(std::size_t bytes);

  int socket_ = -1;
  std::string unread_;
};

} // namespace parley::net
