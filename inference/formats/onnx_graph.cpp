#include "inference/formats/onnx_graph.hpp"

#include "inference/formats/mapped_file.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace parley::inference::speech {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw std::runtime_error(why);
}

/// One field of a protobuf message, as encoded.
struct field {
  std::uint32_t id = 0;
  std::uint64_t number = 0;
  std::string_view bytes;
  bool is_number = false;
};

class wire {
public:
  explicit wire(std::string_view data) : data_(data) {}

  bool done() const { return data_.empty(); }

  field next() {
    const auto key = varint();
    field result;
    result.id = static_cast<std::uint32_t>(key >> 3U);
    switch (key & 7U) {
    case 0:
      result.number = varint();
      result.is_number = true;
      break;
    case 1: result.bytes = take(8); break;
    case 2: result.bytes = take(varint()); break;
    case 5: result.bytes = take(4); break;
    default: refuse("not a protobuf file");
    }
    return result;
  }

  std::uint64_t varint() {
    std::uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(take(1)[0]);
      result |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (!(byte & 0x80U)) return result;
    }
    refuse("not a protobuf file");
  }

private:
  std::string_view take(std::uint64_t n) {
    if (n > data_.size()) refuse("cut short");
    auto result = data_.substr(0, n);
    data_.remove_prefix(n);
    return result;
  }

  std::string_view data_;
};

template<class Visit>
void each(std::string_view message, Visit visit) {
  for (wire fields(message); !fields.done();) visit(fields.next());
}

/// A repeated varint field, packed or not.
template<class T>
void add_numbers(const field& from, std::vector<T>& to) {
  if (from.is_number)
    to.push_back(static_cast<T>(from.number));
  else
    for (wire numbers(from.bytes); !numbers.done();) to.push_back(static_cast<T>(numbers.varint()));
}

/// Adds a repeated float field: packed, or a single one of its numbers.
void add_reals(std::string_view bytes, std::vector<float>& to) {
  for (; bytes.size() >= sizeof(float); bytes.remove_prefix(sizeof(float))) {
    float value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    to.push_back(value);
  }
}

at::ScalarType element_type(std::uint64_t onnx_type) {
  switch (onnx_type) {
  case 1: return at::kFloat;
  case 6: return at::kInt;
  case 7: return at::kLong;
  case 9: return at::kBool;
  case 10: return at::kHalf;
  case 11: return at::kDouble;
  default: refuse("a tensor of type " + std::to_string(onnx_type));
  }
}

at::Tensor read_tensor(std::string_view message, std::string* name) {
  std::vector<std::int64_t> sizes, longs;
  std::vector<std::int32_t> ints;
  std::string_view raw;
  std::string packed; // collects float_data or double_data, packed or not
  std::uint64_t type = 0;
  each(message, [&](const field& f) {
    switch (f.id) {
    case 1: add_numbers(f, sizes); break;
    case 2: type = f.number; break;
    case 4:
    case 10: packed.append(f.bytes); break;
    case 5: add_numbers(f, ints); break;
    case 7: add_numbers(f, longs); break;
    case 8:
      if (name != nullptr) *name = f.bytes;
      break;
    case 9: raw = f.bytes; break;
    case 13:
      if (!f.bytes.empty()) refuse("keeps its data in another file");
      break;
    case 14:
      if (f.number != 0) refuse("keeps its data in another file");
      break;
    default: break;
    }
  });
  const auto dtype = element_type(type);
  std::int64_t elements = 1;
  for (auto size : sizes)
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) refuse("a tensor with an impossible shape");
  if (!ints.empty() && (dtype == at::kInt || dtype == at::kBool) && static_cast<std::int64_t>(ints.size()) == elements)
    return at::tensor(ints, at::kInt).reshape(sizes).to(dtype);
  if (!longs.empty())
    raw = {reinterpret_cast<const char*>(longs.data()), longs.size() * sizeof(std::int64_t)};
  else if (!packed.empty())
    raw = packed;
  if (elements > static_cast<std::int64_t>(message.size()) ||
      raw.size() != static_cast<std::size_t>(elements) * c10::elementSize(dtype))
    refuse("a tensor whose data does not match its shape");
  auto tensor = at::empty(sizes, dtype);
  if (!raw.empty()) std::memcpy(tensor.data_ptr(), raw.data(), raw.size());
  return tensor;
}

