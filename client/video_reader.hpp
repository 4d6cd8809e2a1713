#pragma once

#include <tl/expected.hpp>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace parley::client {

/// A video split into sound and pictures in a temporary folder, which is deleted with the object.
class video_reader {
public:
  explicit video_reader(std::filesystem::path folder) : folder_(std::move(folder)) {}
  video_reader(video_reader&& other) noexcept : folder_(std::exchange(other.folder_, {})) {}
  video_reader& operator=(video_reader&&) = delete;
  ~video_reader();

  std::string frames() const { return (folder_ / "frames").string(); } ///< folder with one JPEG per second
  std::string wav() const { return (folder_ / "sound.wav").string(); } ///< 16 kHz, mono

private:
  std::filesystem::path folder_;
};

/// Splits the file with ffmpeg, which must be installed. Blocks until done. Errors are for the user.
tl::expected<video_reader, std::string> take_apart(const std::string& file);

/// The contents of a folder's JPEG files, ordered by name. None is an error, worded for the user of the command.
tl::expected<std::vector<std::string>, std::string> read_pictures(const std::string& folder);

} // namespace parley::client
