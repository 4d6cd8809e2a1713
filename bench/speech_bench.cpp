// One second of speech of many sessions, stage by stage: 25 speech tokens, the flow encoder with the estimator's five
// steps, the causal vocoder; and what a voice costs once. Random weights in the sizes of models/tiny-omni and of the
// published checkpoint; only the networks that analyse a voice are read from models/, so run it from the source root.
//   speech_bench [--benchmark_filter=tiny|real|mixed]
// mixed: the real sizes with engine.speech_dtype=mixed.
// The counter `rtf` is the number of seconds that one second of a session takes: below 1 is faster than real time.
// Names end in the number of sessions that share a call.

#include "inference/tts/turn.hpp"
#include "inference/vocoder/bounded_vocoder.hpp"
#include "inference/vocoder/flow.hpp"
#include "inference/vocoder/noise.hpp"
#include "inference/vocoder/token2wav.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

using namespace parley::inference;
using namespace parley::inference::speech;

namespace {

struct sizes {
  std::int64_t tts_layers, tts_width, tts_mlp;
  int tts_heads;
  std::int64_t encoder_width, encoder_heads, encoder_units, encoder_blocks, encoder_up_blocks;
  std::int64_t dit_depth, dit_width, dit_heads, dit_head_dim;
  std::int64_t hift_base, f0_channels;
};

/// docs/model/talker.md 1 and 11.
constexpr sizes real{20, 768, 3072, 12, 512, 8, 2048, 6, 4, 16, 512, 8, 64, 512, 512};
constexpr sizes tiny{2, 32, 64, 4, 32, 4, 64, 3, 2, 2, 32, 2, 16, 24, 24};

constexpr std::int64_t bins = 80, codes = 6562, harmonics = 9;

class random_weights {
public:
  void linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias = true) {
    put(name + ".weight", {out, in}, 0.5 / std::sqrt(static_cast<double>(in)));
    if (bias) put(name + ".bias", {out}, 0.01);
  }
  void conv(const std::string& name, std::int64_t out, std::int64_t in, std::int64_t kernel) {
    put(name + ".weight", {out, in, kernel}, 0.5 / std::sqrt(static_cast<double>(in * kernel)));
    put(name + ".bias", {out}, 0.01);
  }
  void norm(const std::string& name, std::int64_t width) {
    map.put(name + ".weight", at::ones({width}));
    map.put(name + ".bias", at::zeros({width}));
  }
  void put(const std::string& name, at::IntArrayRef shape, double scale) { map.put(name, at::randn(shape) * scale); }

  tensor_map map{"random weights"};
};

tensor_map tts_weights(const sizes& s) {
  random_weights w;
  w.put("head_code.0.parametrizations.weight.original1", {codes, s.tts_width}, 1);
  w.put("head_code.0.parametrizations.weight.original0", {codes, 1}, 1);
  w.map.put("model.norm.weight", at::ones({s.tts_width}));
  for (std::int64_t i = 0; i < s.tts_layers; ++i) {
    const auto name = "model.layers." + std::to_string(i) + '.';
    for (const std::string part : {"q", "k", "v", "o"})
      w.linear(name + "self_attn." + part + "_proj", s.tts_width, s.tts_width, false);
    w.linear(name + "mlp.gate_proj", s.tts_mlp, s.tts_width, false);
    w.linear(name + "mlp.up_proj", s.tts_mlp, s.tts_width, false);
    w.linear(name + "mlp.down_proj", s.tts_width, s.tts_mlp, false);
    w.map.put(name + "input_layernorm.weight", at::ones({s.tts_width}));
    w.map.put(name + "post_attention_layernorm.weight", at::ones({s.tts_width}));
  }
  return w.map;
}

