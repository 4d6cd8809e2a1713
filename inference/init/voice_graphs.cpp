#include "inference/init/voice_graphs.hpp"

#include <cmath>

namespace parley::inference::init {

namespace {

using size = std::int64_t;
using strings = std::vector<std::string>;

/// Names a network's parts as an exporter does: repeated operators in a module are numbered.
class speaker_graph {
public:
  speaker_graph(onnx_writer& out, const sound_sizes& sizes) : out_(out), sizes_(sizes) {}

  std::string build() {
    auto x = out_.node("Transpose", "/Transpose", {"input"}, {onnx_writer::integers("perm", {0, 2, 1})});
    x = head(x);
    width_ = sizes_.speaker_first;
    x = relu("/xvector/tdnn",
             convolve("/xvector/tdnn/linear", x, {width_, sizes_.speaker_head * 10, 5}, 2, 2, 1, true));
    for (std::size_t b = 0; b < sizes_.speaker_blocks.size(); ++b) x = block(b, x);
    x = relu("/xvector/out_nonlinear", x);
    x = statistics("/xvector/stats", x);
    return dense("/xvector/dense", x, 2 * width_);
  }

private:
  /// Layers whose outputs are concatenated with their inputs, then a layer that halves the result.
  std::string block(std::size_t index, std::string x) {
    const auto number = std::to_string(index + 1);
    const auto name = "/xvector/block" + number, transit = "/xvector/transit" + number;
    for (size i = 0; i < sizes_.speaker_blocks[index]; ++i, width_ += sizes_.speaker_growth)
      x = dense_layer(name, i, x, width_, index == 0 ? 1 : 2);
    x = relu(transit, batch_norm(transit + "/nonlinear/batchnorm", x, width_));
    const bool last = index + 1 == sizes_.speaker_blocks.size();
    x = convolve(transit + "/linear", x, {width_ / 2, width_, 1}, 1, 0, 1, last);
    width_ /= 2;
    return x;
  }

  std::string weight(const std::string& name, std::vector<size> shape) {
    size inputs = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) inputs *= shape[i];
    return out_.initializer(
        {name.substr(1) + ".weight", std::move(shape), 0, 1 / std::sqrt(static_cast<double>(inputs))});
  }

  std::string vector(const std::string& name, size width, double mean) {
    return out_.initializer({name.substr(1), {width}, mean, 0.05});
  }

  /// A convolution over one dimension, or over two if the shape has four.
  std::string convolve(const std::string& name, const std::string& x, std::vector<size> shape, size stride, size pad,
                       size dilation, bool bias) {
    const auto dims = shape.size() - 2;
    const auto kernel = std::vector<size>(shape.begin() + 2, shape.end());
    const auto out = shape[0];
    auto strides = std::vector<size>(dims, 1);
    strides[0] = stride;
    strings inputs{x, weight(name, std::move(shape))};
    if (bias) inputs.push_back(vector(name + ".bias", out, 0));
    return out_.node("Conv", name + "/Conv", inputs,
                     {onnx_writer::integers("dilations", std::vector<size>(dims, dilation)),
                      onnx_writer::integer("group", 1), onnx_writer::integers("kernel_shape", kernel),
                      onnx_writer::integers("pads", std::vector<size>(2 * dims, pad)),
                      onnx_writer::integers("strides", strides)});
  }

  std::string batch_norm(const std::string& name, const std::string& x, size width) {
    return batch_norm(name, x, vector(name + ".weight", width, 1), vector(name + ".bias", width, 0), width);
  }

  std::string batch_norm(const std::string& name, const std::string& x, const std::string& scale,
                         const std::string& bias, size width) {
    return out_.node(
        "BatchNormalization", name + "/BatchNormalization",
        {x, scale, bias, vector(name + ".running_mean", width, 0), vector(name + ".running_var", width, 1)},
        {onnx_writer::real("epsilon", 1e-5F), onnx_writer::real("momentum", 0.9F)});
  }

  std::string relu(const std::string& module, const std::string& x) {
    return out_.node("Relu", module + "/Relu" + (++relus_ > 1 ? "_" + std::to_string(relus_ - 1) : ""), {x});
  }

  std::string residual(const std::string& name, const std::string& x, size stride) {
    const auto w = sizes_.speaker_head;
    auto y = relu(name, convolve(name + "/conv1", x, {w, w, 3, 3}, stride, 1, 1, true));
    y = convolve(name + "/conv2", y, {w, w, 3, 3}, 1, 1, 1, true);
    const auto straight =
        stride == 1 ? x : convolve(name + "/shortcut/shortcut.0", x, {w, w, 1, 1}, stride, 0, 1, true);
    return relu(name, out_.node("Add", name + "/Add", {y, straight}));
  }

