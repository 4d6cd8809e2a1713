#include "actors/meters/meters.hpp"

#include "actors/meters/metric_makers.hpp"

#include <prometheus/text_serializer.h>

#include <algorithm>

namespace parley::actors {

namespace {

using buckets = prometheus::Histogram::BucketBoundaries;

/// A unit lasts a second, so the buckets show how close to a second its answer comes.
const buckets unit_seconds{0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 5, 10};
const buckets turn_seconds{0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 40, 80, 120};
const buckets stage_seconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5};
const buckets wait_seconds{0.01, 0.1, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800};

prometheus::Family<prometheus::Histogram>& histogram(prometheus::Registry& in, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(in);
}

} // namespace

meters::meters()
    : unit_latency_(histogram(registry_, "parley_unit_latency_seconds",
                              "From a whole second of input to the last event of its answer.")),
      turn_latency_(
          histogram(registry_, "parley_turn_latency_seconds", "From a chat request to the end of its answer.")),
      stages_(histogram(registry_, "parley_stage_seconds", "Time of one step in each stage of the model.")),
      units_(counter_family(registry_, "parley_units_total", "Answered units, by what the model decided.")),
      late_(counter_family(registry_, "parley_deadline_misses_total",
                           "Units that were answered after more than a second.")),
      tokens_(counter_family(registry_, "parley_tokens_total", "Tokens into and out of the model.")),
      busy_s_(counter_family(registry_, "parley_worker_busy_seconds_total",
                             "Time that the model was at work; its rate is the share of a device's time.")),
      ended_(counter_family(registry_, "parley_sessions_ended_total", "Sessions that are over, by reason.")),
      key_tokens_(
          counter_family(registry_, "parley_key_tokens_total", "Tokens of ended sessions, by name of the API key.")),
      sessions_(gauge_family(registry_, "parley_sessions", "Live sessions.")),
      up_(gauge_family(registry_, "parley_worker_up", "1 while the worker has a loaded engine.")),
      info_(gauge_family(registry_, "parley_worker_info", "1; the labels name the worker's machine and device.")),
      slots_(gauge_family(registry_, "parley_worker_slots", "Slots for sessions, by whether they are in use.")),
      kv_pages_(gauge_family(registry_, "parley_kv_pages", "Pages of the KV cache, by whether a session holds them.")) {
  auto& errors = counter_family(registry_, "parley_errors_total", "Error events sent to clients.");
  for (std::size_t i = 0; i < errors_.size(); ++i)
    errors_[i] = &errors.Add({{"code", std::string(protocol::error_table[i].wire)}});
  // Prometheus only sees a series' first change if the series has begun at 0.
  for (const auto kind : {protocol::mode::chat, protocol::mode::audio, protocol::mode::video})
    for (const auto reason : protocol::session_end_words)
      ended_.Add({{"mode", std::string(name_of(kind))}, {"reason", std::string(reason)}});
  dropped_units_ =
      &counter_family(registry_, "parley_dropped_units_total", "Seconds of input dropped because newer ones came.")
           .Add({});
  failovers_ = &counter_family(registry_, "parley_failovers_total", "Sessions moved to another worker.").Add({});
  auto& resumes =
      counter_family(registry_, "parley_resumes_total", "Connections that tried to resume a session, by the answer.");
  resumed_ = &resumes.Add({{"result", "resumed"}});
  not_resumed_ = &resumes.Add({{"result", "refused"}});
  violations_ = &counter_family(registry_, "parley_invariant_violations_total",
                                "Failed assertions: defects of the server, each of which ended one session.")
                     .Add({});
  queue_wait_ = &histogram(registry_, "parley_queue_wait_seconds", "Time from requesting a slot to the grant.")
                     .Add({}, wait_seconds);
  queue_length_ = &gauge_family(registry_, "parley_queue_length", "Clients that wait for a slot.").Add({});
  slots_wanted_ =
      &gauge_family(registry_, "parley_slots_wanted", "Sessions that hold a slot, and clients that wait for one.")
           .Add({});
}

meters::worker::~worker() {
  for (const auto& each : withdraw) each();
}

