#include "inference/formats/file_problem.hpp"

#include <array>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace parley::inference {

namespace {

constexpr std::string_view pointer_begins = "version https://git-lfs";

bool is_lfs_pointer(const std::filesystem::path& file, std::uintmax_t size) {
  constexpr std::uintmax_t longest_pointer = 1024;
  if (size > longest_pointer) return false;
  std::array<char, pointer_begins.size()> begin{};
  std::ifstream(file, std::ios::binary).read(begin.data(), begin.size());
  return std::string_view(begin.data(), begin.size()) == pointer_begins;
}

/// The names that download programs give to unfinished files.
bool is_unfinished(const std::filesystem::path& file) {
  const auto name = file.filename().string();
  for (const std::string_view ending : {".incomplete", ".part", ".aria2", ".crdownload", ".tmp"})
    if (name.ends_with(ending)) return true;
  return name.starts_with("._____temp"); // ModelScope's temporary folder
}

} // namespace

std::optional<std::string> file_problem(const std::filesystem::path& file) {
  std::error_code none;
  if (is_symlink(file, none) && !exists(file, none))
    return "is a link to " + read_symlink(file, none).string() +
           ", which is not there: the download did not finish, or the cache was cleaned; fetch it again";
  if (!exists(file, none)) return is_missing;
  if (!is_regular_file(file, none)) return is_not_regular; // opening a pipe would wait for a writer
  const auto size = file_size(file, none);
  if (none) return std::nullopt;
  if (size == 0) return "is empty: the download did not finish; fetch it again";
  if (is_lfs_pointer(file, size))
    return "is a pointer of Git LFS, not the file itself: run `git lfs install && git lfs pull` in the clone";
  return std::nullopt;
}

std::string read_whole_file(const std::filesystem::path& file, std::size_t most) {
  const auto refuse = [&](const std::string& why) { throw std::runtime_error(file.string() + ": " + why); };
  if (const auto problem = file_problem(file); problem && *problem != is_not_regular)
    refuse(*problem == is_missing ? "can't open" : *problem);
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse("can't open");
  std::string bytes;
  std::array<char, 1 << 16> part;
  while (stream.read(part.data(), part.size()), stream.gcount() > 0) {
    bytes.append(part.data(), static_cast<std::size_t>(stream.gcount()));
    if (bytes.size() > most) refuse("has more than " + std::to_string(most) + " bytes");
  }
  return bytes;
}

std::optional<std::string> folder_problem(const std::filesystem::path& folder) {
  std::error_code none;
  if (!exists(folder, none)) return "there is no such folder";
  if (!is_directory(folder, none)) return "is not a folder";
  bool gguf = false;
  std::string unfinished;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, none)) {
    gguf = gguf || entry.path().extension() == ".gguf";
    if (unfinished.empty() && is_unfinished(entry.path())) unfinished = entry.path().filename().string();
  }
  if (gguf)
    return "holds GGUF files, which llama.cpp reads: their weights are quantized for its kernels and cut apart, and "
           "what a "
           "voice is prepared with is left out; take openbmb/MiniCPM-o-4_5, or its AWQ release where memory is short";
  if (!unfinished.empty()) return "is still being downloaded: there is " + unfinished;
  return std::nullopt;
}

} // namespace parley::inference
