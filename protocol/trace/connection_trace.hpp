#pragma once

#include "protocol/openai/shared/adapter.hpp"
#include "protocol/trace/span_writer.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace parley::protocol::trace {

/// What becomes spans of a connection that speaks a dialect of OpenAI's: each turn of its user, from the end of the speech
/// to the first sound of the answer, and itself. Its inner sessions have spans of their own inside it.
class connection_trace {
public:
  connection_trace(span_writer out, time_point began) : out_(std::move(out)), began_(began), spoke_(began) {}

  void on(const openai::note& what, time_point now) {
    if (what.about != openai::note::what::turn) return;
    ++turns_;
    end_turn("unanswered", now);
    spoke_ = now;
  }

  void on(const openai::turn_moment& what, time_point now) {
    switch (what.about) {
    case openai::turn_moment::what::speech_ended:
      end_turn("unanswered", now);
      turn_ = out_.begin(std::max(spoke_, now - what.ago)); // sound that comes too fast says nothing of time
      return;
    case openai::turn_moment::what::sound: return end_turn("sound", now);
    case openai::turn_moment::what::answered: return end_turn("no_sound", now);
    }
  }

  /// The connection is over; a second call does nothing.
  void end(const std::string& session_id, std::string_view dialect, const std::string& key, time_point now) {
    if (std::exchange(ended_, true)) return;
    end_turn("unanswered", now);
    auto span = out_.whole(std::string(dialect), began_, now);
    span_writer::add(span, "gen_ai.provider.name", "parley");
    span_writer::add(span, "gen_ai.realtime_session.id", session_id);
    span_writer::add(span, "parley.dialect", std::string(dialect));
    span_writer::add(span, "parley.turns", turns_);
    if (!key.empty()) span_writer::add(span, "parley.key", key);
    out_.send(std::move(span));
  }

  const scope& at() const { return out_.at(); }

private:
  void end_turn(std::string_view how, time_point now) {
    if (!turn_) return;
    auto span = out_.made("turn", *turn_, now);
    span_writer::add(span, "parley.answer", std::string(how));
    out_.send(std::move(span));
    turn_.reset();
  }

  span_writer out_;
  const time_point began_;
  time_point spoke_; ///< when the user's last turn began
  std::int64_t turns_ = 0;
  std::optional<begun> turn_;
  bool ended_ = false;
};

} // namespace parley::protocol::trace