std::shared_ptr<meters::worker> meters::of_worker(worker_key key) {
  const std::lock_guard lock(mutex_);
  auto& kept = workers_[key];
  if (kept) return kept;
  const std::string name = std::to_string(key);
  auto made = std::make_shared<worker>();
  auto& of = *made;
  const auto series = [&](auto& family, auto&&... how) {
    auto* const made_one = &family.Add(std::forward<decltype(how)>(how)...);
    of.withdraw.emplace_back([&family, made_one] { family.Remove(made_one); });
    return made_one;
  };
  using labels = prometheus::Labels;
  const auto tokens = [&](const char* direction, const char* kind) {
    return series(tokens_, labels{{"worker", name}, {"direction", direction}, {"kind", kind}});
  };
  const auto stage = [&](const char* what) {
    return series(stages_, labels{{"worker", name}, {"stage", what}}, stage_seconds);
  };
  for (const auto kind : {protocol::mode::audio, protocol::mode::video})
    of.unit_latency[kind] =
        series(unit_latency_, labels{{"worker", name}, {"mode", std::string(name_of(kind))}}, unit_seconds);
  of.turn_latency = series(turn_latency_, labels{{"worker", name}}, turn_seconds);
  of.listened = series(units_, labels{{"worker", name}, {"answer", "listen"}});
  of.spoke = series(units_, labels{{"worker", name}, {"answer", "speak"}});
  of.late = series(late_, labels{{"worker", name}});
  of.input_text = tokens("input", "text");
  of.input_audio = tokens("input", "audio");
  of.input_vision = tokens("input", "vision");
  of.output_text = tokens("output", "text");
  of.output_audio = tokens("output", "audio");
  of.prefill = stage("prefill");
  of.generate = stage("generate");
  of.llm = stage("llm");
  of.tts = stage("tts");
  of.token2wav = stage("token2wav");
  of.up = series(up_, labels{{"worker", name}});
  of.slots = series(slots_, labels{{"worker", name}, {"state", "offered"}});
  of.busy_slots = series(slots_, labels{{"worker", name}, {"state", "busy"}});
  of.kv_pages_used = series(kv_pages_, labels{{"worker", name}, {"state", "used"}});
  of.kv_pages_free = series(kv_pages_, labels{{"worker", name}, {"state", "free"}});
  for (std::size_t i = 0; i < of.counted.size(); ++i) {
    const auto& what = engine_counters[i];
    of.counted[i] = series(counter_family(registry_, what.metric, what.help),
                           labels{{"worker", name}, {what.label, what.label_value}});
  }
  of.busy_s = series(busy_s_, labels{{"worker", name}});
  return kept = std::move(made);
}

void meters::describe(worker_key key, const std::string& node, const std::string& device) {
  const auto kept = of_worker(key);
  const std::lock_guard lock(mutex_);
  if (kept->info) return;
  kept->info = &info_.Add({{"worker", std::to_string(key)}, {"node", node}, {"device", device}});
  kept->info->Set(1);
  kept->withdraw.emplace_back([this, info = kept->info] { info_.Remove(info); });
}

void meters::loaded(worker_key key, const worker_capacity& before, const worker_capacity& now) {
  const auto kept = of_worker(key);
  const auto& of = *kept;
  const auto add = [](prometheus::Counter& to, double was, double is) {
    if (is > was) to.Increment(is - was);
  };
  of.kv_pages_used->Set(now.engine.kv_pages - now.engine.kv_pages_free);
  of.kv_pages_free->Set(now.engine.kv_pages_free);
  for (std::size_t i = 0; i < of.counted.size(); ++i) {
    const auto& [metric, help, label, label_value, value, unit] = engine_counters[i];
    add(*of.counted[i], static_cast<double>(before.engine.*value) * unit,
        static_cast<double>(now.engine.*value) * unit);
  }
  add(*of.busy_s, before.busy_s, now.busy_s);
}

void meters::gone(worker_key key) {
  const auto kept = of_worker(key);
  const auto& of = *kept;
  for (auto* gauge : {of.up, of.slots, of.busy_slots, of.kv_pages_used, of.kv_pages_free}) gauge->Set(0);
}

void meters::remove(worker_key key) {
  std::shared_ptr<worker> last;
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(key);
  if (found == workers_.end()) return;
  last = std::move(found->second);
  workers_.erase(found);
}

prometheus::Gauge& meters::sessions(protocol::mode kind, protocol::session_state state) {
  return sessions_.Add({{"mode", std::string(name_of(kind))}, {"state", std::string(name_of(state))}});
}

void meters::violations(std::uint64_t so_far) {
  const std::lock_guard lock(mutex_);
  const auto more = static_cast<double>(so_far) - violations_->Value();
  if (more > 0) violations_->Increment(more);
}

void meters::ended(protocol::mode kind, protocol::session_end how, const std::string& key,
                   const protocol::usage& used) {
  ended_.Add({{"mode", std::string(name_of(kind))}, {"reason", std::string(word_of(how))}}).Increment();
  if (key.empty()) return;
  key_tokens_.Add({{"key", key}, {"direction", "input"}})
      .Increment(static_cast<double>(used.input_text + used.input_audio + used.input_vision));
  key_tokens_.Add({{"key", key}, {"direction", "output"}})
      .Increment(static_cast<double>(used.output_text + used.output_audio));
}

std::string meters::text() const {
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

} // namespace parley::actors
