#pragma once

#include "tests/support/temporary_folder.hpp"

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

namespace parley::inference::testing {

inline std::string contents_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// A folder whose files are links to another folder's files until they are written, as in a Hugging Face cache.
class linked_folder {
public:
  explicit linked_folder(const std::filesystem::path& from) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(from)) {
      const auto to = path() / entry.path().lexically_relative(from); // of a link itself, not of where it leads
      if (entry.is_directory())
        create_directories(to);
      else
        create_symlink(std::filesystem::absolute(entry.path()), to);
    }
  }

  const std::filesystem::path& path() const { return folder_.path(); }
  std::string read(const std::string& name) const { return contents_of(path() / name); }
  void remove(const std::string& name) const { std::filesystem::remove(path() / name); }

  void write(const std::string& name, std::string_view content) const {
    remove(name);
    folder_.write(name, content);
  }

  /// Changes a JSON file.
  template<class Change>
  void edit(const std::string& name, Change change) const {
    auto values = nlohmann::json::parse(read(name));
    change(values);
    write(name, values.dump());
  }

  /// Replaces a text with another one of the same length wherever it occurs in a file; returns whether it occurred.
  bool replace(const std::string& name, std::string_view old, std::string_view fresh) const {
    auto text = read(name);
    const auto first = text.find(old);
    for (auto at = first; at != std::string::npos; at = text.find(old, at + fresh.size()))
      text.replace(at, old.size(), fresh);
    write(name, text);
    return first != std::string::npos;
  }

private:
  tests::temporary_folder folder_;
};

/// The bytes of a safetensors file with these tensors.
inline std::string safetensors_of(const std::map<std::string, at::Tensor>& tensors) {
  static const std::map<at::ScalarType, const char*> names{
      {at::kFloat, "F32"}, {at::kBFloat16, "BF16"}, {at::kHalf, "F16"}, {at::kInt, "I32"}};
  nlohmann::json header;
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const auto dense = tensor.contiguous();
    header[name] = {{"dtype", names.at(dense.scalar_type())},
                    {"shape", dense.sizes().vec()},
                    {"data_offsets", {data.size(), data.size() + dense.nbytes()}}};
    data.append(static_cast<const char*>(dense.const_data_ptr()), dense.nbytes());
  }
  auto text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + text + data;
}

} // namespace parley::inference::testing
