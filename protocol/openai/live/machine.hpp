#pragma once

#include "protocol/events.hpp"
#include "protocol/flood_guard.hpp"
#include "protocol/guest/session.hpp"
#include "protocol/guest/silence.hpp"
#include "protocol/guest/transcripts.hpp"
#include "protocol/ids.hpp"
#include "protocol/openai/live/client_event.hpp"
#include "protocol/openai/live/session_config.hpp"
#include "protocol/openai/realtime/chat_prompt.hpp"
#include "protocol/openai/shared/adapter.hpp"
#include "protocol/openai/shared/budget.hpp"
#include "protocol/openai/shared/outgoing.hpp"
#include "protocol/speech/paced_speech.hpp"
#include "protocol/speech/turn_sound.hpp"
#include "protocol/speech/voice_activity.hpp"
#include "protocol/speech/voice_map.hpp"
#include "protocol/time_point.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parley::protocol::openai::live {

struct machine_terms {
  std::chrono::milliseconds longest = std::chrono::seconds(600); ///< a connection
  std::chrono::milliseconds slot_wait = std::chrono::seconds(8);
  std::chrono::milliseconds barge_in{600}; ///< speech of the user that stops the model; 0 = the model alone decides
  std::size_t backlog_units = 60;          ///< seconds of sound that may wait
  int context_tokens = 8192;
  bool transcribes = false;                          ///< what users say is written down
  bool delegates = false;                            ///< what users want done is delegated (docs/protocol.md 17)
  std::shared_ptr<const speech::voice_map> voices{}; ///< null = the default voice has all names
  speech::voice_detection detection = speech::voice_detection::loudness;
  std::shared_ptr<owner_budget> owner{};       ///< null = the connection shares its budget with no other
  std::function<bool(time_point)> may_start{}; ///< whether its owner may start one more session; null = always
};

/// What is known when a client connects.
struct origin {
  time_point accepted;
  std::int64_t accepted_unix_s = 0;
  std::string session{}; ///< JSON of a session of the Realtime API: instructions and voice where the client names none
};

/// The server's side of OpenAI's Live API, as the guest of sessions: one duplex session, whose
/// words are sent no faster than they are played, and a chat turn for what the client wants said. docs/openai.md says
/// what is served.
class machine final : public adapter {
public:
  machine(origin from, machine_terms terms, random_source random);

  effects start(time_point now) override;
  effects on_frame(std::string_view frame, time_point now) override;
  effects on_inner_event(std::uint64_t number, const server_event& event, time_point now) override;
  effects on_inner_closed(std::uint64_t number, time_point now) override;
  effects on_transcript(const transcript& heard, time_point now) override;
  effects on_drain(time_point now) override;
  effects tick(time_point now) override;
  std::optional<time_point> next_deadline() const override;
  const std::string& id() const override { return id_; }

private:
  /// What there is once the client has sent its `session.start`.
  struct begun {
    explicit begun(session_config chosen) : config(std::move(chosen)), decoder(config.format), speech(config.format) {}

    session_config config;
    speech::sound_decoder decoder;
    speech::paced_speech speech;
  };

  /// What the client wants said.
  struct remark {
    std::string content;
    time_point came;
  };

  /// A chat turn that says it.
  struct side_turn {
    std::shared_ptr<const guest::deferred_turn> asks; ///< null once it was sent
    bool made = false;                                ///< what is left is to play it
  };

  using complaint = std::optional<fault>;

  // client events
  void take_event(json::value event);
  void apply_defaults(session_config& config) const;
  complaint handle(session_start& event);
  complaint handle(session_update& event);
  complaint handle(session_close&);
  complaint handle(audio_append& event);
  complaint handle(audio_mute& event);
  complaint handle(context_append& event);
  complaint handle(response_item& event);
  complaint handle(response_create&);
  void refuse_event(const fault& why);
  void note_it(note::what about, std::string word = {}) { notes_.emplace_back(note{about, std::move(word)}); }
  template<class Write>
  void answer(std::string_view type, Write write);
  void inform(std::string_view code, std::string_view message);
  void inform_of_delegation();

