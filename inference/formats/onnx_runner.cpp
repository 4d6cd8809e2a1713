#include "inference/formats/onnx_runner.hpp"

#include "inference/formats/onnx_call.hpp"

#include <ATen/ATen.h>

namespace parley::inference::speech {

onnx_runner::onnx_runner(onnx_graph graph, at::Device device, partial_window windows)
    : graph_(std::move(graph)), device_(device),
      whole_kernel_(windows == partial_window::by_opset && graph_.opset > 0 && graph_.opset < 19),
      dead_after_(graph_.nodes.size()) {
  if (graph_.inputs.size() != 1 || graph_.outputs.empty())
    throw std::runtime_error(graph_.origin + ": a graph of one input was expected");
  std::unordered_map<std::string, std::size_t> last_reader;
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const auto& node = graph_.nodes[i];
    if (!onnx::operations().contains(node.op) || node.outputs.empty())
      throw unknown_operator(graph_.origin + ": operator " + node.op + " is not known");
    for (const auto& name : node.inputs) last_reader[name] = i;
  }
  for (const auto& [name, reader] : last_reader)
    if (!graph_.initializers.contains(name) && name != graph_.outputs[0]) dead_after_[reader].push_back(name);
  for (auto& [name, tensor] : graph_.initializers)
    if (tensor.is_floating_point()) tensor = tensor.to(device_);
}

at::Tensor onnx_runner::run(const at::Tensor& input) const {
  c10::InferenceMode inference;
  auto values = graph_.initializers;
  values[graph_.inputs[0]] = input.to(device_);
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const auto& node = graph_.nodes[i];
    onnx::call c{node, {}, device_, whole_kernel_};
    for (const auto& name : node.inputs) {
      auto found = values.find(name);
      if (!name.empty() && found == values.end())
        throw std::runtime_error(graph_.origin + ": node " + node.name + " reads \"" + name + "\", which nobody makes");
      c.in.push_back(name.empty() ? at::Tensor() : found->second);
    }
    try {
      auto made = onnx::operations().at(node.op)(c);
      onnx::check_size(made.sizes());
      values[node.outputs[0]] = std::move(made);
    } catch (const c10::Error& error) {
      throw std::runtime_error(graph_.origin + ": node " + node.name + ": " + error.what_without_backtrace());
    } catch (const std::exception& error) {
      throw std::runtime_error(graph_.origin + ": node " + node.name + ": " + error.what());
    }
    for (const auto& name : dead_after_[i]) values.erase(name);
  }
  return values.at(graph_.outputs[0]);
}

} // namespace parley::inference::speech