  std::string shape_at(const std::string& name, const std::string& x, size axis) {
    const auto shape = out_.node("Shape", name + "/Shape_" + std::to_string(axis), {x});
    const auto index = out_.constant(name + "/Constant_at_" + std::to_string(axis), {axis}, true);
    return out_.node("Gather", name + "/Gather_" + std::to_string(axis), {shape, index},
                     {onnx_writer::integer("axis", 0)});
  }

  std::string as_list(const std::string& name, const std::string& scalar) {
    return out_.node("Unsqueeze", name, {scalar, out_.constant(name + "/axes", {0})});
  }

  std::string concat(const std::string& name, const strings& parts, size axis) {
    return out_.node("Concat", name, parts, {onnx_writer::integer("axis", axis)});
  }

  std::string head(std::string x) {
    const auto w = sizes_.speaker_head;
    x = out_.node("Unsqueeze", "/head/Unsqueeze", {x, out_.constant("/head/Constant", {1})});
    x = relu("/head", convolve("/head/conv1", x, {w, 1, 3, 3}, 1, 1, 1, true));
    x = residual("/head/layer1/layer1.1", residual("/head/layer1/layer1.0", x, 2), 1);
    x = residual("/head/layer2/layer2.1", residual("/head/layer2/layer2.0", x, 2), 1);
    x = relu("/head", convolve("/head/conv2", x, {w, w, 3, 3}, 2, 1, 1, true));
    strings extents;
    for (size axis = 0; axis < 4; ++axis) extents.push_back(shape_at("/head", x, axis));
    const auto rows = out_.node("Mul", "/head/Mul", {extents[1], extents[2]});
    const auto shape = concat("/head/Concat",
                              {as_list("/head/Unsqueeze_1", extents[0]), as_list("/head/Unsqueeze_2", rows),
                               as_list("/head/Unsqueeze_3", extents[3])},
                              0);
    return out_.node("Reshape", "/head/Reshape", {x, shape});
  }

  /// Means of segments of 100 columns, each repeated for its columns: [B, C, T].
  std::string segments(const std::string& name, const std::string& x) {
    const auto nothing = out_.constant(name + "/pads", {0, 0, 0, 0, 0, 0});
    auto y = out_.node("Pad", name + "/Pad", {x, nothing}, {onnx_writer::text("mode", "constant")});
    y = out_.node("AveragePool", name + "/AveragePool", {y},
                  {onnx_writer::integer("ceil_mode", 1), onnx_writer::integers("kernel_shape", {100}),
                   onnx_writer::integers("pads", {0, 0}), onnx_writer::integers("strides", {100})});
    strings extents;
    for (size axis = 0; axis < 3; ++axis) extents.push_back(shape_at(name, y, axis));
    y = out_.node("Unsqueeze", name + "/Unsqueeze", {y, out_.constant(name + "/Constant_3", {-1})});
    strings wanted;
    for (size axis = 0; axis < 3; ++axis)
      wanted.push_back(
          as_list(name + "/Unsqueeze_" + std::to_string(axis + 1), extents[static_cast<std::size_t>(axis)]));
    wanted.push_back(out_.constant(name + "/Constant_7", {100}));
    auto shape = concat(name + "/Concat", wanted, 0);
    shape = out_.node("Reshape", name + "/Reshape", {shape, out_.constant(name + "/Constant_8", {-1})});
    const auto ones =
        out_.node("ConstantOfShape", name + "/ConstantOfShape", {out_.node("Shape", name + "/Shape_3", {shape})},
                  {onnx_writer::longs("value", {1}, {1})});
    const auto open = out_.node("Mul", name + "/Mul", {ones, out_.constant(name + "/Constant_9", {-1}, true)});
    const auto is_open = out_.node("Equal", name + "/Equal", {shape, open});
    y = out_.node("Expand", name + "/Expand", {y, out_.node("Where", name + "/Where", {is_open, ones, shape})});
    const auto first = as_list(name + "/Unsqueeze_4", extents[0]), second = as_list(name + "/Unsqueeze_5", extents[1]);
    const auto flat = concat(name + "/Concat_1", {first, second, out_.constant(name + "/Constant_10", {-1})}, 0);
    y = out_.node("Reshape", name + "/Reshape_1", {y, flat});
    const auto columns =
        out_.node("Gather", name + "/Gather_3",
                  {out_.node("Shape", name + "/Shape_4", {x}), out_.constant(name + "/Constant_11", {2}, true)},
                  {onnx_writer::integer("axis", 0)});
    const auto axis = out_.constant(name + "/Constant_12", {2}), from = out_.constant(name + "/Constant_13", {0});
    const auto to = as_list(name + "/Unsqueeze_6", columns);
    return out_.node("Slice", name + "/Slice", {y, from, to, axis, out_.constant(name + "/Constant_15", {1})});
  }

