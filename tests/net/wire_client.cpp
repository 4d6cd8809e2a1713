#include "tests/net/wire_client.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <cerrno>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace parley::net {
namespace {

constexpr std::chrono::seconds patience{10};

bool same(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

bool wait_for(int socket, short events, std::chrono::milliseconds time) {
  pollfd waiting{socket, events, 0};
  return ::poll(&waiting, 1, static_cast<int>(time.count())) > 0;
}

} // namespace

std::string wire_client::response::header(std::string_view name) const {
  const std::string wanted = "\r\n" + std::string(name) + ":";
  const auto found = std::search(head.begin(), head.end(), wanted.begin(), wanted.end(), same);
  if (found == head.end()) return {};
  const auto begin = static_cast<std::size_t>(found - head.begin()) + wanted.size();
  const auto first = head.find_first_not_of(' ', begin);
  return head.substr(first, head.find("\r\n", first) - first);
}

std::uint16_t wire_client::frame::close_code() const {
  if (op != close || payload.size() < 2) return 0;
  return static_cast<std::uint16_t>(static_cast<unsigned char>(payload[0]) << 8 |
                                    static_cast<unsigned char>(payload[1]));
}

wire_client::wire_client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0)
    throw std::system_error(errno, std::generic_category(), "connect");
}

wire_client::~wire_client() {
  if (socket_ >= 0) ::close(socket_);
}

wire_client::wire_client(wire_client&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), unread_(std::move(other.unread_)) {}

bool wire_client::try_send(std::string_view bytes, std::chrono::milliseconds time) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
      throw std::system_error(errno, std::generic_category(), "send");
    } else if (!wait_for(socket_, POLLOUT, time)) {
      return false;
    }
  }
  return true;
}

void wire_client::send(std::string_view bytes) {
  if (!try_send(bytes, patience)) throw std::runtime_error("the server does not read");
}

