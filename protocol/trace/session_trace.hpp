#pragma once

#include "conversation/engine.hpp"
#include "protocol/events.hpp"
#include "protocol/trace/span_writer.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parley::protocol::trace {

/// What becomes spans of a session: its wait in the queue, its opening, its turns with the calls in them, its moves to other
/// workers, and itself. Told of what happens, in order.
class session_trace {
public:
  session_trace(span_writer out, time_point began) : out_(std::move(out)), began_(began) {}

  /// `model`: its name, once it is known. `worker`: the number of a worker, here and below.
  void enqueued(time_point now);
  void granted(std::string model, time_point now);
  void refused(time_point now) { end_queue("refused", now); }
  void opens(time_point now) { opening_ = out_.begin(now); }

  /// A unit or a turn goes to the engine.
  void submitted(bool turn, time_point now);

  /// An event for the client.
  void sent(const server_event& event, mode kind, time_point now);

  /// An event of the engine.
  void heard(const conversation::event& event, time_point now);

  void worker_lost(std::int64_t worker, time_point now);
  void restored(std::int64_t worker, time_point now);

  /// The session is over; a second call does nothing. `facts`: about it as a whole. `error`: empty = it ended well.
  void end(const std::string& session_id, mode kind, const usage& used, std::vector<attribute> facts,
           std::string_view error, time_point now);

  const scope& at() const { return out_.at(); }

private:
  struct turn {
    begun span;
    bool chat = false;
    bool first_unit = true; ///< no unit of it has been answered completely
    std::string response_id{};
    std::optional<time_point> first_chunk{};
    std::optional<time_point> first_sound{};
    usage used{};
    std::vector<std::optional<time_point>> call_began{}; ///< by the number of a call in the answer
    std::size_t calls = 0;                               ///< that were told
    std::string error{};
  };

  void sent_delta(const output_delta& delta, mode kind, time_point now);
  void sent_call(const response_tool_call& event, time_point now);
  void end_queue(std::string_view error, time_point now);
  void end_opening(std::string_view error, time_point now);
  void end_failover(std::string_view error, time_point now);
  void end_turn(std::string_view reason, time_point now);
  void describe(span& what) const;

  span_writer out_;
  const time_point began_;
  bool ended_ = false;
  std::string id_;
  std::string model_;
  std::string refusal_; ///< the error that ends the session
  time_point submitted_;
  std::optional<begun> queue_;
  std::int64_t queue_position_ = 0;
  std::optional<begun> opening_;
  std::int64_t prompt_tokens_ = -1;
  std::optional<begun> failover_;
  std::int64_t lost_worker_ = 0, next_worker_ = 0;
  std::optional<turn> turn_;
};

} // namespace parley::protocol::trace