  std::string dense_layer(const std::string& block, size index, const std::string& x, size width, size dilation) {
    const auto growth = sizes_.speaker_growth, inner = 4 * growth;
    const auto name = block + "/tdnnd" + std::to_string(index + 1), cam = name + "/cam_layer";
    auto y = relu(name, batch_norm(name + "/nonlinear1/batchnorm", x, width));
    y = relu(name, convolve(name + "/linear1", y, {inner, width, 1}, 1, 0, 1, true));
    const auto local = convolve(cam + "/linear_local", y, {growth, inner, 3}, 1, dilation, dilation, false);
    const auto mean = out_.node("ReduceMean", cam + "/ReduceMean", {y},
                                {onnx_writer::integers("axes", {-1}), onnx_writer::integer("keepdims", 1)});
    auto context = out_.node("Add", cam + "/Add", {mean, segments(cam, y)});
    context = relu(cam, convolve(cam + "/linear1", context, {inner / 2, inner, 1}, 1, 0, 1, true));
    context = convolve(cam + "/linear2", context, {growth, inner / 2, 1}, 1, 0, 1, true);
    const auto mask = out_.node("Sigmoid", cam + "/Sigmoid", {context});
    return concat(block + "/Concat_" + std::to_string(index), {x, out_.node("Mul", cam + "/Mul_1", {local, mask})}, 1);
  }

  /// Mean and deviation over time: [B, 2 C].
  std::string statistics(const std::string& name, const std::string& x) {
    auto mean_of = [&](const std::string& node, const std::string& of, size keep) {
      return out_.node("ReduceMean", name + node, {of},
                       {onnx_writer::integers("axes", {-1}), onnx_writer::integer("keepdims", keep)});
    };
    const auto mean = mean_of("/ReduceMean", x, 0), centre = mean_of("/ReduceMean_1", x, 1);
    auto count = out_.node("Gather", name + "/Gather",
                           {out_.node("Shape", name + "/Shape", {x}), out_.constant(name + "/Constant", {-1})},
                           {onnx_writer::integer("axis", 0)});
    count = out_.node("ReduceProd", name + "/ReduceProd", {count}, {onnx_writer::integer("keepdims", 0)});
    const auto off = out_.node("Sub", name + "/Sub", {x, centre});
    const auto spread = mean_of("/ReduceMean_2", out_.node("Mul", name + "/Mul", {off, off}), 0);
    count = out_.node("Cast", name + "/Cast", {count}, {onnx_writer::integer("to", 1)});
    const auto sum = out_.node("Mul", name + "/Mul_1", {spread, count});
    const auto one = out_.node("Constant", name + "/Constant_1", {}, {onnx_writer::floats("value", {1})});
    const auto variance = out_.node("Div", name + "/Div", {sum, out_.node("Sub", name + "/Sub_1", {count, one})});
    return concat(name + "/Concat", {mean, out_.node("Sqrt", name + "/Sqrt", {variance})}, -1);
  }

  /// The last batch norm has no weights of its own: its ones and zeros are constants.
  std::string dense(const std::string& name, std::string x, size width) {
    constexpr size embedding = 192;
    x = out_.node("Unsqueeze", name + "/Unsqueeze", {x, out_.constant(name + "/Constant", {-1})});
    x = convolve(name + "/linear", x, {embedding, width, 1}, 1, 0, 1, false);
    x = out_.node("Squeeze", name + "/Squeeze", {x, out_.constant(name + "/Constant_1", {2})});
    const auto norm = name + "/nonlinear/batchnorm";
    const auto ones =
        out_.node("Constant", norm + "/Constant", {}, {onnx_writer::floats("value", std::vector<float>(embedding, 1))});
    const auto zeros = out_.node("Constant", norm + "/Constant_1", {},
                                 {onnx_writer::floats("value", std::vector<float>(embedding, 0))});
    return batch_norm(norm, x, ones, zeros, embedding);
  }

