#pragma once

#include "protocol/events.hpp"
#include "protocol/flood_guard.hpp"
#include "protocol/guest/session.hpp"
#include "protocol/guest/silence.hpp"
#include "protocol/guest/transcripts.hpp"
#include "protocol/ids.hpp"
#include "protocol/openai/realtime/answer.hpp"
#include "protocol/openai/realtime/chat_prompt.hpp"
#include "protocol/openai/realtime/client_event.hpp"
#include "protocol/openai/realtime/input_track.hpp"
#include "protocol/openai/realtime/output_buffer.hpp"
#include "protocol/openai/realtime/session_config.hpp"
#include "protocol/openai/shared/adapter.hpp"
#include "protocol/openai/shared/budget.hpp"
#include "protocol/openai/shared/items.hpp"
#include "protocol/openai/shared/outgoing.hpp"
#include "protocol/speech/voice_map.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parley::protocol::openai::realtime {

/// What is known when a client connects.
struct origin {
  std::string model = "parley"; ///< as the client names it
  bool served = true;           ///< false: it wants a kind of session that there isn't
  time_point accepted;
  std::int64_t accepted_unix_s = 0;
  std::string session{}; ///< JSON: what the session begins with; empty = the server's defaults
  bool call = false;     ///< its sound goes beside the events, both ways
};

/// What is left of the tokens that the client's key may use, for `rate_limits.updated`.
struct token_limit {
  std::int64_t limit = 0;
  std::int64_t remaining = 0;
  double reset_seconds = 0; ///< until it is `limit` again
};

struct machine_terms {
  std::chrono::milliseconds longest = std::chrono::seconds(600);    ///< a connection
  std::chrono::milliseconds slot_wait = std::chrono::seconds(8);    ///< how long an answer waits for a slot
  std::chrono::milliseconds lead = std::chrono::seconds(1);         ///< sound that is sent ahead of its time
  std::chrono::milliseconds duplex_idle = std::chrono::seconds(60); ///< without speech, until the slot is given back
  std::size_t backlog_units = 60;                                   ///< seconds of sound that may wait
  bool transcribes = false;                          ///< what users say is written down for clients that ask for it
  bool server_vad_is_duplex = false;                 ///< `server_vad` is answered like `semantic_vad`
  bool duplex_calls = false;                         ///< a full-duplex session may call functions (docs/protocol.md 17)
  std::shared_ptr<const speech::voice_map> voices{}; ///< null = the default voice has all names
  speech::voice_detection detection = speech::voice_detection::loudness;
  std::shared_ptr<owner_budget> owner{};       ///< null = the connection shares its budget with no other
  std::function<bool(time_point)> may_start{}; ///< whether its owner may start one more session; null = always
  std::function<std::optional<token_limit>()> tokens_left{}; ///< null = nobody counts
};

/// How much of the sound that may be interrupted a call is sent before it is heard.
inline constexpr std::chrono::milliseconds call_lead{200};

/// The server's side of OpenAI's Realtime API (GA), as a pure function of (state, event, time), as the guest of sessions: a
/// response is a chat turn, or what a duplex session says. docs/openai.md says what is served.
class machine final : public adapter {
public:
  machine(origin from, machine_terms terms, random_source random);

  effects start(time_point now) override;
  effects on_frame(std::string_view frame, time_point now) override;
  effects on_sound(std::span<const float> samples, time_point now) override;
  effects on_inner_event(std::uint64_t number, const server_event& event, time_point now) override;
  effects on_inner_closed(std::uint64_t number, time_point now) override;
  effects on_transcript(const transcript& heard, time_point now) override;
  effects on_drain(time_point now) override;
  effects tick(time_point now) override;
  std::optional<time_point> next_deadline() const override;
  const std::string& id() const override { return id_; }
  bool ended() const { return ended_; }

private:
  /// How answers come about (docs/openai.md).
  enum class lane : std::uint8_t { manual, turn, duplex };

  /// A response, from its creation to its end.
  struct running {
    running(answer&& what, mode from, std::shared_ptr<const guest::deferred_turn> asks)
        : said(std::move(what)), kind(from), turn(std::move(asks)) {}

    answer said;
    mode kind;
    std::shared_ptr<const guest::deferred_turn>
        turn; ///< what asks chat for it; null in full duplex, and once it was sent
    usage used{};

    // What chat makes faster than it is played waits here, if speech may interrupt it.
    bool paced = false;
    std::deque<pcm> held{};
    std::optional<answer_end> ends{}; ///< chat has made all of it
    std::optional<time_point> plays_since{};

    bool is_duplex() const { return kind != mode::chat; }

    /// When the client has no more than `lead` of sound left to play.
    time_point due(std::chrono::milliseconds lead) const;
  };

  lane lane_now() const;