  // the user's sound
  void listen(std::span<const float> samples);
  void on_edge(const speech::turn_edge& edge);
  void end_turn(std::int64_t ago_ms);
  void cut();
  void fill_silence();

  // what the model says
  bool speaking() const;
  bool quiet() const { return !speaking() && !finder_.in_turn(); }
  void begin_speech();
  void release_speech();
  void remember(item_role who, item_part::kind kind, std::string text);
  void remember_speech();

  // inner sessions
  bool may_open();
  void open(mode kind, init_event init);
  void open_duplex();
  void lose_inner();
  void run_out(const std::string& why);
  void on_created();
  void on_chat(const session_created& event);
  void on_chat(const output_delta& said);
  void on_chat(const response_done& event);
  void on_chat(const error_event&) { lose_side_turn(); }
  void on_chat(const session_closed&) { lose_side_turn(); }
  void on_chat(const auto&) {}
  void on_duplex(const output_delta& said);
  void on_duplex(const error_event& event);
  void on_duplex(const session_closed&) { lose_inner(); }
  void on_duplex(const duplex_call_done& event);
  void on_duplex(const duplex_call_abort& event);
  void on_duplex(const auto&) {}
  void tell_of_response(const conversation::tool_call& call, const std::string& response_id, const usage& used);
  complaint remark_on(std::string content);
  void begin_side_turn();
  void lose_side_turn() {
    if (side_turn_) lose_inner();
  }
  void end_side_turn();
  init_event duplex_init() const;

  std::optional<time_point> silence_due() const;
  std::optional<time_point> remark_due() const;
  std::optional<time_point> reopening_due() const;

  std::int64_t ms_at(time_point when) const;
  void send_usage();
  void write_usage(json::object_writer& to) const;
  void settle();
  void close_session(std::string_view reason, std::uint16_t code);
  void end(std::uint16_t code, std::string reason);
  effects take();

  const machine_terms terms_;
  const origin origin_;
  outgoing out_;
  effects inner_effects_;
  effects notes_;
  const std::string id_;
  time_point now_{};
  std::string event_id_; ///< of the client's event that is being answered
  connection_budget budget_;
  flood_guard flood_;

  std::unique_ptr<begun> begun_; ///< null until then
  std::string start_event_id_;
  std::optional<time_point> started_; ///< the client was told
  std::optional<time_point> next_usage_;
  int context_tokens_used_ = 0;

  speech::turn_finder finder_;
  speech::turn_sound turn_{most_transcribed_samples};
  std::int64_t turn_began_ms_ = 0; ///< on the session's clock

  struct written_turn {
    std::int64_t start_ms = 0, end_ms = 0;
  };
  guest::transcripts<written_turn> transcripts_;
  guest::silence silence_;
  bool muted_ = false;
  bool is_first_sound_ = false; ///< the next that is sent, of what the model says

  std::string said_; ///< of this utterance, as far as it was sent
  item_list history_{most_history};

  guest::session<effects> inner_;
  std::optional<time_point> stale_since_; ///< the conversation has what the duplex session has not heard
  std::optional<time_point> retry_at_;    ///< after an inner session was lost
  std::optional<time_point> opens_at_;    ///< when the session that is wanted may be opened

  /// A call of the duplex session, which is a delegation here.
  struct delegation {
    std::string id;
    std::string name;  ///< of the function
    bool waits = true; ///< that session is still there
    bool over = false; ///< there is a result, or its time has passed
  };
  bool waits_for(const delegation& which) const;
  void tell_result(delegation& which, std::string result);

  std::deque<delegation> delegations_; ///< the newest ones
  std::optional<time_point> told_at_;  ///< when a result came that the model is to tell

  std::deque<remark> remarks_;
  std::optional<side_turn> side_turn_;
  bool draining_ = false;
  bool ended_ = false;
  std::optional<end_client> end_;
};

} // namespace parley::protocol::openai::live
