#include "inference/verify/talker_set.hpp"

#include <ATen/ATen.h>

namespace parley::inference::verify {

namespace {

using namespace talker_tolerance;

/// A stream that begins with the recorded state of the voice.
struct flow_replay {
  std::unique_ptr<speech::flow> model;
  at::Tensor speaker;
  speech::flow::state stream;
  speech::flow::trace trace;

  flow_replay(talker_set& set, int steps) : model(set.load_flow(steps)) {
    speaker = model->project_speaker(set.tensor("flow_setup", "spk_emb").squeeze(0));
    run(set.tensor("flow_setup", "setup_tokens"), false, set.tensor("flow_setup", "prompt_mel").squeeze(0));
  }

  at::Tensor run(const at::Tensor& tokens, bool last, const at::Tensor& prompt_mel = {}) {
    trace = {};
    const speech::flow::job job{&stream, tokens.squeeze(0).to(at::kLong), speaker, last, prompt_mel};
    return model->run({&job, 1}, &trace)[0];
  }
};

/// What the blocks' convolutions remember, with time as the last axis: [blocks, 2, 2 * width, kernel - 1]
at::Tensor conv_columns(const speech::dit::cache& of) {
  return at::stack(of.conv).transpose(2, 3);
}

/// [rows, bins] for some steps -> [steps, bins, rows]
at::Tensor columns(const std::vector<at::Tensor>& rows) {
  return at::stack(rows).transpose(1, 2);
}

/// The recordings contain all steps, or the first ones and the last, or only the first.
std::vector<at::Tensor> recorded_steps(const std::vector<at::Tensor>& all, std::int64_t recorded) {
  if (recorded == static_cast<std::int64_t>(all.size())) return all;
  if (recorded == 1) return {all.front()};
  if (recorded == 2) return {all.front(), all.back()};
  if (recorded == 3) return {all.front(), all[1], all.back()};
  throw std::runtime_error("recorded steps are not known");
}

void compare_trace(talker_set& set, const std::string& name, const speech::flow::trace& mine, case_check& check) {
  const auto golden = [&](const char* key) { return set.golden(name, key); };
  check.close("enc_out", mine.encoded[0].unsqueeze(0), golden("enc_out"), module);
  check.close("mu", mine.mu[0].unsqueeze(0), golden("mu"), module);
  check.close("ode_t", at::tensor(mine.t), golden("ode_t"), module);
  auto steps = [&](const char* key, const std::vector<at::Tensor>& all, double tolerance) {
    const auto recorded = golden(key);
    const auto count = recorded.count / all.front().numel();
    check.close(key, columns(recorded_steps(all, count)), recorded, tolerance);
  };
  steps("ode_x", mine.x, ode_state);
  steps("ode_dphi_cond", mine.conditioned, velocity);
  steps("ode_dphi_uncond", mine.unconditioned, velocity);
}

/// A layer's cache as the reference packs it: token-rate rows appear twice, so that all layers have the same length.
at::Tensor packed(const flow_replay& replay, std::size_t layer) {
  const auto rows = replay.stream.encoder.attention[layer].joined();
  return (layer < replay.model->encoder().token_layers() ? rows.repeat({1, 2, 1}) : rows).unsqueeze(0);
}

void compare_encoder_cache(talker_set& set, const std::string& name, const flow_replay& replay, case_check& check) {
  const auto& cache = replay.stream.encoder;
  check.close("conformer_cnn_cache", at::cat({cache.lookahead, cache.upsampled}, 2),
              set.golden(name, "conformer_cnn_cache"), module);
  const auto layers = cache.attention.size();
  if (set.has_golden(name, "conformer_att_cache")) {
    std::vector<at::Tensor> all;
    for (std::size_t n = 0; n < layers; ++n) all.push_back(packed(replay, n));
    check.close("conformer_att_cache", at::stack(all), set.golden(name, "conformer_att_cache"), module);
    return;
  }
  check.close("conformer_att_cache_l0", packed(replay, 0), set.golden(name, "conformer_att_cache_l0"), module);
  check.close("conformer_att_cache_last", packed(replay, layers - 1), set.golden(name, "conformer_att_cache_last"),
              module);
}

} // namespace

void replay_flow_setup(talker_set& set, const std::string& name, report& out) {
  out.run(name, "voice set-up", velocity, [&](case_check& check) {
    const flow_replay replay(set, set.entry(name).at("n_timesteps").get<int>());
    check.close("spk_proj", replay.speaker.unsqueeze(0), set.tensor(name, "spk_proj"), module);
    compare_trace(set, name, replay.trace, check);
    compare_encoder_cache(set, name, replay, check);
    const auto& steps = replay.stream.steps;
    std::vector<at::Tensor> conv;
    for (const auto& step : steps) conv.push_back(conv_columns(step));
    check.close("estimator_cnn_cache", at::stack(conv), set.golden(name, "estimator_cnn_cache"), velocity);
    check.close("estimator_att_cache_step0", speech::stacked(steps.front().attention),
                set.golden(name, "estimator_att_cache_step0"), velocity);
    check.close("estimator_att_cache_last", speech::stacked(steps.back().attention),
                set.golden(name, "estimator_att_cache_last"), velocity);
  });
}

void replay_flow_chunk(talker_set& set, const std::string& name, report& out) {
  out.run(name, "chunk", velocity, [&](case_check& check) {
    flow_replay replay(set, set.entry(name).at("n_timesteps").get<int>());
    const std::string prefix = "flow_chunk_";
    const auto number = std::stoi(name.substr(prefix.size()));
    at::Tensor mel;
    for (int n = 0; n <= number; ++n) {
      const auto chunk = prefix + std::to_string(n);
      check.equal("noise_offset", replay.stream.steps[0].rows(),
                  set.entry(chunk).at("noise_offset").get<std::int64_t>());
      mel = replay.run(set.tensor(chunk, "tokens"), set.entry(chunk).at("last_chunk").get<bool>());
    }
    check.close("mel", mel, set.golden(name, "mel"), ode_state);
    compare_trace(set, name, replay.trace, check);
    compare_encoder_cache(set, name, replay, check);
    const auto& first = replay.stream.steps.front();
    check.close("estimator_cnn_cache_step0", conv_columns(first), set.golden(name, "estimator_cnn_cache_step0"),
                velocity);
    check.close("estimator_att_cache_step0_block0", first.attention[0].joined(),
                set.golden(name, "estimator_att_cache_step0_block0"), velocity);
  });
}

void replay_flow_chunk_steps(talker_set& set, const std::string& name, report& out) {
  out.run(name, "chunk", ode_state, [&](case_check& check) {
    flow_replay replay(set, set.entry(name).at("n_timesteps").get<int>());
    const auto mel = replay.run(set.tensor(name, "tokens"), false);
    check.close("mel", mel, set.golden(name, "mel"));
    check.close("ode_t", at::tensor(replay.trace.t), set.tensor(name, "ode_t"));
    check.close("ode_x_last", replay.trace.x.back().t(), set.golden(name, "ode_x_last"));
  });
}

void replay_flow_full(talker_set& set, const std::string& name, report& out) {
  out.run(name, "utterance", ode_state, [&](case_check& check) {
    const auto model = set.load_flow(set.entry(name).at("n_timesteps").get<int>());
    const auto voice = set.recorded_voice(set.prompt_of(set.entry("_set").at("voice").get<std::string>()));
    const auto prompt = set.tensor(name, "prompt_tokens").squeeze(0).to(at::kLong);
    check.equal("prompt_tokens", as_tokens(prompt), as_tokens(voice.tokens));
    speech::flow::state stream;
    speech::flow::trace trace;
    const auto tokens = at::cat({prompt, set.tensor(name, "tokens").squeeze(0).to(at::kLong)}, 0);
    const speech::flow::job job{&stream, tokens, model->project_speaker(voice.speaker), true, voice.mel};
    const auto mel = model->run({&job, 1}, &trace)[0];
    check.close("enc_out", trace.encoded[0].unsqueeze(0), set.golden(name, "enc_out"), module);
    check.close("mel", mel.slice(2, voice.mel.size(0)), set.golden(name, "mel"));
  });
}

void replay_dit_unit(talker_set& set, const std::string& name, report& out) {
  out.run(name, "estimator", velocity, [&](case_check& check) {
    const auto model = set.load_flow(set.steps());
    const auto& estimator = model->estimator();
    const auto golden = [&](const char* key) { return set.tensor(name, key); };
    const auto embedded = estimator.embed_time(golden("t"));
    check.close("t_emb", embedded, golden("t_emb"), module);
    const auto rows = golden("x").size(2);
    const auto inputs =
        at::cat({golden("x"), golden("mu"), golden("spks").unsqueeze(2).expand({2, -1, rows}), golden("cond")}, 1);
    speech::dit::cache cache;
    const speech::dit::job job{&cache, rows};
    const auto y = estimator.run(inputs.transpose(1, 2), estimator.modulate(embedded), {&job, 1});
    check.close("y", y.transpose(1, 2), golden("y"));
    check.close("cnn_cache", conv_columns(cache), golden("cnn_cache"), module);
    check.close("att_cache", speech::stacked(cache.attention), set.golden(name, "att_cache"), module);
  });
}

} // namespace parley::inference::verify
