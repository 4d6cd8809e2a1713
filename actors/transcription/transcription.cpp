#include "actors/transcription/transcription.hpp"

#include "actors/log_exceptions.hpp"

#include <utility>
#include <variant>

namespace parley::actors {

transcription::transcription(caf::actor_config& config, guest_opener open, const connection_info& of, meters& counted,
                             std::function<void(protocol::transcript)> tell)
    : transcription_actor::base(config), open_(std::move(open)), counted_(counted), tell_(std::move(tell)) {
  info_.mode = "chat";
  info_.remote = of.remote;
  info_.group = of.group;
  info_.key = of.key;
  info_.background = true;
  info_.dialect = "transcript";
  info_.transport = "none";
}

transcription::behavior_type transcription::make_behavior() {
  log_exceptions(this, [] {});
  return {
      [this](transcript_order& order) { carry_out(transcriber_.want(std::move(order.what), steady_now())); },
      [this](const transcripts_unwanted&) {
        tell_ = nullptr;
        quit();
      },
      [this](const guest_event& said) { carry_out(transcriber_.on_event(said.number, said.event)); },
      [this](const guest_closed& which) { carry_out(transcriber_.on_closed(which.number)); },
      [this](const timer_due&) {
        deadline_timer_.fired(steady_now());
        carry_out(transcriber_.tick(steady_now()));
      },
  };
}

void transcription::on_exit() {
  carry_out(transcriber_.give_up());
  drop_session();
  open_ = nullptr;
  tell_ = nullptr;
}

void transcription::carry_out(protocol::transcriber::effects&& effects) {
  for (auto& effect : effects) std::visit([this](auto& each) { perform(each); }, effect);
  deadline_timer_.arm(this, transcriber_.next_deadline());
}

void transcription::perform(protocol::guest::open_session& effect) {
  auto info = info_;
  info.accepted = steady_now();
  session_ = open_(std::move(info),
                   std::make_shared<guest_mailbox<transcription_actor>>(transcription_actor(this), effect.number));
}

void transcription::perform(protocol::guest::to_session& effect) {
  if (session_) session_->say(std::move(effect.event));
}

void transcription::perform(protocol::guest::turn_to_session& effect) {
  if (session_) session_->ask(effect.turn);
}

void transcription::perform(protocol::guest::drop_session&) {
  drop_session();
}

void transcription::perform(protocol::transcript& effect) {
  counted_.realtime().transcribed(effect.result);
  if (tell_) tell_(std::move(effect));
}

void transcription::drop_session() {
  if (!session_) return;
  session_->gone();
  session_.reset();
}

} // namespace parley::actors
