#include "inference/init/state_dict_writer.hpp"

#include "inference/init/random_floats.hpp"

#include <caffe2/serialize/inline_container.h>

#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>

namespace parley::inference::init {

namespace {

// Pickle operations, protocol 2.

template<class T>
void append(std::string& to, T number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void text(std::string& to, const std::string& value) {
  to += 'X';
  append(to, static_cast<std::uint32_t>(value.size()));
  to += value;
}

void number(std::string& to, std::int64_t value) {
  if (value >= 0 && value <= INT32_MAX) {
    to += 'J';
    append(to, static_cast<std::int32_t>(value));
  } else {
    to += "\x8a\x08";
    append(to, value);
  }
}

void numbers(std::string& to, std::span<const std::int64_t> values) {
  to += '(';
  for (auto value : values) number(to, value);
  to += 't';
}

/// _rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks)
void tensor(std::string& to, const planned_tensor& t, const std::string& storage) {
  std::vector<std::int64_t> strides(t.shape.size(), 1);
  for (auto i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * t.shape[i];
  to += "ctorch._utils\n_rebuild_tensor_v2\n((";
  text(to, "storage");
  to += "ctorch\nFloatStorage\n";
  text(to, storage);
  text(to, "cpu");
  number(to, static_cast<std::int64_t>(t.values()));
  to += "tQ";
  number(to, 0);
  numbers(to, t.shape);
  numbers(to, strides);
  to += "\x89"
        "ccollections\nOrderedDict\n)RtR";
}

} // namespace

void write_state_dict(const std::filesystem::path& file, std::span<const planned_tensor> tensors, std::uint64_t seed) {
  std::string pickle = "\x80\x02}(";
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    text(pickle, tensors[i].name);
    tensor(pickle, tensors[i], std::to_string(i));
  }
  pickle += "u.";
  try {
    caffe2::serialize::PyTorchStreamWriter writer(file.string());
    writer.writeRecord("data.pkl", pickle.data(), pickle.size());
    writer.writeRecord("byteorder", "little", 6);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto values = random_floats(tensors[i], seed);
      writer.writeRecord("data/" + std::to_string(i), values.data(), values.size() * sizeof(float));
    }
    writer.writeEndOfFile();
  } catch (const std::exception& e) {
    throw std::runtime_error(file.string() + ": can't write (disk full?): " + e.what());
  }
}

} // namespace parley::inference::init
