#include "inference/init/onnx_writer.hpp"

#include "inference/init/random_floats.hpp"

#include <fstream>
#include <span>
#include <stdexcept>

namespace parley::inference::init {

namespace {

// Protocol buffers encoding.

void varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

void number(std::string& to, std::uint32_t id, std::int64_t value) {
  varint(to, id << 3);
  varint(to, static_cast<std::uint64_t>(value));
}

/// Begins a bytes field, of which `size` bytes will follow.
void opening(std::string& to, std::uint32_t id, std::uint64_t size) {
  varint(to, id << 3 | 2);
  varint(to, size);
}

void bytes(std::string& to, std::uint32_t id, std::string_view value) {
  opening(to, id, value.size());
  to += value;
}

template<class T>
std::string_view raw(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

constexpr std::int64_t float_type = 1, long_type = 7;                                            // TensorProto.DataType
constexpr std::int64_t of_real = 1, of_integer = 2, of_text = 3, of_tensor = 4, of_integers = 7; // AttributeProto

std::string tensor_head(const std::vector<std::int64_t>& shape, std::int64_t type, std::string_view name) {
  std::string made;
  for (auto extent : shape) number(made, 1, extent);
  number(made, 2, type);
  if (!name.empty()) bytes(made, 8, name);
  return made;
}

std::string attribute_of(std::string_view name, std::int64_t kind) {
  std::string made;
  bytes(made, 1, name);
  number(made, 20, kind);
  return made;
}

/// ValueInfoProto of float32 with unknown extents.
std::string value_info(const std::string& name) {
  std::string element, type, made;
  number(element, 1, float_type);
  bytes(type, 1, element);
  bytes(made, 1, name);
  bytes(made, 2, type);
  return made;
}

} // namespace

onnx_writer::attribute onnx_writer::integer(std::string_view name, std::int64_t value) {
  auto made = attribute_of(name, of_integer);
  number(made, 3, value);
  return made;
}

onnx_writer::attribute onnx_writer::integers(std::string_view name, const std::vector<std::int64_t>& values) {
  auto made = attribute_of(name, of_integers);
  for (auto value : values) number(made, 8, value);
  return made;
}

onnx_writer::attribute onnx_writer::real(std::string_view name, float value) {
  auto made = attribute_of(name, of_real);
  varint(made, 2 << 3 | 5);
  made.append(reinterpret_cast<const char*>(&value), sizeof value);
  return made;
}

onnx_writer::attribute onnx_writer::text(std::string_view name, std::string_view value) {
  auto made = attribute_of(name, of_text);
  bytes(made, 4, value);
  return made;
}

onnx_writer::attribute onnx_writer::longs(std::string_view name, const std::vector<std::int64_t>& values,
                                          const std::vector<std::int64_t>& shape) {
  auto tensor = tensor_head(shape, long_type, {});
  bytes(tensor, 9, raw(std::span(values)));
  auto made = attribute_of(name, of_tensor);
  bytes(made, 5, tensor);
  return made;
}

onnx_writer::attribute onnx_writer::floats(std::string_view name, const std::vector<float>& values) {
  auto tensor = tensor_head({static_cast<std::int64_t>(values.size())}, float_type, {});
  bytes(tensor, 9, raw(std::span(values)));
  auto made = attribute_of(name, of_tensor);
  bytes(made, 5, tensor);
  return made;
}

std::string onnx_writer::node(const std::string& op, const std::string& name, const std::vector<std::string>& inputs,
                              const std::vector<attribute>& attributes) {
  auto output = name + "_output_0";
  std::string made;
  for (const auto& input : inputs) bytes(made, 1, input);
  bytes(made, 2, output);
  bytes(made, 3, name);
  bytes(made, 4, op);
  for (const auto& one : attributes) bytes(made, 5, one);
  bytes(nodes_, 1, made);
  ++node_count_;
  return output;
}

std::string onnx_writer::initializer(planned_tensor tensor) {
  initializers_.push_back(std::move(tensor));
  return initializers_.back().name;
}

std::string onnx_writer::constant(const std::string& name, const std::vector<std::int64_t>& values, bool scalar) {
  const auto count = static_cast<std::int64_t>(values.size());
  return node("Constant", name, {},
              {longs("value", values, scalar ? std::vector<std::int64_t>{} : std::vector{count})});
}

void onnx_writer::write(const std::filesystem::path& file, const std::string& input, const std::string& output,
                        std::int64_t opset, std::uint64_t seed) const {
  struct kept {
    std::string head; // everything before the tensor's data
    std::uint64_t data;
  };
  std::vector<kept> tensors;
  std::string ends;
  bytes(ends, 2, "main_graph");
  bytes(ends, 11, value_info(input));
  bytes(ends, 12, value_info(output));
  std::uint64_t size = nodes_.size() + ends.size();
  for (const auto& tensor : initializers_) {
    const auto data = tensor.values() * sizeof(float);
    auto inside = tensor_head(tensor.shape, float_type, tensor.name);
    opening(inside, 9, data);
    std::string head;
    opening(head, 5, inside.size() + data);
    size += head.size() + inside.size() + data;
    tensors.push_back({head + inside, data});
  }

  std::string begin, operators;
  number(begin, 1, 8); // IR version
  bytes(begin, 2, "parley init-model");
  number(operators, 2, opset);
  bytes(begin, 8, operators);
  opening(begin, 7, size);
  std::ofstream out(file, std::ios::binary);
  out << begin << nodes_ << ends;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto values = random_floats(initializers_[i], seed);
    out << tensors[i].head << raw(std::span(values));
  }
  out.close();
  if (!out) throw std::runtime_error(file.string() + ": can't write (disk full?)");
}

} // namespace parley::inference::init
