#pragma once

#include "actors/recording_desk.hpp"
#include "actors/requester.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// Where net/ meets actors/: two small interfaces, free of CAF and of Boost. A connection talks to its session through
// `session_inbox`, the session talks back through `client_link`. Both are thread-safe and never block.
namespace parley::actors {

/// The socket as its session sees it. Implemented by net/; safe to call from any thread, also after the socket is gone.
class client_link {
public:
  virtual ~client_link() = default;

  /// Queues one text frame. A reader that lets the outbox grow past its bound is closed with 1008.
  virtual void send(std::shared_ptr<const std::string> frame) = 0;

  /// Writes what is queued, then the close frame. Later calls of send and close do nothing.
  virtual void close(std::uint16_t code, std::string reason) = 0;

  /// Gives back the credit of one frame taken from `session_inbox::text`, of that many bytes: the connection reads on.
  virtual void taken(std::size_t bytes) = 0;

  /// The URL named no mode and the init chose chat (PROTOCOL.md 1): messages up to the bound of chat are read from now
  /// on.
  virtual void became_chat() {}
};

/// A session as its socket sees it. Implemented by actors/.
class session_inbox {
public:
  virtual ~session_inbox() = default;

  /// One text frame, valid UTF-8.
  /// The connection stops reading while too many frames or bytes are not `taken` yet: this is the bound of the
  /// session's mailbox.
  virtual void text(std::string&& frame) = 0;

  /// A binary frame came: the session answers with close 1003.
  virtual void binary() = 0;

  /// The socket is gone, whoever closed it. The last call.
  virtual void gone() = 0;
};

/// What the handshake tells about a connection.
struct connection_info {
  std::optional<std::string> mode;                ///< last `mode` of the query, percent-decoded; none = absent
  std::optional<std::string> session_id;          ///< `session_id` of the query as it came
  std::string remote;                             ///< address, for logs
  std::string group;                              ///< whom its limits count for: the address, of IPv6 the network
  std::string key;                                ///< name of the API key, empty without keys
  std::optional<std::string> resume_token;        ///< of the query: it goes on with the session of `session_id`
  std::optional<std::string> last_event_id;       ///< of the query, as it came
  std::shared_ptr<void> place;                    ///< among its client's sessions; held as long as it can go on
  std::chrono::steady_clock::time_point accepted; ///< the clocks of PROTOCOL.md section 8 count from here
};

/// What became of a wish to close a session.
enum class close_answer : std::uint8_t { closed, unknown, forbidden };

/// The answer to GET /ready.
struct readiness {
  bool ready = false;
  std::string reason; ///< why not, in plain words
};

/// What of GET /status is asked for. The last two in the words of the official demo (docs/demo_endpoints.md).
enum class status_part : std::uint8_t {
  all,
  workers, ///< GET /workers
  queue    ///< GET /api/queue
};

/// The house behind the door: what net/ asks of actors/. Thread-safe and never blocks, like the two above; callbacks
/// run on any thread and may not block.
class front_door {
public:
  virtual ~front_door() = default;

  /// A WebSocket was accepted. Never fails: a refusal is told over the link.
  virtual std::unique_ptr<session_inbox> admit(connection_info info, std::shared_ptr<client_link> link) = 0;

  /// Whether a worker can take a session (GET /ready).
  virtual readiness ready() const = 0;

  /// Whether the first worker of its own is still to be loaded (GET /health). Never, where only others join.
  virtual bool loading() const = 0;

  /// The JSON object of GET /status (PROTOCOL.md 13), without the fields that net/ itself knows; or one part of it in
  /// other words.
  virtual void status(std::function<void(std::string json)> done, status_part part = status_part::all) = 0;

  /// GET /metrics: what the house counts, in the text format of Prometheus.
  virtual void metrics(std::function<void(std::string text)> done) = 0;

  /// GET /sessions: a JSON array of the live sessions that `who` may see.
  virtual std::string sessions(const requester& who) = 0;

  /// POST /sessions/{id}/close. `forbidden` for the session of another key, `unknown` when there was never such a
  /// session.
  virtual void close_session(std::string id, std::string reason, requester who,
                             std::function<void(close_answer)> done) = 0;

  /// POST /sessions/{id}/move: it goes on with another worker as soon as one has room. False when no such session
  /// lives.
  virtual void move_session(std::string id, std::function<void(bool known)> done) = 0;

  /// POST /workers/{id}/drain and /resume: whether it takes new sessions. Calls back with false when there is no such
  /// worker.
  virtual void drain_worker(std::uint64_t id, bool drain, std::function<void(bool known)> done) = 0;

  /// Null when nothing is recorded; lives as long as the house.
  virtual recording_desk* recordings() { return nullptr; }
};

} // namespace parley::actors
