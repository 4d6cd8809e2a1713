#include "actors/realtime/realtime_session.hpp"

#include "actors/execution.hpp"
#include "actors/frame_handle.hpp"
#include "actors/log_exceptions.hpp"
#include "actors/logger.hpp"
#include "actors/unix_time.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace parley::actors {
namespace {

std::string_view name_of_dialect(const connection_info& connection) {
  if (!connection.realtime) return "realtime";
  switch (connection.realtime->spoken) {
  case openai_dialect::realtime: return "realtime";
  case openai_dialect::realtime_beta: return "realtime_beta";
  case openai_dialect::live: return "live";
  }
  return "realtime";
}

} // namespace

realtime_session::realtime_session(caf::actor_config& config, realtime_registry& registry, deadline_clock& clock,
                                   meters& counted, std::unique_ptr<protocol::openai::adapter> machine,
                                   guest_opener open, recorder_feed* recordings, connection_info connection,
                                   std::shared_ptr<client_link> link)
    : realtime_actor::base(config), clock_(clock), counted_(counted), dialect_(name_of_dialect(connection)),
      open_(std::move(open)), recordings_(recordings), connection_(std::move(connection)), link_(std::move(link)),
      machine_(std::move(machine)), entry_(registry.add(realtime_actor(this), connection_.key)) {
  const log_session about(machine_->id());
  log()->debug("connected from {}{}{}, speaks a dialect of OpenAI's", connection_.remote,
               connection_.key.empty() ? "" : " with key ", connection_.key);
  carry_out(machine_->start(steady_now()));
}

realtime_session::behavior_type realtime_session::make_behavior() {
  log_exceptions(this, [] {});
  return {
      [this](client_frame& frame) {
        if (handed_back(frame, realtime_actor(this))) return;
        carry_out(machine_->on_frame(frame.text, steady_now()));
        link_->taken(frame.text.size());
      },
      [this](const client_sound& heard) { carry_out(machine_->on_sound(heard.samples, steady_now())); },
      [this](const client_binary&) {
        carry_out({protocol::openai::end_client{1003, "binary frames are not used"}});
      },
      [this](const client_gone&) { quit(); },
      [this](const guest_event& said) { carry_out(machine_->on_inner_event(said.number, said.event, steady_now())); },
      [this](const guest_closed& which) { carry_out(machine_->on_inner_closed(which.number, steady_now())); },
      [this](const transcript_ready& answer) { carry_out(machine_->on_transcript(answer.heard, steady_now())); },
      [this](const drain_request&) { carry_out(machine_->on_drain(steady_now())); },
      [this](const close_request& why) {
        carry_out({protocol::openai::end_client{1008, why.reason}});
      },
      [this](const timer_due&) {
        deadline_timer_.fired(steady_now());
        carry_out(machine_->tick(steady_now()));
      },
  };
}

void realtime_session::on_exit() {
  if (!link_closed_ && link_) link_->close(1011, "internal error");
  drop_session();
  end_recording("client_closed");
  if (counted_as_ != nullptr) counted_as_->Decrement();
  if (transcription_) caf::anon_send(transcription_, transcripts_unwanted{});
  transcription_ = nullptr;
  open_ = nullptr;
  entry_.reset();
  link_.reset();
  machine_.reset(); // a pending timer keeps this object alive
  connection_.reservation.reset();
}

void realtime_session::carry_out(protocol::openai::effects&& effects) {
  const log_session about(machine_->id());
  const on_own_thread here(context());
  for (auto& effect : effects) std::visit([this](auto& each) { perform(each); }, effect);
  deadline_timer_.arm(this, machine_->next_deadline(), clock_);
}

void realtime_session::perform(protocol::openai::to_client& effect) {
  link_->send(std::make_shared<const std::string>(std::move(effect.frame)));
}

void realtime_session::perform(protocol::openai::play_sound& effect) {
  link_->play(std::move(effect.sound));
}

void realtime_session::perform(const protocol::openai::drop_sound&) {
  link_->stop_playing();
}

void realtime_session::perform(protocol::openai::end_client& effect) {
  link_closed_ = true;
  end_recording(effect.reason);
  link_->close(effect.code, std::move(effect.reason));
}

void realtime_session::perform(protocol::guest::open_session& effect) {
  connection_info info;
  info.mode = name_of(effect.kind);
  info.remote = connection_.remote;
  info.group = connection_.group;
  info.key = connection_.key;
  info.account = connection_.account;
  info.dialect = dialect_;
  info.accepted = steady_now();
  if (recordings_) record(effect.kind);
  info.recording = connection_.recording;
  inner_ = open_(std::move(info), std::make_shared<guest_mailbox<realtime_actor>>(realtime_actor(this), effect.number));
}

void realtime_session::perform(protocol::openai::transcribe& effect) {
  if (!transcription_) {
    auto tell = [to = realtime_actor(this)](protocol::transcript heard) {
      caf::anon_send(to, transcript_ready{std::move(heard)});
    };
    transcription_ = system().spawn<transcription>(open_, connection_, counted_, std::move(tell));
  }
  write_down(this, transcription_, std::move(effect.what));
}

void realtime_session::perform(protocol::guest::to_session& effect) {
  if (inner_) inner_->say(std::move(effect.event));
}

void realtime_session::perform(const protocol::openai::note& effect) {
  using what = protocol::openai::note::what;
  auto& counted = counted_.realtime();
  if (effect.about == what::error) return counted.failed(dialect_, effect.word);
  if (effect.about != what::lane) return counted.happened(dialect_, effect.about);
  if (counted_as_ != nullptr) counted_as_->Decrement();
  counted_as_ = &counted.connections(dialect_, effect.word);
  counted_as_->Increment();
}

void realtime_session::perform(protocol::guest::turn_to_session& effect) {
  if (!inner_) return;
  turn_ = std::move(effect.turn);
  inner_->ask(turn_);
}

void realtime_session::perform(const protocol::guest::drop_session& effect) {
  if (effect.unused && connection_.starts) connection_.starts->count(steady_now());
  drop_session();
}

/// An inner session of this kind begins: it is part of the connection's recording.
void realtime_session::record(protocol::mode kind) {
  recorded_as_ = std::max(recorded_as_, kind); // chat is the least of what there may be
  auto& tap = connection_.recording;
  if (tap) return tap->became(name_of(recorded_as_));
  recording_facts facts;
  facts.id = recordings_->take_id(machine_->id());
  facts.key = connection_.key;
  facts.mode = name_of(recorded_as_);
  facts.started_ms = unix_ms();
  facts.folder = utc_date(facts.started_ms) + "/" + facts.id;
  tap = std::make_shared<recording_tap>(*recordings_, std::move(facts), connection_.accepted);
}

void realtime_session::end_recording(const std::string& reason) {
  if (connection_.recording) connection_.recording->end(reason);
}

void realtime_session::drop_session() {
  turn_.reset();
  if (!inner_) return;
  inner_->gone();
  inner_.reset();
}

} // namespace parley::actors