void read_attribute(std::string_view message, onnx_node& node) {
  std::string key;
  onnx_attribute made;
  each(message, [&](const field& f) {
    switch (f.id) {
    case 1: key = f.bytes; break;
    case 2:
      if (f.bytes.size() == sizeof(float)) std::memcpy(&made.real, f.bytes.data(), sizeof(float));
      break;
    case 3: made.integer = static_cast<std::int64_t>(f.number); break;
    case 4: made.text = f.bytes; break;
    case 5: made.tensor = read_tensor(f.bytes, nullptr); break;
    case 7: add_reals(f.bytes, made.reals); break;
    case 8: add_numbers(f, made.integers); break;
    default: break;
    }
  });
  node.attributes.insert_or_assign(std::move(key), std::move(made));
}

onnx_node read_node(std::string_view message) {
  onnx_node node;
  each(message, [&](const field& f) {
    switch (f.id) {
    case 1: node.inputs.emplace_back(f.bytes); break;
    case 2: node.outputs.emplace_back(f.bytes); break;
    case 3: node.name = f.bytes; break;
    case 4: node.op = f.bytes; break;
    case 5: read_attribute(f.bytes, node); break;
    default: break;
    }
  });
  return node;
}

std::string value_name(std::string_view message) {
  std::string name;
  each(message, [&](const field& f) {
    if (f.id == 1) name = f.bytes;
  });
  return name;
}

void read_graph(std::string_view message, onnx_graph& graph) {
  each(message, [&](const field& f) {
    switch (f.id) {
    case 1: graph.nodes.push_back(read_node(f.bytes)); break;
    case 5: {
      std::string name;
      auto tensor = read_tensor(f.bytes, &name);
      graph.initializers.insert_or_assign(std::move(name), std::move(tensor));
      break;
    }
    case 11: graph.inputs.push_back(value_name(f.bytes)); break;
    case 12: graph.outputs.push_back(value_name(f.bytes)); break;
    default: break;
    }
  });
  std::erase_if(graph.inputs, [&](const auto& name) { return graph.initializers.contains(name); });
}

/// Reads the version of the standard operators; ignores those of other domains.
void read_opset(std::string_view message, onnx_graph& graph) {
  std::string domain;
  std::int64_t version = 0;
  each(message, [&](const field& f) {
    if (f.id == 1) domain = f.bytes;
    if (f.id == 2) version = static_cast<std::int64_t>(f.number);
  });
  if (domain.empty() || domain == "ai.onnx") graph.opset = version;
}

} // namespace

std::int64_t onnx_node::integer(const std::string& key, std::int64_t otherwise) const {
  auto found = attributes.find(key);
  return found == attributes.end() ? otherwise : found->second.integer;
}

float onnx_node::real(const std::string& key, float otherwise) const {
  auto found = attributes.find(key);
  return found == attributes.end() ? otherwise : found->second.real;
}

std::string onnx_node::text(const std::string& key, const std::string& otherwise) const {
  auto found = attributes.find(key);
  return found == attributes.end() ? otherwise : found->second.text;
}

std::vector<std::int64_t> onnx_node::integers(const std::string& key) const {
  auto found = attributes.find(key);
  return found == attributes.end() ? std::vector<std::int64_t>() : found->second.integers;
}

const onnx_node* onnx_graph::find_node(std::string_view name) const {
  auto found = std::find_if(nodes.begin(), nodes.end(), [&](const auto& node) { return node.name == name; });
  return found == nodes.end() ? nullptr : &*found;
}

onnx_graph read_onnx(const std::filesystem::path& file) {
  const mapped_file mapped(file);
  const std::string_view data(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
  try {
    onnx_graph graph;
    graph.origin = file.string();
    each(data, [&](const field& f) {
      if (f.id == 7) read_graph(f.bytes, graph);
      if (f.id == 8) read_opset(f.bytes, graph);
    });
    if (graph.nodes.empty() && graph.initializers.empty()) refuse("holds no graph");
    return graph;
  } catch (const c10::Error& error) {
    throw std::runtime_error(file.string() + ": " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw std::runtime_error(file.string() + ": " + error.what());
  }
}

} // namespace parley::inference::speech
