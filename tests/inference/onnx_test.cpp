#include "inference/formats/onnx_runner.hpp"
#include "inference/formats/safetensors.hpp"
#include "inference/voice/s3_tokenizer.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <cstdlib>

using namespace parley::inference;
using namespace parley::inference::speech;

namespace {

onnx_attribute numbers(std::vector<std::int64_t> values) {
  onnx_attribute made;
  made.integers = std::move(values);
  return made;
}

onnx_attribute number(std::int64_t value) {
  onnx_attribute made;
  made.integer = value;
  return made;
}

onnx_attribute text(std::string value) {
  onnx_attribute made;
  made.text = std::move(value);
  return made;
}

at::Tensor longs(std::vector<std::int64_t> values) {
  return at::tensor(values, at::kLong);
}

/// A graph with one node, whose further inputs are these.
onnx_graph one_node(const std::string& op, std::unordered_map<std::string, onnx_attribute> attributes,
                    const std::vector<at::Tensor>& inputs = {}, std::int64_t opset = 13) {
  onnx_graph graph;
  graph.origin = "made.onnx";
  graph.opset = opset;
  graph.inputs = {"x"};
  graph.outputs = {"y"};
  onnx_node node{op, "/" + op, {"x"}, {"y"}, std::move(attributes)};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto name = inputs[i].defined() ? "in" + std::to_string(i) : std::string();
    if (inputs[i].defined()) graph.initializers[name] = inputs[i];
    node.inputs.push_back(name);
  }
  graph.nodes.push_back(std::move(node));
  return graph;
}

at::Tensor run(onnx_graph graph, const at::Tensor& x, partial_window windows = partial_window::by_opset) {
  return onnx_runner(std::move(graph), at::kCPU, windows).run(x);
}

/// Compares with what run_graphs.py stored in a folder; returns the largest difference of any speaker vector.
double largest_difference(const std::filesystem::path& folder) {
  const auto results = safetensors_file::open(folder / "results.safetensors");
  const onnx_runner speaker(read_onnx(folder / "campplus.onnx"));
  const s3_tokenizer tokenizer(read_onnx(folder / "speech_tokenizer_v2_25hz.onnx"));
  const auto sound = results.tensor("speaker.input").to(at::kFloat) / 64,
             mel = results.tensor("tokenizer.input").to(at::kFloat) / 64;
  double largest = 0;
  int compared = 0;
  for (const auto& name : results.names()) {
    const auto first = name.find('.'), second = name.find('.', first + 1);
    if (second == std::string::npos) continue;
    const auto frames = std::stoll(name.substr(first + 1));
    const auto wanted = results.tensor(name);
    INFO(name);
    ++compared;
    if (name.starts_with("speaker."))
      largest = std::max(largest,
                         (speaker.run(sound.slice(0, 0, frames).unsqueeze(0))[0] - wanted).abs().max().item<double>());
    else
      CHECK(at::equal(tokenizer.tokens(mel.slice(1, 0, frames)), wanted.to(at::kLong)));
  }
  CHECK(compared >= 6);
  return largest;
}

} // namespace

TEST_CASE("networks as the older exporter writes them give what onnxruntime computes") {
  const auto graph = read_onnx("tests/data/onnx/campplus.onnx");
  CHECK(graph.opset == 13);
  CHECK(std::count_if(graph.nodes.begin(), graph.nodes.end(), [](const auto& node) { return node.op == "Pad"; }) == 6);
  CHECK(largest_difference("tests/data/onnx") < 2e-6);
}

// Run by hand, with a folder that make_graphs.py wrote at full size: PARLEY_GRAPHS=FOLDER
TEST_CASE("networks at full size give what onnxruntime computes") {
  const auto* folder = std::getenv("PARLEY_GRAPHS");
  if (folder == nullptr) return;
  const auto difference = largest_difference(folder);
  CHECK(difference < 1e-5);
  WARN("largest difference " << difference);
}

TEST_CASE("Pad takes its amounts as an attribute or as an input, of all axes or of some") {
  const auto x = at::arange(6, at::kFloat).view({1, 2, 3});
  const auto wider = at::constant_pad_nd(x, {1, 2}, 0);
  CHECK(at::equal(run(one_node("Pad", {{"pads", numbers({0, 0, 1, 0, 0, 2})}}), x), wider));        // opset 2 to 10
  CHECK(at::equal(run(one_node("Pad", {}, {longs({0, 0, 1, 0, 0, 2})}), x), wider));                // from opset 11
  CHECK(at::equal(run(one_node("Pad", {}, {longs({1, 2}), at::Tensor(), longs({-1})}), x), wider)); // from opset 18
  const auto sevens = run(one_node("Pad", {}, {longs({0, 1, 0, 0, 0, 0}), at::scalar_tensor(7.0F)}), x);
  CHECK(at::equal(sevens, at::constant_pad_nd(x, {0, 0, 1, 0}, 7)));
  CHECK(at::equal(run(one_node("Pad", {}, {longs({0, 0, -1, 0, 0, 0})}), x), x.slice(2, 1))); // negative padding cuts
  CHECK_THROWS_WITH(run(one_node("Pad", {}, {longs({1, 2, 3})}), x),
                    Catch::Contains("/Pad") && Catch::Contains("fit the axes"));
  CHECK_THROWS_WITH(run(one_node("Pad", {{"mode", text("reflect")}}, {longs({0, 0, 1, 0, 0, 0})}), x),
                    Catch::Contains("mode reflect is not known"));
}