bool wire_client::trickle(std::string_view bytes) {
  try {
    for (; !bytes.empty(); bytes.remove_prefix(1)) {
      send(bytes.substr(0, 1));
      std::this_thread::sleep_for(std::chrono::milliseconds(10)); // real time: the pace is what is tested
    }
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

bool wire_client::fill() {
  if (!wait_for(socket_, POLLIN, patience)) throw std::runtime_error("the server is silent");
  char chunk[65536];
  const auto got = ::recv(socket_, chunk, sizeof chunk, 0);
  if (got <= 0) {
    ::shutdown(socket_, SHUT_RDWR); // like any client after the server's close frame
    return false;
  }
  unread_.append(chunk, static_cast<std::size_t>(got));
  return true;
}

std::string wire_client::read_bytes(std::size_t count) {
  while (unread_.size() < count)
    if (!fill()) throw std::runtime_error("the connection ended");
  return take(count);
}

std::size_t wire_client::skip(std::size_t most) {
  if (unread_.empty() && !fill()) return 0;
  return take(std::min(most, unread_.size())).size();
}

std::string wire_client::take(std::size_t bytes) {
  std::string taken = unread_.substr(0, bytes);
  unread_.erase(0, bytes);
  return taken;
}

wire_client::response wire_client::read_response(bool head_only) {
  while (unread_.find("\r\n\r\n") == std::string::npos) {
    if (!fill()) throw std::runtime_error("the connection ended instead of an answer");
  }
  response got;
  got.head = take(unread_.find("\r\n\r\n") + 4);
  got.status = std::stoi(got.head.substr(9, 3));
  const std::string length = got.header("Content-Length");
  if (head_only || length.empty()) return got;
  while (unread_.size() < std::stoul(length)) {
    if (!fill()) throw std::runtime_error("the connection ended inside an answer");
  }
  got.body = take(std::stoul(length));
  return got;
}

wire_client::response wire_client::get(std::string_view target, std::string_view method, std::string_view headers,
                                       std::string_view body) {
  std::string request(method);
  request.append(" ").append(target).append(" HTTP/1.1\r\nHost: localhost\r\n").append(headers);
  if (!body.empty()) request.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n");
  send(request.append("\r\n").append(body));
  return read_response(method == "HEAD");
}

wire_client::response wire_client::upgrade(std::string_view target, std::string_view headers) {
  std::string all = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  return get(target, "GET", all.append(headers));
}

std::string wire_client::encode(std::uint8_t op, std::string_view payload, bool fin) {
  std::string bytes;
  bytes.push_back(static_cast<char>((fin ? 0x80 : 0) | op));
  const std::size_t size = payload.size();
  const int width = size < 126 ? 0 : size < 65536 ? 2 : 8;
  bytes.push_back(static_cast<char>(0x80 | (width == 0 ? size : width == 2 ? 126 : 127)));
  for (int i = width - 1; i >= 0; --i) bytes.push_back(static_cast<char>(size >> (8 * i)));
  const char mask[4] = {0x12, 0x34, 0x56, 0x78};
  bytes.append(mask, 4);
  const std::size_t start = bytes.size();
  bytes.append(payload);
  for (std::size_t i = 0; i < size; ++i) bytes[start + i] = static_cast<char>(bytes[start + i] ^ mask[i % 4]);
  return bytes;
}

std::optional<wire_client::frame> wire_client::read_frame() {
  const auto need = [this](std::size_t bytes) {
    while (unread_.size() < bytes) {
      if (!fill()) return false;
    }
    return true;
  };
  if (!need(2)) return std::nullopt;
  const auto byte = [this](std::size_t i) { return static_cast<unsigned char>(unread_[i]); };
  std::uint64_t size = byte(1) & 0x7F;
  std::size_t header = 2;
  if (size >= 126) {
    const std::size_t width = size == 126 ? 2 : 8;
    if (!need(2 + width)) return std::nullopt;
    size = 0;
    for (std::size_t i = 0; i < width; ++i) size = size << 8 | byte(2 + i);
    header += width;
  }
  if (!need(header + size)) return std::nullopt;
  frame got;
  got.op = byte(0) & 0x0F;
  got.payload = unread_.substr(header, size);
  unread_.erase(0, header + size);
  return got;
}

wire_client::frame wire_client::read_data() {
  while (auto got = read_frame()) {
    if (got->op != ping) return std::move(*got);
  }
  throw std::runtime_error("the connection ended instead of a frame");
}

std::uint16_t wire_client::read_close() {
  while (const auto got = read_frame()) {
    if (got->op != close) continue;
    try {
      send_frame(close, got->payload);
    } catch (const std::system_error&) { // the server has closed already
    }
    return got->close_code();
  }
  return 0;
}

bool wire_client::ended() {
  try {
    while (fill()) unread_.clear();
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

namespace {

/// Sends on a thread of its own until it is destroyed or the connection ends.
class microphone {
public:
  microphone(int socket, std::string_view frame)
      : thread_([socket, frame](const std::stop_token& stop) {
          while (!stop.stop_requested() && ::send(socket, frame.data(), frame.size(), MSG_NOSIGNAL) > 0) {
          }
        }),
        socket_(socket) {}
  ~microphone() {
    thread_.request_stop();
    ::shutdown(socket_, SHUT_RDWR); // ends a send that waits
  }
  microphone(const microphone&) = delete;
  microphone& operator=(const microphone&) = delete;

private:
  std::jthread thread_;
  const int socket_;
};

} // namespace

std::uint16_t wire_client::read_close_while_sending(std::string_view frame) {
  const microphone goes_on(socket_, frame);
  while (const auto got = read_frame())
    if (got->op == close) return got->close_code();
  return 0;
}

void wire_client::drop_rest(std::string_view frame) {
  const microphone goes_on(socket_, frame);
  while (fill()) unread_.clear();
}

void wire_client::shut_down_sending() {
  ::shutdown(socket_, SHUT_WR);
}

void wire_client::reset() {
  const linger hard{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  ::close(std::exchange(socket_, -1));
}

void wire_client::shrink_receive_buffer() {
  const int size = 4096;
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

} // namespace parley::net
