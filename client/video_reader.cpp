#include "client/video_reader.hpp"

#include "base/read_file.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <spawn.h>
#include <sys/wait.h>

extern char** environ;

namespace parley::client {
namespace {

namespace fs = std::filesystem;

/// Runs a program and returns its exit status; 127 if there is no such program.
int run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) return 127;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

bool is_jpeg(const fs::path& file) {
  auto ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".jpg" || ending == ".jpeg";
}

} // namespace

video_reader::~video_reader() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

tl::expected<video_reader, std::string> take_apart(const std::string& file) {
  if (!fs::is_regular_file(file)) return tl::unexpected("cannot read " + file);
  auto pattern = (fs::temp_directory_path() / "parley-video_reader-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) return tl::unexpected<std::string>("cannot make a temporary folder");
  video_reader parts{fs::path(pattern)};
  fs::create_directory(parts.frames());
  const int status = run({"ffmpeg", "-nostdin", "-v", "error", "-i", file, "-vf", "fps=1", "-q:v", "3",
                          parts.frames() + "/%06d.jpg", "-ac", "1", "-ar", "16000", parts.wav()});
  if (status == 127) return tl::unexpected<std::string>("ffmpeg is not installed; --frames and --wav need none");
  if (status != 0) return tl::unexpected("ffmpeg cannot split " + file);
  return parts;
}

tl::expected<std::vector<std::string>, std::string> read_pictures(const std::string& folder) {
  if (folder.empty()) return tl::unexpected<std::string>("is missing");
  std::error_code problem;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, problem))
    if (entry.is_regular_file() && is_jpeg(entry.path())) files.push_back(entry.path());
  if (problem) return tl::unexpected("cannot read " + folder);
  if (files.empty()) return tl::unexpected(folder + " holds no JPEG files");
  std::sort(files.begin(), files.end());
  std::vector<std::string> pictures;
  for (const auto& path : files) {
    auto bytes = base::read_file(path);
    if (!bytes) return tl::unexpected("cannot read " + path.string());
    pictures.push_back(*std::move(bytes));
  }
  return pictures;
}

} // namespace parley::client
