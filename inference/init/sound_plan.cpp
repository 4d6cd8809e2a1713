#include "inference/init/sound_plan.hpp"

#include "inference/init/plan.hpp"

#include <array>
#include <sstream>

namespace parley::inference::init {

namespace {

constexpr size speech_tokens = 6561, mel_bins = 80, speaker_width = 192, time_features = 256;

std::string numbered(const std::string& name, size i) {
  return name + "." + std::to_string(i) + ".";
}

void conformer_layer(const plan& p, const sound_sizes& s) {
  const auto d = s.encoder;
  const auto attention = p.under("self_attn.");
  attention.table("pos_bias_u", s.encoder_heads, d / s.encoder_heads);
  attention.table("pos_bias_v", s.encoder_heads, d / s.encoder_heads);
  for (const auto* name : {"linear_q", "linear_k", "linear_v", "linear_out"}) attention.linear(name, d, d);
  attention.weight("linear_pos.weight", {d, d});
  p.linear("feed_forward.w_1", s.encoder_ffn, d);
  p.linear("feed_forward.w_2", d, s.encoder_ffn);
  p.layer_norm("norm_ff", d);
  p.layer_norm("norm_mha", d);
}

void convolution(const plan& p, const std::string& name, size out, size in, size width) {
  p.weight(name + ".weight", {out, in, width});
  p.bias(name + ".bias", out);
}

void embedding(const plan& p, size d) {
  p.linear("0", d, d);
  p.layer_norm("1", d);
}

void plan_encoder(const plan& p, const sound_sizes& s) {
  const auto d = s.encoder;
  embedding(p.under("embed.out."), d);
  p.layer_norm("after_norm", d);
  convolution(p, "pre_lookahead_layer.conv1", d, d, 4);
  convolution(p, "pre_lookahead_layer.conv2", d, d, 3);
  for (size i = 0; i < s.encoder_blocks; ++i) conformer_layer(p.under(numbered("encoders", i)), s);
  convolution(p, "up_layer.conv", d, d, 5);
  embedding(p.under("up_embed.out."), d);
  for (size i = 0; i < s.up_blocks; ++i) conformer_layer(p.under(numbered("up_encoders", i)), s);
}

void plan_estimator(const plan& p, const sound_sizes& s) {
  const auto d = s.estimator;
  p.linear("t_embedder.mlp.0", d, time_features);
  p.linear("t_embedder.mlp.2", d, d);
  p.linear("in_proj", d, 4 * mel_bins);
  for (size i = 0; i < s.depth; ++i) {
    const auto block = p.under(numbered("blocks", i));
    for (const auto* name : {"attn.to_q", "attn.to_k", "attn.to_v"}) block.linear(name, d, d);
    block.layer_norm("attn.q_norm", d / s.estimator_heads);
    block.layer_norm("attn.k_norm", d / s.estimator_heads);
    block.linear("attn.proj", d, d);
    block.linear("mlp.fc1", 4 * d, d);
    block.linear("mlp.fc2", d, 4 * d);
    convolution(block, "conv.block.1", d, d, 3);
    block.layer_norm("conv.block.3", d);
    convolution(block, "conv.block.6", d, d, 3);
    block.linear("adaLN_modulation.1", 9 * d, d);
  }
  p.linear("final_layer.adaLN_modulation.1", 2 * d, d);
  p.linear("final_layer.linear", mel_bins, d);
}

/// A convolution with weight norm: a length and a direction for each row.
void normed_convolution(const plan& p, const std::string& name, size biases, std::vector<size> shape) {
  p.bias(name + ".bias", biases);
  p.add(name + ".parametrizations.weight.original0", {shape[0], 1, 1}, 1, 0.05);
  p.weight(name + ".parametrizations.weight.original1", std::move(shape));
}

void residual_block(const plan& p, size width, size kernel) {
  constexpr size dilations = 3;
  for (const auto* name : {"convs1", "convs2"})
    for (size i = 0; i < dilations; ++i)
      normed_convolution(p, std::string(name) + "." + std::to_string(i), width, {width, width, kernel});
  for (const auto* name : {"activations1", "activations2"})
    for (size i = 0; i < dilations; ++i) p.scale(numbered(name, i) + "alpha", width);
}

} // namespace

sound_sizes published_sound_sizes() {
  return {512, 8, 2048, 6, 4, 512, 8, 16, 512, 1280, 6, 32, 32, 128, {12, 24, 16}};
}

sound_sizes small_sound_sizes() {
  return {32, 4, 64, 3, 2, 32, 2, 2, 24, 64, 1, 2, 4, 16, {2, 2, 2}};
}

std::vector<planned_tensor> plan_flow(const sound_sizes& s) {
  std::vector<planned_tensor> result;
  const plan p(result);
  p.table("input_embedding.weight", speech_tokens, s.encoder);
  p.linear("spk_embed_affine_layer", mel_bins, speaker_width);
  plan_encoder(p.under("encoder."), s);
  p.linear("encoder_proj", mel_bins, s.encoder);
  plan_estimator(p.under("decoder.estimator."), s);
  return result;
}

std::vector<planned_tensor> plan_vocoder(const sound_sizes& s) {
  constexpr size harmonics = 9, spectrum = 18;
  constexpr std::array<size, 3> up_kernels{16, 11, 7}, down_kernels{30, 6, 1}, kernels{3, 7, 11},
      source_kernels{7, 7, 11};
  std::vector<planned_tensor> result;
  const plan p(result);
  p.linear("m_source.l_linear", 1, harmonics);
  normed_convolution(p, "conv_pre", s.vocoder, {s.vocoder, mel_bins, 7});
  for (std::size_t i = 0; i < up_kernels.size(); ++i) {
    const auto wide = s.vocoder >> i, narrow = wide / 2;
    normed_convolution(p, "ups." + std::to_string(i), narrow, {wide, narrow, up_kernels[i]});
  }
  for (std::size_t i = 0; i < down_kernels.size(); ++i)
    convolution(p, "source_downs." + std::to_string(i), s.vocoder >> (i + 1), spectrum, down_kernels[i]);
  for (std::size_t i = 0; i < source_kernels.size(); ++i)
    residual_block(p.under(numbered("source_resblocks", static_cast<size>(i))), s.vocoder >> (i + 1),
                   source_kernels[i]);
  for (std::size_t i = 0; i < 9; ++i)
    residual_block(p.under(numbered("resblocks", static_cast<size>(i))), s.vocoder >> (i / 3 + 1), kernels[i % 3]);
  normed_convolution(p, "conv_post", spectrum, {spectrum, s.vocoder >> 3, 7});
  for (size i = 0; i < 10; i += 2)
    normed_convolution(p, "f0_predictor.condnet." + std::to_string(i), s.vocoder,
                       {s.vocoder, i == 0 ? mel_bins : s.vocoder, 3});
  p.linear("f0_predictor.classifier", 1, s.vocoder);
  return result;
}

std::string flow_yaml(const sound_sizes& s) {
  std::ostringstream text;
  text << "flow: !new:cosyvoice2.flow.flow.CausalMaskedDiffWithXvec\n  input_size: " << s.encoder
       << "\n  output_size: 80\n  spk_embed_dim: 192\n  output_type: 'mel'\n  vocab_size: 6561\n"
          "  encoder: !new:cosyvoice2.transformer.upsample_encoder_v2.UpsampleConformerEncoderV2\n    input_size: "
       << s.encoder << "\n    output_size: " << s.encoder
       << "\n    input_layer: 'linear'\n    pre_lookahead_len: 3\n    num_blocks: " << s.encoder_blocks
       << "\n    num_up_blocks: " << s.up_blocks
       << "\n    up_stride: 2\n    up_scale_factor: 2\n    attention_heads: " << s.encoder_heads
       << "\n    pos_enc_layer_type: 'rel_pos_espnet'\n    selfattention_layer_type: 'rel_selfattn'\n    key_bias: "
          "true\n"
          "    linear_units: "
       << s.encoder_ffn
       << "\n    normalize_before: True\n    activation_type: 'swish'\n"
          "  decoder: !new:cosyvoice2.flow.flow_matching.CausalConditionalCFM\n    inference_cfg_rate: 0.7\n"
          "    estimator: !new:cosyvoice2.flow.decoder_dit.DiT\n      in_channels: 320\n      out_channels: 80\n"
          "      mlp_ratio: 4.0\n      depth: "
       << s.depth << "\n      num_heads: " << s.estimator_heads
       << "\n      head_dim: " << s.estimator / s.estimator_heads << "\n      hidden_size: " << s.estimator << "\n";
  return text.str();
}

} // namespace parley::inference::init