  onnx_writer& out_;
  const sound_sizes& sizes_;
  size width_ = 0; ///< channels so far
  int relus_ = 0;
};

/// Matrices are stored as [in, out] under numbers; everything else has its module's name.
class tokenizer_graph {
public:
  explicit tokenizer_graph(onnx_writer& out, size width) : out_(out), width_(width) {}

  std::string build(size blocks) {
    constexpr size mels = 128, digits = 8;
    std::string x = convolve("/conv1", "input", "onnx::Conv_2216", "onnx::Conv_2217", mels);
    x = convolve("/conv2", x, "onnx::Conv_2218", "onnx::Conv_2219", width_);
    for (size i = 0; i < blocks; ++i) x = block("/blocks." + std::to_string(i), x);
    const auto matrix =
        out_.initializer({"onnx::MatMul_2536", {width_, digits}, 0, 1 / std::sqrt(static_cast<double>(width_))});
    x = out_.node("MatMul", "/quantizer/project_in/MatMul", {x, matrix});
    return out_.node("Add", "/quantizer/project_in/Add", {vector("quantizer.project_in.bias", digits, 0), x});
  }

private:
  std::string vector(const std::string& name, size width, double mean) {
    return out_.initializer({name, {width}, mean, 0.05});
  }

  std::string convolve(const std::string& name, const std::string& x, const std::string& weight,
                       const std::string& bias, size in) {
    const auto matrix = out_.initializer({weight, {width_, in, 3}, 0, 1 / std::sqrt(3.0 * static_cast<double>(in))});
    return out_.node("Conv", name + "/Conv", {x, matrix, vector(bias, width_, 0)},
                     {onnx_writer::integers("kernel_shape", {3}), onnx_writer::integers("strides", {2}),
                      onnx_writer::integers("pads", {1, 1})});
  }

  std::string linear(const std::string& name, const std::string& x, size in, size out, bool bias = true) {
    const auto matrix = out_.initializer(
        {"onnx::MatMul_" + std::to_string(next_++), {in, out}, 0, 1 / std::sqrt(static_cast<double>(in))});
    const auto y = out_.node("MatMul", name + "/MatMul", {x, matrix});
    return bias ? out_.node("Add", name + "/Add", {vector(name.substr(1) + ".bias", out, 0), y}) : y;
  }

  std::string norm(const std::string& name, const std::string& x, float eps) {
    return out_.node("LayerNormalization", name + "/LayerNormalization",
                     {x, vector(name.substr(1) + ".weight", width_, 1), vector(name.substr(1) + ".bias", width_, 0)},
                     {onnx_writer::integer("axis", -1), onnx_writer::real("epsilon", eps)});
  }

  std::string block(const std::string& name, const std::string& x) {
    constexpr size reach = 31;
    const auto normed = norm(name + "/attn_ln", x, 1e-6F), attention = name + "/attn";
    const auto q = linear(attention + "/query", normed, width_, width_),
               k = linear(attention + "/key", normed, width_, width_, false);
    const auto v = linear(attention + "/value", normed, width_, width_);
    const auto memory = out_.initializer(
        {name.substr(1) + ".attn.fsmn_block.weight", {width_, 1, reach}, 0, 1 / std::sqrt(static_cast<double>(reach))});
    const auto remembered =
        out_.node("Conv", attention + "/fsmn_block/Conv", {v, memory}, {onnx_writer::integer("group", width_)});
    const auto heard = out_.node("Add", attention + "/Add", {out_.node("Mul", attention + "/Mul", {q, k}), remembered});
    const auto y = out_.node("Add", name + "/Add", {x, linear(attention + "/out", heard, width_, width_)});
    const auto wide = linear(name + "/mlp/mlp.0", norm(name + "/mlp_ln", y, 1e-5F), width_, 4 * width_);
    return out_.node("Add", name + "/Add_1", {y, linear(name + "/mlp/mlp.2", wide, 4 * width_, width_)});
  }

  onnx_writer& out_;
  size width_;
  int next_ = 2400; // number in the name of the next block matrix
};

} // namespace

onnx_writer write_speaker_network(const std::filesystem::path& file, const sound_sizes& sizes, std::uint64_t seed) {
  onnx_writer out;
  const auto last = speaker_graph(out, sizes).build();
  out.write(file, "input", last, 13, seed);
  return out;
}

onnx_writer write_speech_tokenizer(const std::filesystem::path& file, const sound_sizes& sizes, std::uint64_t seed) {
  onnx_writer out;
  const auto last = tokenizer_graph(out, sizes.ear).build(sizes.ear_blocks);
  out.write(file, "input", last, 17, seed);
  return out;
}

} // namespace parley::inference::init