tensor_map flow_weights(const sizes& s) {
  random_weights w;
  const auto d = s.encoder_width, c = s.dit_width, inner = s.dit_heads * s.dit_head_dim;
  w.put("input_embedding.weight", {codes - 1, d}, 1);
  w.linear("spk_embed_affine_layer", bins, 192);
  w.linear("encoder_proj", bins, d);
  for (const std::string part : {"embed", "up_embed"}) {
    w.linear("encoder." + part + ".out.0", d, d);
    w.norm("encoder." + part + ".out.1", d);
  }
  w.norm("encoder.after_norm", d);
  w.conv("encoder.pre_lookahead_layer.conv1", d, d, 4);
  w.conv("encoder.pre_lookahead_layer.conv2", d, d, 3);
  w.conv("encoder.up_layer.conv", d, d, 5);
  auto conformer = [&](const std::string& name) {
    for (const std::string part : {"q", "k", "v", "out"}) w.linear(name + ".self_attn.linear_" + part, d, d);
    w.linear(name + ".self_attn.linear_pos", d, d, false);
    w.put(name + ".self_attn.pos_bias_u", {s.encoder_heads, d / s.encoder_heads}, 0.1);
    w.put(name + ".self_attn.pos_bias_v", {s.encoder_heads, d / s.encoder_heads}, 0.1);
    w.linear(name + ".feed_forward.w_1", s.encoder_units, d);
    w.linear(name + ".feed_forward.w_2", d, s.encoder_units);
    w.norm(name + ".norm_ff", d);
    w.norm(name + ".norm_mha", d);
  };
  for (std::int64_t i = 0; i < s.encoder_blocks; ++i) conformer("encoder.encoders." + std::to_string(i));
  for (std::int64_t i = 0; i < s.encoder_up_blocks; ++i) conformer("encoder.up_encoders." + std::to_string(i));
  const std::string e = "decoder.estimator.";
  w.linear(e + "t_embedder.mlp.0", c, 256);
  w.linear(e + "t_embedder.mlp.2", c, c);
  w.linear(e + "in_proj", c, 4 * bins);
  for (std::int64_t i = 0; i < s.dit_depth; ++i) {
    const auto name = e + "blocks." + std::to_string(i) + '.';
    for (const std::string part : {"q", "k", "v"}) w.linear(name + "attn.to_" + part, inner, c);
    w.norm(name + "attn.q_norm", s.dit_head_dim);
    w.norm(name + "attn.k_norm", s.dit_head_dim);
    w.linear(name + "attn.proj", c, inner);
    w.linear(name + "mlp.fc1", 4 * c, c);
    w.linear(name + "mlp.fc2", c, 4 * c);
    w.conv(name + "conv.block.1", c, c, 3);
    w.norm(name + "conv.block.3", c);
    w.conv(name + "conv.block.6", c, c, 3);
    w.linear(name + "adaLN_modulation.1", 9 * c, c);
  }
  w.linear(e + "final_layer.adaLN_modulation.1", 2 * c, c);
  w.linear(e + "final_layer.linear", bins, c);
  return w.map;
}

tensor_map vocoder_weights(const sizes& s) {
  random_weights w;
  const std::int64_t kernels[] = {16, 11, 7}, down_kernels[] = {30, 6, 1}, source_kernels[] = {7, 7, 11},
                     block_kernels[] = {3, 7, 11};
  w.linear("m_source.l_linear", 1, harmonics);
  w.conv("conv_pre", s.hift_base, bins, 5);
  auto block = [&](const std::string& name, std::int64_t width, std::int64_t kernel) {
    for (int i = 0; i < 3; ++i)
      for (const std::string half : {"1.", "2."}) {
        w.conv(name + ".convs" + half + std::to_string(i), width, width, kernel);
        w.map.put(name + ".activations" + half + std::to_string(i) + ".alpha", at::ones({width}));
      }
  };
  auto width = s.hift_base;
  for (int i = 0; i < 3; ++i) {
    const auto n = std::to_string(i);
    w.conv("ups." + n, width / 2, width, kernels[i]);
    width /= 2;
    w.conv("source_downs." + n, width, 18, down_kernels[i]);
    block("source_resblocks." + n, width, source_kernels[i]);
    for (int j = 0; j < 3; ++j) block("resblocks." + std::to_string(3 * i + j), width, block_kernels[j]);
  }
  w.conv("conv_post", 18, width, 7);
  for (int i = 0; i < 5; ++i)
    w.conv("f0_predictor.condnet." + std::to_string(2 * i), s.f0_channels, i == 0 ? bins : s.f0_channels,
           i == 0 ? 4 : 3);
  w.linear("f0_predictor.classifier", 1, s.f0_channels);
  return w.map;
}

