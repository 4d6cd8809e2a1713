#include "protocol/codec/client_codec.hpp"
#include "protocol/codec/server_codec.hpp"
#include "protocol/media/base64.hpp"

#include <benchmark/benchmark.h>

#include <cmath>

// The cost of the wire format: decoding one second of sound, encoding one, and the base64 in between.
namespace {

using namespace parley::protocol;

std::vector<float> tone(std::size_t samples) {
  std::vector<float> out(samples);
  for (std::size_t i = 0; i < samples; ++i) out[i] = 0.5f * std::sin(0.05f * static_cast<float>(i));
  return out;
}

std::string encoded(const std::vector<float>& samples) {
  std::string out;
  base64::append(std::as_bytes(std::span(samples)), out);
  return out;
}

std::string append_frame(std::string_view audio) {
  return R"({"type":"input.append","input":{"audio":")" + std::string(audio) +
         R"(","force_listen":false,"max_slice_nums":1}})";
}

void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

void decode_base64(benchmark::State& state) {
  auto text = encoded(tone(16'000));
  std::vector<std::byte> out(*base64::decoded_size(text));
  for (auto _ : state) benchmark::DoNotOptimize(base64::decode_to(text, out.data()));
  count_bytes(state, text.size());
}

void encode_base64(benchmark::State& state) {
  auto samples = tone(24'000);
  std::string out;
  for (auto _ : state) {
    out.clear();
    base64::append(std::as_bytes(std::span(samples)), out);
    benchmark::DoNotOptimize(out.data());
  }
  count_bytes(state, out.size());
}

void peek_append(benchmark::State& state) {
  auto frame = append_frame(encoded(tone(16'000)));
  for (auto _ : state) benchmark::DoNotOptimize(peek(frame));
  count_bytes(state, frame.size());
}

void decode_append_of_one_second(benchmark::State& state) {
  auto frame = append_frame(encoded(tone(16'000)));
  for (auto _ : state) {
    auto from = peek(frame);
    benchmark::DoNotOptimize(decode_append(*from, mode::audio, 4000));
  }
  count_bytes(state, frame.size());
}

void decode_append_of_20_ms(benchmark::State& state) {
  auto frame = append_frame(encoded(tone(320)));
  for (auto _ : state) {
    auto from = peek(frame);
    benchmark::DoNotOptimize(decode_append(*from, mode::audio, 4000));
  }
  count_bytes(state, frame.size());
}

output_delta delta(output_kind kind) {
  output_delta out;
  out.kind = kind;
  out.response_id = "resp_0123456789ab";
  out.input_id = "input_4";
  out.chunk_index = 3;
  out.chunk_usage = usage{1, 10, 0, 5, 0};
  out.total = usage{100, 1000, 0, 50, 25};
  out.measured.kv_cache_length = 1024;
  out.measured.wall_clock_ms = 123.456;
  out.measured.dropped_chunks = 0;
  return out;
}

void encode_delta(benchmark::State& state, const output_delta& event) {
  std::size_t bytes = 0;
  for (auto _ : state) {
    auto text = encode(event, {dialect::current, "sess_0123456789abcdefghij", false, 1'700'000'000.25});
    bytes = text.size();
    benchmark::DoNotOptimize(text.data());
  }
  count_bytes(state, bytes);
}

void encode_audio_delta(benchmark::State& state) {
  auto event = delta(output_kind::audio);
  event.audio = std::make_shared<const std::vector<float>>(tone(24'000));
  encode_delta(state, event);
}

void encode_text_delta(benchmark::State& state) {
  auto event = delta(output_kind::text);
  event.text = "Hello, how are you today?";
  encode_delta(state, event);
}

BENCHMARK(decode_base64);
BENCHMARK(encode_base64);
BENCHMARK(peek_append);
BENCHMARK(decode_append_of_one_second);
BENCHMARK(decode_append_of_20_ms);
BENCHMARK(encode_audio_delta);
BENCHMARK(encode_text_delta);

} // namespace

BENCHMARK_MAIN();
