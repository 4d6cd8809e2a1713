#pragma once

#include "protocol/conformance/event_validator.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace parley::client {

/// What a server's event means to a simulated voice agent, whatever the dialect calls it.
struct voice_event {
  enum class kind : std::uint8_t {
    greeted,       ///< the client may begin
    ready,         ///< an answer to `begin`, and later to `probe`
    answer_begins, ///< a response
    words,
    sound,
    answer_ends,
    error,
    closed,
    other,
  };
  kind what = kind::other;
  std::size_t samples = 0; ///< of sound, 24 kHz
  bool cancelled = false;  ///< of answer_ends
  std::string code{};      ///< of an error, or why it closed
};

/// What distinguishes the dialects for someone who talks.
struct voice_traits {
  bool server_begins = false; ///< with a greeting; otherwise an open connection is one
  bool says_goodbye = false;  ///< a session is closed by events, not only by the socket
  bool paced = false;         ///< answers come in frames, each when it is time to play it; otherwise a second at a time
  double pause = 1e9;         ///< seconds without sound after which what follows is another answer
};

inline constexpr std::size_t pieces_per_unit = 10; ///< of 100 ms, as clients send them: a unit is a second

/// One of OpenAI's dialects, as a client sends and reads it. Stateless and thread-safe.
class voice_wire {
public:
  virtual ~voice_wire() = default;

  virtual voice_traits traits() const = 0;

  /// The path of its endpoint, beside that of Parley's own, and the query.
  virtual std::string path(const std::string& realtime_path) const = 0;
  virtual std::string query() const = 0;

  /// The first event: full duplex, PCM16 at 24 kHz.
  virtual std::string begin() const = 0;

  /// Sound as base64.
  virtual std::string append(std::string_view base64) const = 0;

  /// An event without effect whose answer says that everything before it was read.
  virtual std::string probe() const = 0;

  /// Empty if closing the socket is all.
  virtual std::string close() const = 0;

  virtual voice_event read(std::string_view frame) const = 0;
  virtual std::unique_ptr<protocol::conformance::event_validator> validator() const = 0;
};

const voice_wire& realtime_wire();
const voice_wire& live_wire();

} // namespace parley::client