void report(benchmark::State& state) {
  state.counters["rtf"] = benchmark::Counter(static_cast<double>(state.iterations() * state.range(0)),
                                             benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

enum class products { float32, mixed };

/// 25 tokens of every session, after a prefill of ten words.
void speech_tokens(benchmark::State& state, const sizes& s, products by = products::float32) {
  c10::InferenceMode inference;
  tts_config config;
  config.heads = config.kv_heads = s.tts_heads;
  const tts_embeddings embeddings(at::randn({codes, s.tts_width}), at::randn({1, s.tts_width}),
                                  at::randn({1, s.tts_width}));
  tts_llama model(tts_weights(s), config);
  if (by == products::mixed) model.use_int8();
  std::vector<tts_turn> turns(static_cast<std::size_t>(state.range(0)),
                              tts_turn(embeddings, model, tts_form::duplex, {}));
  random_stream chance(1, substream::speech_tokens);
  std::vector<tts_step> steps;
  for (auto& turn : turns) steps.push_back({&turn, &chance});
  const auto condition = at::randn({10, s.tts_width});
  for (auto _ : state) {
    for (auto& turn : turns) {
      turn.reset();
      turn.begin(condition, {26, 26});
    }
    while (turns[0].running()) tts_advance(model, steps);
  }
  report(state);
}

/// 28 tokens to 50 mel frames, after a voice of six seconds and two seconds of speech.
void mel_frames(benchmark::State& state, const sizes& s, products by = products::float32) {
  c10::InferenceMode inference;
  flow model(flow_weights(s), {}, 5, noise_tables::draw(1).flow);
  if (by == products::mixed) model.use_bfloat16();
  const auto speaker = at::randn({bins});
  const std::int64_t prompt = 150;
  const auto tokens = at::randint(codes - 1, {28}, at::kLong);
  flow::state warm;
  const flow::job setup{&warm, at::randint(codes - 1, {prompt + 3}, at::kLong), speaker, false,
                        at::randn({2 * prompt, bins})};
  model.run({&setup, 1});
  for (int i = 0; i < 2; ++i) {
    const flow::job chunk{&warm, tokens, speaker, false, {}};
    model.run({&chunk, 1});
  }
  for (auto _ : state) {
    std::vector<flow::state> streams(static_cast<std::size_t>(state.range(0)), warm);
    std::vector<flow::job> jobs;
    for (auto& stream : streams) jobs.push_back({&stream, tokens, speaker, false, {}});
    benchmark::DoNotOptimize(model.run(jobs));
  }
  report(state);
}

/// 50 mel frames to 24 000 samples, `block_frames` at a time.
void samples(benchmark::State& state, const sizes& s, products by = products::float32) {
  c10::InferenceMode inference;
  auto network = std::make_shared<hift_causal>(vocoder_weights(s), hift_config());
  if (by == products::mixed) network->use_bfloat16();
  const bounded_vocoder vocoder(network, at::rand({24000, harmonics}), state.range(1));
  const auto mel = at::randn({1, bins, 50}) - 4;
  auto warm = vocoder.start();
  const bounded_vocoder::job first{&warm, mel, false};
  vocoder.stream({&first, 1});
  for (auto _ : state) {
    std::vector<bounded_vocoder::state> streams(static_cast<std::size_t>(state.range(0)), warm);
    std::vector<bounded_vocoder::job> jobs;
    for (auto& stream : streams) jobs.push_back({&stream, mel, false});
    benchmark::DoNotOptimize(vocoder.stream(jobs));
  }
  report(state);
}

/// Prepares a reference voice of the given length, from its samples to the state that a session starts with. `rtf` is
/// per second of voice.
void voice_preparation(benchmark::State& state) {
  c10::InferenceMode inference;
  const token2wav model("models/tiny-omni/assets/token2wav", noise_tables::draw(1));
  const auto seconds = state.range(0);
  random_stream chance(1, substream::noise);
  std::vector<float> samples(static_cast<std::size_t>(seconds * 16000));
  for (auto& x : samples) x = static_cast<float>(chance.next() - 0.5);
  for (auto _ : state) benchmark::DoNotOptimize(model.prepare(model.ear().hear(samples)));
  report(state);
}

BENCHMARK(voice_preparation)->Name("voice_preparation/tiny")->Arg(3)->Arg(10)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(speech_tokens, tiny, tiny)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(mel_frames, tiny, tiny)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(samples, tiny, tiny)->Args({1, 16})->Args({1, 50})->Args({8, 50})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(speech_tokens, real, real)->Arg(1)->Arg(4)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(mel_frames, real, real)->Arg(1)->Arg(4)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(samples, real, real)
    ->Args({1, 16})
    ->Args({1, 50})
    ->Args({4, 50})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(speech_tokens, mixed, real, products::mixed)
    ->Arg(1)
    ->Arg(4)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(mel_frames, mixed, real, products::mixed)
    ->Arg(1)
    ->Arg(4)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(samples, mixed, real, products::mixed)
    ->Args({1, 50})
    ->Args({4, 50})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

} // namespace

BENCHMARK_MAIN();
