#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

// What carries a call: ICE, DTLS, SRTP and SCTP of a library. Only what implements this knows which one.
namespace parley::net {

/// Whom a transport tells. Called by threads of the transport, one at a time for each call. Must neither block nor throw.
class media_listener {
public:
  virtual ~media_listener() = default;

  /// The answer to the offer (SDP), once.
  virtual void on_answer(std::string sdp) = 0;

  /// Something can be sent that could not before, or the call has come about.
  virtual void on_progress() = 0;

  /// A message of the data channel.
  virtual void on_message(std::string&& text, bool binary) = 0;

  /// A packet of RTP has come, authentic.
  virtual void on_rtp(std::span<const std::byte> packet) = 0;

  /// The call is over, or never came about.
  virtual void on_lost() = 0;
};

/// One call. Thread-safe; nothing here blocks. Once it is gone, its listener is told nothing more.
class media_transport {
public:
  virtual ~media_transport() = default;

  /// Media flow.
  virtual bool is_connected() const = 0;

  /// The data channel is open, and has sent what it was given.
  virtual bool has_room() const = 0;

  /// False: the channel is not open, or the text is too long for the client.
  virtual bool send_text(const std::string& text) = 0;

  virtual void send_rtp(std::span<const std::byte> packet) = 0;
};

/// What a call's transport begins with.
struct media_offer {
  std::string sdp;          ///< the client's, checked
  std::string mid;          ///< of its sound
  int payload_type = 0;     ///< of Opus
  std::uint32_t source = 0; ///< SSRC of what is sent
};

/// Where calls are reached.
struct media_options {
  std::string host;                     ///< address to bind
  std::uint16_t port = 0;               ///< UDP, for all calls
  std::vector<std::string> addresses{}; ///< that clients are told instead of those of this machine
};

class media_library {
public:
  virtual ~media_library() = default;

  /// Begins a call, whose listener is told the answer soon. May take milliseconds. Throws std::invalid_argument if the offer is no
  /// good, std::runtime_error if there can be no call now.
  virtual std::unique_ptr<media_transport> begin(const media_offer& offer, std::weak_ptr<media_listener> listener) = 0;
};

/// Null if the program was built without one.
std::unique_ptr<media_library> make_media_library(const media_options& options);

/// The longest event that a client may send over the data channel.
inline constexpr std::size_t most_channel_message = 256u << 10;

} // namespace parley::net
