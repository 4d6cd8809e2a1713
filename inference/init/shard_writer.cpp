#include "inference/init/shard_writer.hpp"

#include "inference/init/random_bfloat16.hpp"
#include "inference/init/text_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>
#include <stdexcept>

namespace parley::inference::init {

namespace {

using shard = std::span<const planned_tensor>;

constexpr std::size_t buffer_values = 1 << 20;

std::uint64_t bytes_of(const planned_tensor& t) {
  return t.values() * sizeof(std::uint16_t);
}

std::vector<shard> cut(const std::vector<planned_tensor>& tensors, std::uint64_t shard_bytes) {
  std::vector<shard> result;
  std::size_t begin = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (i > begin && bytes + bytes_of(tensors[i]) > shard_bytes) {
      result.push_back(std::span(tensors).subspan(begin, i - begin));
      begin = i;
      bytes = 0;
    }
    bytes += bytes_of(tensors[i]);
  }
  result.push_back(std::span(tensors).subspan(begin));
  return result;
}

std::string header_of(shard tensors) {
  nlohmann::json header{{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t at = 0;
  for (const auto& t : tensors) {
    header[t.name] = {{"dtype", "BF16"}, {"shape", t.shape}, {"data_offsets", {at, at + bytes_of(t)}}};
    at += bytes_of(t);
  }
  auto text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

void write_shard(const std::filesystem::path& path, shard tensors, std::uint64_t seed) {
  std::ofstream file(path, std::ios::binary);
  auto header = header_of(tensors);
  std::uint64_t size = header.size();
  file.write(reinterpret_cast<const char*>(&size), sizeof size);
  file << header;
  std::vector<std::uint16_t> buffer(buffer_values);
  for (const auto& t : tensors) {
    random_bfloat16 values(seed, t.name, t.mean, t.deviation);
    for (auto left = t.values(); left > 0 && file;) {
      auto part = std::span(buffer).first(std::min<std::uint64_t>(left, buffer.size()));
      values.fill(part);
      file.write(reinterpret_cast<const char*>(part.data()), static_cast<std::streamsize>(part.size_bytes()));
      left -= part.size();
    }
  }
  file.close();
  if (!file) throw std::runtime_error(path.string() + ": can't write (disk full?)");
}

std::string shard_name(std::size_t number, std::size_t count) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", number, count);
  return name;
}

} // namespace

void write_tensors(const std::filesystem::path& folder, const std::vector<planned_tensor>& tensors, std::uint64_t seed,
                   std::uint64_t shard_bytes) {
  auto shards = cut(tensors, shard_bytes);
  if (shards.size() == 1) {
    write_shard(folder / "model.safetensors", shards.front(), seed);
    return;
  }
  nlohmann::json map;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    auto name = shard_name(i + 1, shards.size());
    write_shard(folder / name, shards[i], seed);
    for (const auto& t : shards[i]) {
      map[t.name] = name;
      total += bytes_of(t);
    }
  }
  nlohmann::json index{{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  write_text(folder / "model.safetensors.index.json", index.dump(2));
}

} // namespace parley::inference::init