TEST_CASE("a Pad of nothing passes its input through, whatever its mode") {
  const auto x = at::rand({2, 3});
  for (const auto* mode : {"constant", "reflect", "edge"})
    CHECK(run(one_node("Pad", {{"mode", text(mode)}}, {longs({0, 0, 0, 0})}), x).is_same(x));
}

TEST_CASE("slices go backwards, too") {
  const auto x = at::arange(10, at::kFloat);
  constexpr auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  auto sliced = [&](std::int64_t from, std::int64_t to, std::int64_t step) {
    return run(one_node("Slice", {}, {longs({from}), longs({to}), longs({0}), longs({step})}), x);
  };
  CHECK(at::equal(sliced(-1, least, -1), x.flip(0)));
  CHECK(at::equal(sliced(most, least + 1, -3), at::tensor({9.F, 6.F, 3.F, 0.F})));
  CHECK(at::equal(sliced(7, 2, -2), at::tensor({7.F, 5.F, 3.F})));
  CHECK(at::equal(sliced(-3, -6, -1), at::tensor({7.F, 6.F, 5.F})));
  CHECK(sliced(2, 7, -1).numel() == 0);
  CHECK(at::equal(sliced(2, most, 3), at::tensor({2.F, 5.F, 8.F})));
  CHECK_THROWS_WITH(sliced(0, 3, 0), Catch::Contains("does not advance"));
}

// The input is 250 ones; expected is what onnxruntime 1.18 to 1.32 computes.
TEST_CASE("the last partial window of a pool is divided as onnxruntime of that opset did") {
  const auto x = at::ones({1, 2, 250});
  auto pooled = [&](std::int64_t opset, bool padding_counts, std::vector<std::int64_t> pads,
                    partial_window windows = partial_window::by_opset) {
    auto graph = one_node("AveragePool",
                          {{"kernel_shape", numbers({100})},
                           {"strides", numbers({100})},
                           {"ceil_mode", number(1)},
                           {"count_include_pad", number(padding_counts)},
                           {"pads", numbers(std::move(pads))}},
                          {}, opset);
    return run(std::move(graph), x, windows)[0][0];
  };
  const auto ones = at::ones({3});
  for (auto opset : {11, 13, 17, 18, 19, 22}) {
    CHECK(at::allclose(pooled(opset, false, {0, 0}), ones));
    CHECK(at::allclose(pooled(opset, false, {10, 10}), ones));
    CHECK(at::allclose(pooled(opset, true, {0, 0}), opset < 19 ? at::tensor({1.F, 1.F, 0.5F}) : ones));
    CHECK(at::allclose(pooled(opset, true, {10, 10}), at::tensor({0.9F, 1.F, opset < 19 ? 0.6F : 0.85714287F})));
    CHECK(at::allclose(pooled(opset, true, {0, 0}, partial_window::by_what_it_holds), ones));
  }
}

TEST_CASE("a convolution whose pads do not fit its axes is refused") {
  const auto x = at::rand({1, 3, 7, 9}), weight = at::rand({4, 3, 3, 3});
  const auto padded = [&](std::vector<std::int64_t> pads) {
    return run(one_node("Conv", {{"pads", numbers(std::move(pads))}}, {weight}), x);
  };
  CHECK(padded({1, 1, 1, 1}).sizes() == at::IntArrayRef({1, 4, 7, 9}));
  for (const auto& pads : std::vector<std::vector<std::int64_t>>{{1}, {1, 1}, {1, 1, 1}, {1, 1, 1, 1, 1}})
    CHECK_THROWS_WITH(padded(pads), Catch::Contains("/Conv") && Catch::Contains("fit the axes"));
  CHECK_THROWS_WITH(run(one_node("Conv", {}, {at::rand({4})}), x), Catch::Contains("over no axis"));
}

TEST_CASE("pools of other forms") {
  const auto x = at::rand({2, 3, 7, 9});
  auto graph = [](std::int64_t ceil, std::vector<std::int64_t> pads) {
    return one_node("AveragePool", {{"kernel_shape", numbers({3, 2})},
                                    {"strides", numbers({2, 2})},
                                    {"ceil_mode", number(ceil)},
                                    {"pads", numbers(std::move(pads))}});
  };
  CHECK(at::allclose(run(graph(0, {0, 0, 0, 0}), x), at::avg_pool2d(x, {3, 2}, {2, 2}, {0, 0}, false, false)));
  CHECK(at::allclose(run(graph(1, {1, 1, 1, 1}), x), at::avg_pool2d(x, {3, 2}, {2, 2}, {1, 1}, true, false)));
  CHECK(run(graph(1, {0, 0, 1, 0}), x).size(2) == 4);
  const auto few =
      run(one_node("AveragePool",
                   {{"kernel_shape", numbers({100})}, {"strides", numbers({100})}, {"ceil_mode", number(1)}}),
          at::full({1, 1, 7}, 3.0F));
  CHECK(at::allclose(few, at::full({1, 1, 1}, 3.0F))); // input shorter than the window
}

TEST_CASE("an operator that is not known is named") {
  CHECK_THROWS_AS(onnx_runner(one_node("Frobnicate", {})), unknown_operator);
  CHECK_THROWS_WITH(onnx_runner(one_node("Frobnicate", {})),
                    Catch::Contains("made.onnx: operator Frobnicate is not known"));
}
