#pragma once

#include "actors/principal.hpp"
#include "actors/recording/recordings_api.hpp"
#include "protocol/events.hpp"
#include "protocol/guest/effects.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The interfaces between net/ and actors/; they depend on neither CAF nor Boost. A connection talks to its session
// through `session_handle`, and the session talks back through `client_link`. A client inside the process, which speaks in
// events, uses `guest_handle` and `guest_link` instead. All are thread-safe and never block.
namespace parley::actors {

/// A message of up to this size is handled at once, on the thread of its connection. A larger one, such as a chat with
/// pictures, would keep that thread's other connections waiting (large_frames).
inline constexpr std::size_t small_message_bytes = 256u << 10;

/// The same in OpenAI's dialects, where the sound of a message is also searched for speech: a second of PCM16 is small.
inline constexpr std::size_t small_openai_bytes = 66'000;

class guest_link;

/// The socket as its session sees it. Implemented by net/; may be called from any thread, even after the socket is
/// gone.
class client_link {
public:
  virtual ~client_link() = default;

  /// Queues one text frame. If a client reads so slowly that the outbox exceeds its limit, it is closed with 1008.
  virtual void send(std::shared_ptr<const std::string> frame) = 0;

  /// Sends what is queued, then the close frame. Later calls of send and close do nothing.
  virtual void close(std::uint16_t code, std::string reason) = 0;

  /// Of a call: has its client hear these samples at 24 kHz, after all that it is yet to hear.
  virtual void play(std::shared_ptr<const std::vector<float>>) {}

  /// Of a call: drops what its client is yet to hear.
  virtual void stop_playing() {}

  /// Returns the credit for one frame of that many bytes from `session_handle::text`, so that the connection may read
  /// on.
  virtual void taken(std::size_t bytes) = 0;

  /// Itself, if the client is inside the process: it takes events, and no frames.
  virtual guest_link* guest() { return nullptr; }

  /// Called if the URL named no mode and the init chose chat (docs/protocol.md 1): applies chat's message limit.
  virtual void became_chat() {}
};

/// The client's side of a guest, as its session sees it: takes events as they are.
class guest_link : public client_link {
public:
  virtual void hand_over(protocol::server_event&& event) = 0;

  guest_link* guest() final { return this; }
  void send(std::shared_ptr<const std::string>) final {} // only sockets get frames
  void taken(std::size_t) final {}                       // little is sent ahead of the answers
};

/// A session as its socket sees it. Implemented by actors/.
class session_handle {
public:
  virtual ~session_handle() = default;

  /// Passes on one text frame, valid UTF-8. The session may work on it, and answer over its link, before this returns. The
  /// connection stops reading while too many frames or bytes have not been `taken`, which bounds the session's mailbox.
  virtual void text(std::string&& frame) = 0;

  /// Of a call: what its client says, samples at 16 kHz. As for `text`, but there is no credit: packets come at the pace of time, and
  /// the connection drops what comes faster.
  virtual void sound(std::vector<float>&&) {}

  /// A binary frame arrived; the session closes with 1003.
  virtual void binary() = 0;

  /// The socket is gone, whoever closed it. Must be the last call.
  virtual void gone() = 0;
};

/// A session as a guest sees it. Implemented by actors/.
class guest_handle {
public:
  virtual ~guest_handle() = default;

  /// The session may work on it, and answer over its link, before this returns.
  virtual void say(protocol::client_event&& event) = 0;

  /// Has a turn made where that keeps nobody waiting, and says it. If it has gone by then, nobody wants it any more.
  virtual void ask(const std::shared_ptr<const protocol::guest::deferred_turn>& what) = 0;

  /// Nothing that the session says is heard any more. Must be the last call.
  virtual void gone() = 0;
};

/// OpenAI's Realtime API, its beta, or the Live API.
enum class openai_dialect : std::uint8_t { realtime, realtime_beta, live };

/// What a connection that speaks a dialect of OpenAI's asks for (docs/openai.md).
struct realtime_request {
  std::string model = "parley"; ///< as the client names it; in Live it does so later
  bool served = true; ///< false: a kind of session that there isn't, which the client is told over the connection
  openai_dialect spoken = openai_dialect::realtime;
  std::optional<std::string>
      session{};     ///< JSON: what the session begins with, from the client's ephemeral key or its call
  bool call = false; ///< its sound goes beside the frames
};

/// How often a client may start sessions: settings `limits.starts_per_address` and `limits.starts_per_key`. Implemented by net/.
/// Thread-safe.
class start_limit {
public:
  using time_point = std::chrono::steady_clock::time_point;
  virtual ~start_limit() = default;

  /// Whether it may start another one now.
  virtual bool left(time_point now) = 0;

  /// It has started one, besides its connections.
  virtual void count(time_point now) = 0;
};

/// What an API key has used of its quotas. Implemented by net/. Thread-safe, and never blocks.
class usage_account {
public:
  virtual ~usage_account() = default;

  /// Counts what a session of the key has used since it was last counted.
  virtual void charge(double seconds, std::int64_t tokens) = 0;

  /// Why the key may use no more for now, in words for its client; none = it may.
  virtual std::optional<std::string> spent() const = 0;

