#include "inference/voice/s3_tokenizer.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <numeric>
#include <stdexcept>

namespace parley::inference::speech {
namespace {

constexpr std::int64_t head_dim = 64;
constexpr std::int64_t window_frames = 3000, window_stride = 2600, overlap_tokens = 50;

/// Finds a weight by the node that uses it; matrices are transposed to [out, in].
at::Tensor used_by(const onnx_graph& graph, const std::string& node_name) {
  const auto* node = graph.find_node(node_name);
  if (node != nullptr)
    for (const auto& input : node->inputs)
      if (auto found = graph.initializers.find(input); found != graph.initializers.end())
        return found->second.dim() == 2 ? found->second.t().contiguous() : found->second;
  throw std::runtime_error(graph.origin + ": no weight at node " + node_name);
}

at::Tensor named(const onnx_graph& graph, const std::string& name) {
  auto found = graph.initializers.find(name);
  if (found == graph.initializers.end()) throw std::runtime_error(graph.origin + ": no tensor " + name);
  return found->second;
}

linear linear_of(const onnx_graph& graph, const std::string& node, bool bias = true) {
  linear made;
  made.weight = used_by(graph, node + "/MatMul");
  if (bias) made.bias = used_by(graph, node + "/Add");
  return made;
}

layer_norm norm_of(const onnx_graph& graph, const std::string& node_name, double eps) {
  const auto* node = graph.find_node(node_name + "/LayerNormalization");
  if (node == nullptr || node->inputs.size() < 3)
    throw std::runtime_error(graph.origin + ": no weights at node " + node_name);
  layer_norm made;
  made.weight = named(graph, node->inputs[1]);
  made.bias = named(graph, node->inputs[2]);
  made.eps = eps;
  return made;
}

std::vector<std::int64_t> halved(std::vector<std::int64_t> lengths) {
  for (auto& length : lengths) length = (length + 1) / 2;
  return lengths;
}

/// 1 where a column is real: [B, 1, columns]
at::Tensor mask_of(const std::vector<std::int64_t>& lengths, std::int64_t columns, const at::TensorOptions& like) {
  const auto ends = at::tensor(lengths, at::kLong).to(like.device()).view({-1, 1, 1});
  return (at::arange(columns, ends.options()).view({1, 1, -1}) < ends).to(at::kFloat);
}

at::Tensor rotated(const at::Tensor& x, const at::Tensor& angles) {
  const auto half = head_dim / 2;
  const auto turned = at::cat({-x.narrow(-1, half, half), x.narrow(-1, 0, half)}, -1);
  return x * at::cos(angles) + turned * at::sin(angles);
}

} // namespace

s3_tokenizer::s3_tokenizer(const onnx_graph& graph, at::Device device) {
  auto conv = [&](const char* weight, const char* bias) {
    padded_conv made;
    made.weight = named(graph, weight).to(device);
    made.bias = named(graph, bias).to(device);
    made.stride = 2;
    made.left = made.right = 1;
    return made;
  };
  conv_first_ = conv("onnx::Conv_2216", "onnx::Conv_2217");
  conv_second_ = conv("onnx::Conv_2218", "onnx::Conv_2219");
  project_.weight = named(graph, "onnx::MatMul_2536").t().contiguous().to(device);
  project_.bias = named(graph, "quantizer.project_in.bias").to(device);
  for (int i = 0;; ++i) {
    const auto name = "/blocks." + std::to_string(i);
    if (graph.find_node(name + "/attn/query/MatMul") == nullptr) break;
    block made{norm_of(graph, name + "/attn_ln", 1e-6),
               norm_of(graph, name + "/mlp_ln", 1e-5),
               linear_of(graph, name + "/attn/query"),
               linear_of(graph, name + "/attn/key", false),
               linear_of(graph, name + "/attn/value"),
               linear_of(graph, name + "/attn/out"),
               linear_of(graph, name + "/mlp/mlp.0"),
               linear_of(graph, name + "/mlp/mlp.2"),
               used_by(graph, name + "/attn/fsmn_block/Conv").to(device)};
    for (auto* norm : {&made.attention_norm, &made.feed_norm}) {
      norm->weight = norm->weight.to(device);
      norm->bias = norm->bias.to(device);
    }
    for (auto* part : {&made.query, &made.key, &made.value, &made.out, &made.widen, &made.narrow}) {
      part->weight = part->weight.to(device);
      if (part->bias.defined()) part->bias = part->bias.to(device);
    }
    blocks_.push_back(std::move(made));
  }
  if (blocks_.empty() || blocks_[0].query.weight.size(0) % head_dim != 0)
    throw std::runtime_error(graph.origin + ": no attention blocks with heads of 64");
}

at::Tensor s3_tokenizer::attend(const block& layer, const at::Tensor& x, const at::Tensor& real,
                                const at::Tensor& bias) const {
  const auto batch = x.size(0), rows = x.size(1), width = x.size(2);
  auto heads = [&](const at::Tensor& y) { return y.view({batch, rows, -1, head_dim}).transpose(1, 2); };
  const auto options = x.options();
  const auto frequency = at::pow(10000.0, at::arange(0, head_dim, 2, options) * (-1.0 / head_dim));
  const auto half = at::arange(rows, options).unsqueeze(1) * frequency;
  const auto angles = at::cat({half, half}, 1);
  const auto scale = std::pow(static_cast<double>(head_dim), -0.25);
  const auto q = rotated(heads(layer.query(x)), angles) * scale, k = rotated(heads(layer.key(x)), angles) * scale;
  const auto v = layer.value(x);
  const auto weights = at::softmax(at::matmul(q, k.transpose(-1, -2)) + bias, -1);
  const auto attended = at::matmul(weights, heads(v)).transpose(1, 2).reshape({batch, rows, width});

  const auto columns = v.transpose(1, 2) * real;
  const auto reach = (layer.memory.size(2) - 1) / 2;
  const auto memory =
      at::conv1d(columns, layer.memory, {}, at::IntArrayRef(1), at::IntArrayRef(reach), at::IntArrayRef(1), width);
  return layer.out(attended) + ((memory + columns) * real).transpose(1, 2);
}

at::Tensor s3_tokenizer::run(const at::Tensor& mel, const std::vector<std::int64_t>& frames) const {
  auto lengths = frames;
  auto x = mel * mask_of(lengths, mel.size(2), mel.options());
  for (const auto* conv : {&conv_first_, &conv_second_}) {
    lengths = halved(lengths);
    x = at::gelu((*conv)(x));
    if (conv == &conv_first_) x = x * mask_of(lengths, x.size(2), x.options());
  }
  const auto real = mask_of(lengths, x.size(2), x.options());
  const auto bias = ((1 - real) * -1e10).unsqueeze(1);
  x = x.transpose(1, 2);
  for (const auto& layer : blocks_) {
    x = x + attend(layer, layer.attention_norm(x), real, bias);
    x = x + layer.narrow(at::gelu(layer.widen(layer.feed_norm(x))));
  }
  return project_(x);
}

at::Tensor s3_tokenizer::project(const at::Tensor& log_mel) const {
  return run(log_mel.unsqueeze(0), {log_mel.size(1)}).squeeze(0);
}

/// Finite scalar quantisation: each number becomes one of three digits, the least significant digit first.
at::Tensor s3_tokenizer::quantise(const at::Tensor& projected) const {
  constexpr double edge = 1 - 1e-6;
  const auto digits = at::round(at::tanh(projected).clamp(-edge, edge) + 1).to(at::kLong);
  const auto weights = at::pow(3, at::arange(digits.size(-1), digits.options()));
  return (digits * weights).sum(-1);
}

at::Tensor s3_tokenizer::tokens(const at::Tensor& log_mel) const {
  const auto frames = log_mel.size(1);
  if (frames <= window_frames) return quantise(project(log_mel));
  std::vector<at::Tensor> windows;
  std::vector<std::int64_t> lengths;
  for (std::int64_t from = 0; from < frames; from += window_stride) {
    const auto window = log_mel.slice(1, from, from + window_frames);
    lengths.push_back(window.size(1));
    windows.push_back(at::constant_pad_nd(window, {0, window_frames - window.size(1)}));
  }
  const auto all = quantise(run(at::stack(windows), lengths));
  std::vector<at::Tensor> kept;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto rows = halved(halved({lengths[i]}))[0];
    const auto from = i == 0 ? 0 : overlap_tokens, to = i + 1 == lengths.size() ? rows : rows - overlap_tokens;
    kept.push_back(all[static_cast<std::int64_t>(i)].slice(0, from, std::max(from, to)));
  }
  return at::cat(kept, 0);
}

} // namespace parley::inference::speech
