#include "protocol/media/base64.hpp"
#include "protocol/openai/live/machine.hpp"
#include "protocol/openai/realtime/machine.hpp"
#include "protocol/speech/sound.hpp"

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

// What a second of a session costs the machines of OpenAI's dialects: ten appends of 100 ms come in, a unit goes to the
// inner session and its answer comes back. No sockets, no actors.
namespace {

namespace protocol = parley::protocol;
namespace openai = parley::protocol::openai;
namespace speech = parley::protocol::speech;
namespace rt = parley::protocol::openai::realtime;
using std::chrono::milliseconds;

std::string append_of(const char* type, float amplitude, std::size_t from) {
  std::vector<std::int16_t> words(2400);
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = static_cast<std::int16_t>(amplitude * 32'000 * std::sin(0.05 * static_cast<double>(from + i)));
  std::string out = std::string(R"({"type":")") + type + R"(","audio":")";
  protocol::base64::append(std::as_bytes(std::span(words)), out);
  return out + "\"}";
}

protocol::server_event unit_answer(bool speaks) {
  protocol::output_delta delta;
  delta.kind = speaks ? protocol::output_kind::audio : protocol::output_kind::listen;
  delta.response_id = "resp_1";
  if (speaks) delta.audio = std::make_shared<const std::vector<float>>(24'000, 0.125F);
  delta.measured.wall_clock_ms = 1;
  return delta;
}

/// Around a machine: answers each unit that it sends.
class shell {
public:
  shell(std::unique_ptr<openai::adapter> machine, bool speaks)
      : machine_(std::move(machine)), answer_(unit_answer(speaks)) {
    carry_out(machine_->start(now_));
  }

  void client(std::string_view frame) { carry_out(machine_->on_frame(frame, now_)); }

  void wait(milliseconds time) {
    const auto until = now_ + time;
    for (auto due = machine_->next_deadline(); due && *due <= until; due = machine_->next_deadline()) {
      now_ = std::max(now_, *due);
      carry_out(machine_->tick(now_));
    }
    now_ = until;
  }

private:
  void carry_out(openai::effects all) {
    for (auto& each : all) {
      benchmark::DoNotOptimize(each);
      if (const auto* opened = std::get_if<protocol::guest::open_session>(&each)) {
        number_ = opened->number;
        carry_out(machine_->on_inner_event(number_, protocol::session_created{}, now_));
      } else if (const auto* said = std::get_if<protocol::guest::to_session>(&each);
                 said && std::holds_alternative<protocol::append_event>(said->event)) {
        carry_out(machine_->on_inner_event(number_, answer_, now_));
      }
    }
  }

  parley::protocol::time_point now_{std::chrono::hours(1)};
  std::unique_ptr<openai::adapter> machine_;
  const protocol::server_event answer_;
  std::uint64_t number_ = 0;
};

protocol::random_source counting() {
  return [n = std::uint64_t{0}]() mutable { return n += 0x9E3779B97F4A7C15u; };
}

void second(benchmark::State& state, std::unique_ptr<openai::adapter> machine, const char* append, std::string begin) {
  const bool speaks = state.range(0) != 0;
  shell server(std::move(machine), speaks);
  server.client(begin);
  for (std::size_t i = 0; i < 20; ++i) {
    server.client(append_of(append, 0.3F, i * 2400));
    server.wait(milliseconds(100));
  }
  const auto quiet = append_of(append, 0.001F, 0);
  for (auto _ : state)
    for (int i = 0; i < 10; ++i) {
      server.client(quiet);
      server.wait(milliseconds(100));
    }
}

void realtime(benchmark::State& state) {
  rt::origin from;
  from.accepted = parley::protocol::time_point(std::chrono::hours(1));
  rt::machine_terms terms;
  terms.longest = terms.duplex_idle = std::chrono::hours(1'000);
  second(state, std::make_unique<rt::machine>(from, terms, counting()), "input_audio_buffer.append",
         R"({"type":"session.update","session":{"type":"realtime"}})");
}
BENCHMARK(realtime)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

void live(benchmark::State& state) {
  namespace lv = protocol::openai::live;
  lv::machine_terms terms;
  terms.longest = std::chrono::hours(1'000);
  second(state,
         std::make_unique<lv::machine>(lv::origin{parley::protocol::time_point(std::chrono::hours(1)), 0}, terms,
                                       counting()),
         "session.input_audio.append", R"({"type":"session.start","session":{"model":"parley"}})");
}
BENCHMARK(live)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

} // namespace

BENCHMARK_MAIN();