  /// What is left of a quota.
  struct left {
    bool in_seconds = false; ///< of conversation; otherwise in tokens
    double limit = 0;
    double rest = 0;                   ///< of it; 0 = spent
    std::chrono::seconds renews_in{0}; ///< then the rest is `limit` again
  };

  /// Of the quotas that have a limit.
  virtual std::vector<left> rests() const = 0;
};

class recording_tap;

/// What the handshake reveals about a connection.
struct connection_info {
  std::optional<std::string> mode;          ///< last `mode` of the query, percent-decoded; none = absent
  std::optional<std::string> session_id;    ///< `session_id` of the query as received
  std::string remote;                       ///< address, for logs
  std::string group;                        ///< what limits apply to: the address, or the IPv6 network
  std::string key;                          ///< name of the API key; empty without keys
  std::optional<std::string> resume_token;  ///< from the query: the connection resumes the session `session_id`
  std::optional<std::string> last_event_id; ///< from the query, as received
  std::optional<realtime_request> realtime; ///< it speaks a dialect of OpenAI's
  std::string_view dialect{};               ///< of an inner session: what its client speaks; a literal, for logs
  std::string_view transport = "websocket"; ///< likewise
  bool background = false;                  ///< an inner session that must not cost anybody anything
  std::shared_ptr<start_limit> starts;      ///< null = no limit
  std::shared_ptr<usage_account> account;   ///< of its key; null = nobody counts
  std::shared_ptr<recording_tap> recording; ///< of an inner session: its connection's; null = it has one of its own
  std::shared_ptr<void> reservation;        ///< counts the session for its client until it cannot resume
  std::chrono::steady_clock::time_point accepted; ///< the clocks of docs/protocol.md section 8 start here
};

/// Whose budgets a connection uses: those of its key, or without keys of its address.
inline std::string owner_of(const connection_info& info) {
  if (!info.key.empty()) return "key " + info.key;
  return "address " + (info.group.empty() ? info.remote : info.group);
}

/// The outcome of a request to close a session.
enum class close_answer : std::uint8_t { closed, unknown, forbidden };

/// The answer to GET /ready.
struct readiness {
  bool ready = false;
  std::string reason; ///< if not ready: why, in plain words
  double wait_s = 0;  ///< if ready: how long a chat session that comes now would wait for a slot
};

/// Which part of GET /status to return. The last two use the terms of the official demo (docs/demo_endpoints.md).
enum class status_part : std::uint8_t {
  all,
  workers, ///< GET /workers
  queue    ///< GET /api/queue
};

/// What net/ requests of the server core in actors/. Thread-safe and never blocks, like the two above; callbacks run on
/// any thread and must not block.
class gateway_api {
public:
  virtual ~gateway_api() = default;

  /// Admits an accepted WebSocket. Never fails: a refusal is sent over the link.
  virtual std::unique_ptr<session_handle> admit(connection_info info, std::shared_ptr<client_link> link) = 0;

  /// Opens a session for a client inside the process. Never fails, either.
  virtual std::unique_ptr<guest_handle> admit_guest(connection_info info, std::shared_ptr<guest_link> link) = 0;

  /// Whether a worker can take a session (GET /ready).
  virtual readiness ready() const = 0;

  /// The name of the model that the workers serve; empty until one has loaded it.
  virtual std::string model() const { return {}; }

  /// Whether a worker of this process is still loading its model for the first time (GET /health). Always false if
  /// workers only join from elsewhere.
  virtual bool loading() const = 0;

  /// What has broken in a way that only another process can mend, in plain words (GET /health); empty = nothing.
  virtual std::string fault() const { return {}; }

  /// The JSON object of GET /status (docs/protocol.md 13), without the fields that net/ adds; or only one part of it.
  virtual void status(std::function<void(std::string json)> done, status_part part = status_part::all) = 0;

  /// GET /metrics: all metrics of actors/, in Prometheus's text format.
  virtual void metrics(std::function<void(std::string text)> done) = 0;

  /// GET /sessions: a JSON array of the live sessions that `who` may see.
  virtual std::string sessions(const principal& who) = 0;

  /// POST /sessions/{id}/close. `forbidden` for a session of another key, `unknown` if there was never such a session.
  virtual void close_session(std::string id, std::string reason, principal who,
                             std::function<void(close_answer)> done) = 0;

  /// Closes all sessions and connections of that API key, by its name: it is good no more.
  virtual void close_sessions_of(const std::string& key, const std::string& reason) = 0;

  /// POST /sessions/{id}/move: moves the session to another worker as soon as one has room. Calls back with false if
  /// there is no such live session.
  virtual void move_session(std::string id, std::function<void(bool known)> done) = 0;

  /// POST /workers/{id}/drain and /resume: stops or resumes giving the worker new sessions. Calls back with false if
  /// there is no such worker.
  virtual void drain_worker(std::uint64_t id, bool drain, std::function<void(bool known)> done) = 0;

  /// Null if nothing is recorded. Lives as long as this object.
  virtual recordings_api* recordings() { return nullptr; }
};

} // namespace parley::actors
