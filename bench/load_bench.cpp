#include "client/codec/server_glance.hpp"
#include "client/load_client.hpp"
#include "client/load_material.hpp"
#include "protocol/codec/server_codec.hpp"
#include "protocol/media/wav.hpp"

#include <benchmark/benchmark.h>

// What a simulated person costs the load generator, without the socket: reading messages, deciding what to do.
namespace {

using namespace parley::client;
namespace protocol = parley::protocol;

std::string answer(std::size_t samples) {
  protocol::output_delta delta;
  delta.input_id = "input_1";
  delta.kind = samples > 0 ? protocol::output_kind::audio : protocol::output_kind::listen;
  if (samples > 0) delta.audio = std::make_shared<const std::vector<float>>(samples, 0.25F);
  delta.measured.kv_cache_length = 100;
  delta.measured.wall_clock_ms = 5;
  delta.measured.dropped_chunks = 0;
  return protocol::encode(delta, {.spoken = protocol::dialect::current, .session_id = "sess_1"});
}

void read_answer(benchmark::State& state) {
  const auto frame = answer(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(glance(frame));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(frame.size()));
}
BENCHMARK(read_answer)->Arg(0)->Arg(24'000)->Unit(benchmark::kMicrosecond);

struct no_hands final : load_hands {
  void send_init() override {}
  void send_unit(std::size_t, bool) override {}
  void send_question() override {}
  void send_close() override {}
  void wake_at(double) override {}
  void leave() override {}
};

/// One second of a session: wake up, send, receive an answer with sound.
void second(benchmark::State& state) {
  const load_script script{{10}};
  const load_habits habits;
  const load_scenario role;
  no_hands hands;
  load_figures figures;
  load_client person(role, script, habits, 1e12, hands, figures);
  server_glance event;
  event.type = server_event_type::queue_done;
  person.connecting(0);
  person.heard(0, event);
  event.type = server_event_type::created;
  person.heard(0, event);
  event.type = server_event_type::spoken;
  event.text = event.answers_unit = true;
  event.audio_samples = 24'000;
  double now = 0;
  for (auto _ : state) {
    ++event.input;
    person.heard(now + 0.1, event);
    person.woken(now += 1);
  }
}
BENCHMARK(second)->Unit(benchmark::kMicrosecond);

/// Encodes everything that is sent, from ten seconds of speech. Happens once per run.
void encode_material(benchmark::State& state) {
  const std::string wavs[] = {protocol::write_wav(std::vector<float>(160'000, 0.25F), 16'000)};
  const std::string prompts[] = {"Hello?"};
  for (auto _ : state) benchmark::DoNotOptimize(load_material::make(wavs, "", prompts, 64, {}));
}
BENCHMARK(encode_material)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