  // client events
  std::optional<fault> handle(nothing_asked&) { return std::nullopt; }
  std::optional<fault> handle(session_update& event);
  std::optional<fault> handle(audio_append& event);
  std::optional<fault> handle(audio_commit&);
  std::optional<fault> handle(audio_clear&);
  std::optional<fault> handle(item_create& event);
  std::optional<fault> handle(item_delete& event);
  std::optional<fault> handle(item_retrieve& event);
  std::optional<fault> handle(item_truncate& event);
  std::optional<fault> handle(response_create& event);
  std::optional<fault> handle(response_cancel& event);
  std::optional<fault> handle(output_clear&);
  void refuse_event(const fault& why, std::string_view client_event_id);

  // the user's sound
  void listen();
  void on_edge(const speech::turn_edge& edge);
  void begin_turn(std::int64_t at_ms);
  void end_turn(std::int64_t at_ms, int silence_ms);
  void note_moment(turn_moment::what about, std::int64_t ago_ms = 0);
  void play(running& which, const pcm& sound);
  void commit();
  void add_item(item one);
  void want_transcript(const item& one);
  void note_it(note::what about, std::string word = {});
  void note_lane();
  speech::turn_onset onset_needed() const;
  void fill_silence();

  // responses
  std::optional<fault> create(response_request request);
  void answer_turn();
  void launch_next();
  void release_sound();
  void release_sound(running& of);
  void begin_chat(running& asks);
  void cut(running& which, const std::string& reason);
  void silence_call();
  output_buffer* media() { return media_ ? &*media_ : nullptr; }
  void truncate(const std::string& id, double ms);
  std::chrono::milliseconds lead() const { return media_ ? call_lead : terms_.lead; }
  void stop(running& which, const answer_end& how);
  void finish_answer(answer& which, const answer_end& how, const usage& used);
  void finish(running& which, const answer_end& how, const usage& used);
  bool is_active() const { return active_ != nullptr; }
  running* in_conversation();
  running* find_response(std::string_view id);
  running* in_chat();

  // inner sessions
  bool may_open();
  void open(mode kind, init_event init);
  void lose_inner(const answer_end& how);
  void run_out(const std::string& why);
  void on_chat(running& answers, const session_created& event);
  void on_chat(running& answers, const output_delta& said);
  void on_chat(running& answers, const response_tool_call& event);
  void on_chat(running& answers, const response_tool_call_delta& event);
  void on_chat(running& answers, const response_done& event);
  void on_chat(running& answers, const error_event& event);
  void on_chat(running& answers, const session_closed& event);
  void on_chat(running&, const auto&) {}
  void on_duplex(const output_delta& said);
  void on_duplex(const error_event& event);
  void on_duplex(const session_closed& event);
  void on_duplex(const duplex_call_done& event);
  void on_duplex(const duplex_call_abort& event);
  void on_duplex(const auto&) {}
  void on_duplex_output(const output_delta& said);
  void end_spoken(const output_delta& said);
  void feed_duplex();
  void tell_duplex(text_message news);
  bool tell_result(const item& output);
  void note_functions();
  init_event duplex_init() const;
  std::optional<time_point> silence_due() const;
  std::optional<time_point> idle_due() const;
  std::optional<time_point> release_due() const;

  void settle();
  void send_session(std::string_view type);
  void end(std::uint16_t code, std::string reason);
  effects take();

  const machine_terms terms_;
  const origin origin_;
  outgoing out_;
  std::optional<output_buffer> media_; ///< of a call
  effects inner_effects_;
  effects notes_;
  const std::string id_;
  const std::string conversation_id_;
  session_config config_;
  item_list items_;
  connection_budget budget_;
  input_track input_;
  event_sound* event_ = nullptr; ///< of the event that is being handled
  flood_guard flood_;
  time_point now_{};

  std::unique_ptr<running> active_;
  std::unique_ptr<running> beside_;              ///< out of band, made while what is active is only being played
  std::deque<std::unique_ptr<running>> waiting_; ///< behind it: those out of band, and one that found them at work
  std::optional<time_point> forgives_cancel_until_;

  guest::session<effects> inner_;
  std::optional<time_point> opens_at_; ///< when the session that is wanted may be opened

  guest::transcripts<std::string> transcripts_; ///< of items
  std::string counted_lane_;

  std::string turn_item_; ///< of the turn that the user is taking
  guest::silence silence_;
  std::optional<time_point> asked_at_; ///< the end of a turn that a duplex session has not answered
  bool answer_due_ = false;            ///< to a turn of the user, once nothing else is being said
  bool watches_ = false;               ///< the client has shown what a camera sees: duplex sessions are of video
  bool calls_in_duplex_ = false;       ///< the session's functions may be called there, and need not be called
  std::vector<std::string> delegated_; ///< calls of the duplex session whose results it waits for
  bool duplex_refused_ = false;        ///< there was no slot for this turn
  bool duplex_stale_ = false;          ///< the conversation has what the duplex session has not heard
  time_point last_speech_{};
  bool draining_ = false;
  bool ended_ = false;
  std::optional<end_client> end_;
};

} // namespace parley::protocol::openai::realtime
