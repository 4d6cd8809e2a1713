#include "actors/session/session_meter.hpp"

#include "base/assert.hpp"

namespace parley::actors {

namespace {

constexpr double unit_duration_ms = 1000;

void count_if_any(prometheus::Counter& to, std::int64_t tokens) {
  if (tokens > 0) to.Increment(static_cast<double>(tokens));
}

void time_if_any(prometheus::Histogram& to, double milliseconds) {
  if (milliseconds > 0) to.Observe(milliseconds / 1000);
}

} // namespace

void session_meter::sent(const protocol::server_event& event, protocol::mode kind) {
  if (const auto* error = std::get_if<protocol::error_event>(&event)) return all_.errors(error->code).Increment();
  if (const auto* delta = std::get_if<protocol::output_delta>(&event)) {
    if (delta->audio) tally_.spoken += delta->audio->size();
    // In chat the end of the turn counts, otherwise the last delta of the step (docs/protocol.md 6.2).
    if (kind != protocol::mode::chat && delta->measured.wall_clock_ms && !delta->closes_turn) answered(*delta, kind);
    return;
  }
  if (const auto* done = std::get_if<protocol::response_done>(&event); done && worker_ && done->measured.wall_clock_ms)
    worker_->turn_latency->Observe((*done->measured.wall_clock_ms + done->measured.queue_ms.value_or(0)) / 1000);
}

void session_meter::submitted(const conversation::turn_request& turn) {
  const auto add = [this](const conversation::pcm& sound) { tally_.heard += sound ? sound->size() : 0; };
  for (const auto& message : turn.messages) {
    if (message.from != conversation::role::user) continue;
    for (const auto& item : message.content) {
      if (const auto* audio = std::get_if<conversation::audio_item>(&item)) add(audio->samples);
      if (const auto* video = std::get_if<conversation::video_item>(&item)) add(video->samples);
    }
  }
}

void session_meter::answered(const protocol::output_delta& delta, protocol::mode kind) {
  if (const auto dropped = delta.measured.dropped_chunks.value_or(0); dropped > dropped_) {
    all_.dropped_units().Increment(static_cast<double>(dropped - dropped_));
    dropped_ = dropped;
  }
  ++tally_.answered;
  if (!worker_) return;
  PARLEY_ASSERT(delta.measured.wall_clock_ms, "an answer that is counted was timed");
  const double latency_ms = *delta.measured.wall_clock_ms + delta.measured.queue_ms.value_or(0);
  worker_->unit_latency.at(kind)->Observe(latency_ms / 1000);
  if (latency_ms > unit_duration_ms) {
    worker_->late->Increment();
    ++tally_.late;
  }
  (delta.kind == protocol::output_kind::listen ? worker_->listened : worker_->spoke)->Increment();
}

void session_meter::heard(const conversation::event& event) {
  if (!worker_) return;
  if (const auto* opened = std::get_if<conversation::opened>(&event)) return count(opened->prompt_usage);
  if (const auto* output = std::get_if<conversation::step_output>(&event)) {
    if (output->first) count(output->used);
    if (output->last) count(output->metrics);
  } else if (const auto* done = std::get_if<conversation::chat_done>(&event)) {
    count(done->used);
    count(done->metrics);
  }
}

void session_meter::count(const conversation::usage& used) {
  count_if_any(*worker_->input_text, used.input_text);
  count_if_any(*worker_->input_audio, used.input_audio);
  count_if_any(*worker_->input_vision, used.input_vision);
  count_if_any(*worker_->output_text, used.output_text);
  count_if_any(*worker_->output_audio, used.output_audio);
}

void session_meter::count(const conversation::step_metrics& cost) {
  time_if_any(*worker_->prefill, cost.prefill_ms);
  time_if_any(*worker_->generate, cost.generate_ms);
  time_if_any(*worker_->llm, cost.llm_ms);
  time_if_any(*worker_->tts, cost.tts_ms);
  time_if_any(*worker_->token2wav, cost.token2wav_ms);
}

} // namespace parley::actors
