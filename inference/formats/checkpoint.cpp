#include "inference/formats/checkpoint.hpp"

#include "inference/formats/awq.hpp"
#include "inference/formats/file_problem.hpp"
#include "inference/formats/json_file.hpp"
#include "inference/formats/safetensors.hpp"

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

namespace parley::inference {

struct checkpoint::index {
  std::filesystem::path directory;
  std::filesystem::path assets;
  std::vector<safetensors_file> files;
  std::map<std::string, std::size_t, std::less<>> file_of;
};

namespace {

constexpr auto single_name = "model.safetensors";
constexpr auto index_name = "model.safetensors.index.json";

/// A shard is a plain file name in the folder: an index must not lead out of it.
void check_shard_name(const std::filesystem::path& index, const std::string& name) {
  if (std::filesystem::path(name).filename() != name || name == "." || name == ".." || name.empty())
    throw std::runtime_error(index.string() + ": shard name \"" + name + "\" is not a file of the folder");
}

} // namespace

checkpoint::checkpoint(std::shared_ptr<const index> tensors) : index_(std::move(tensors)) {}

checkpoint checkpoint::open(const std::filesystem::path& directory, const std::filesystem::path& assets) {
  auto result = std::make_shared<index>();
  result->directory = directory;
  result->assets = assets.empty() ? directory : assets;
  if (exists(symlink_status(directory / index_name))) {
    auto path = directory / index_name;
    auto map = read_json(path);
    if (!map.contains("weight_map") || !map["weight_map"].is_object())
      throw std::runtime_error(path.string() + ": no weight_map");
    std::map<std::string, std::size_t> shards;
    for (const auto& [name, shard] : map["weight_map"].items()) {
      if (!shard.is_string()) throw std::runtime_error(path.string() + ": the shard of " + name + " is not a string");
      auto file = shard.get<std::string>();
      auto [place, fresh] = shards.try_emplace(file, result->files.size());
      if (fresh) {
        check_shard_name(path, file);
        result->files.push_back(safetensors_file::open(directory / file));
      }
      if (!result->files[place->second].has(name))
        throw std::runtime_error(path.string() + ": tensor " + name + " is not in " + file);
      result->file_of.emplace(name, place->second);
    }
  } else {
    if (!exists(symlink_status(directory / single_name)))
      if (const auto problem = folder_problem(directory)) throw std::runtime_error(directory.string() + " " + *problem);
    result->files.push_back(safetensors_file::open(directory / single_name));
    for (const auto& name : result->files.front().names()) result->file_of.emplace(name, 0);
  }
  return checkpoint(std::move(result));
}

const std::filesystem::path& checkpoint::directory() const {
  return index_->directory;
}

const std::filesystem::path& checkpoint::assets() const {
  return index_->assets;
}

bool checkpoint::has(std::string_view name) const {
  return index_->file_of.contains(name) || quantized(name);
}

std::optional<awq_matrix> checkpoint::quantized(std::string_view name) const {
  constexpr std::string_view ending = "weight";
  if (!name.ends_with(ending) || index_->file_of.contains(name)) return std::nullopt;
  const std::string stem(name.substr(0, name.size() - ending.size()));
  for (const auto* part : {"qweight", "qzeros", "scales"})
    if (!index_->file_of.contains(stem + part)) return std::nullopt;
  return awq_matrix{stored(stem + "qweight"), stored(stem + "qzeros"), stored(stem + "scales")};
}

std::vector<std::string> checkpoint::names(std::string_view prefix) const {
  std::vector<std::string> result;
  for (auto at = index_->file_of.lower_bound(prefix); at != index_->file_of.end() && at->first.starts_with(prefix);
       ++at)
    result.push_back(at->first);
  return result;
}

at::Tensor checkpoint::stored(std::string_view name) const {
  auto found = index_->file_of.find(name);
  if (found == index_->file_of.end())
    throw std::runtime_error((index_->directory / single_name).string() + ": no tensor " + std::string(name));
  return index_->files[found->second].tensor(name);
}

at::Tensor checkpoint::tensor(std::string_view name, at::ScalarType dtype, at::Device device) const {
  if (const auto packed = quantized(name)) {
    try {
      return matrix_of(*packed, dtype).to(device);
    } catch (const std::runtime_error& e) {
      throw std::runtime_error(directory().string() + ": tensor " + std::string(name) + ": " + e.what());
    }
  }
  return stored(name).to(device, dtype);
}

weights checkpoint::view(std::string prefix, at::ScalarType dtype, at::Device device) const {
  return weights(*this, std::move(prefix), dtype, device);
}

weights::weights(checkpoint source, std::string prefix, at::ScalarType dtype, at::Device device)
    : source_(std::move(source)), prefix_(std::move(prefix)), dtype_(dtype), device_(device) {}

at::Tensor weights::tensor(std::string_view name) const {
  return source_.tensor(prefix_ + std::string(name), dtype_, device_);
}

at::Tensor weights::tensor(std::string_view name, at::IntArrayRef shape) const {
  auto result = tensor(name);
  bool fits = result.dim() == static_cast<std::int64_t>(shape.size());
  for (std::size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] < 0 || shape[i] == result.size(i);
  if (!fits) {
    std::ostringstream text;
    text << source_.directory().string() << ": tensor " << prefix_ << name << " has shape " << result.sizes()
         << ", the configuration asks for " << shape;
    throw std::runtime_error(text.str());
  }
  return result;
}

bool weights::mapped(std::string_view name) const {
  if (!device_.is_cpu() || quantized(name)) return false;
  return source_.stored(prefix_ + std::string(name)).scalar_type() == dtype_;
}

std::optional<awq_matrix> weights::quantized(std::string_view name) const {
  auto found = source_.quantized(prefix_ + std::string(name));
  if (found && !device_.is_cpu())
    *found = {found->numbers.to(device_), found->zeros.to(device_), found->scales.to(device_)};
  return found;
}

bool weights::has(std::string_view name) const {
  return source_.has(prefix_ + std::string(name));
}

weights weights::sub(std::string_view prefix) const {
  return weights(source_, prefix_ + std::string(prefix), dtype_, device_);
}

at::ScalarType weights::dtype() const {
  return dtype_;
}
at::Device weights::device() const {
  return device_;
}
const std::string& weights::prefix() const {
  return prefix_;
}

} // namespace parley::inference
