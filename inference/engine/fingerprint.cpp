#include "inference/engine/fingerprint.hpp"

#include "inference/formats/file_problem.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <vector>

namespace parley::inference {

namespace {

/// FNV-1a, 64 bits.
struct hash {
  std::uint64_t value = 0xcbf29ce484222325u;

  void add(const std::string& bytes) {
    for (auto byte : bytes) value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }
};

class reader {
public:
  explicit reader(const std::filesystem::path& path) : path_(path), size_(std::filesystem::file_size(path)) {
    if (const auto problem = file_problem(path)) throw std::runtime_error(path.string() + ": " + *problem);
    file_.open(path, std::ios::binary);
  }

  std::uint64_t size() const { return size_; }

  std::string at(std::uint64_t begin, std::uint64_t count) {
    std::string bytes(std::min(count, size_ - std::min(begin, size_)), '\0');
    file_.seekg(static_cast<std::streamoff>(begin));
    file_.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file_) throw std::runtime_error(path_.string() + ": can't be read");
    return bytes;
  }

private:
  std::filesystem::path path_;
  std::ifstream file_;
  std::uint64_t size_;
};

} // namespace

std::string fingerprint(const std::filesystem::path& checkpoint) {
  constexpr std::uint64_t header = 1 << 20, samples = 256, sample = 4096;
  hash h;
  reader config(checkpoint / "config.json");
  h.add(config.at(0, std::min<std::uint64_t>(config.size(), largest_text)));
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    reader file(path);
    h.add(path.filename().string() + std::to_string(file.size()));
    h.add(file.at(0, header));
    for (std::uint64_t i = 0; i < samples; ++i) h.add(file.at(file.size() / samples * i, sample));
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(h.value));
  return digits;
}

} // namespace parley::inference
