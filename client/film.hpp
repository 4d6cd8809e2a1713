#pragma once

#include <tl/expected.hpp>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace parley::client {

/// A film taken apart in a temporary folder, which goes with the object.
class film {
public:
  explicit film(std::filesystem::path folder) : folder_(std::move(folder)) {}
  film(film&& other) noexcept : folder_(std::exchange(other.folder_, {})) {}
  film& operator=(film&&) = delete;
  ~film();

  std::string frames() const { return (folder_ / "frames").string(); } ///< folder of one JPEG a second
  std::string wav() const { return (folder_ / "sound.wav").string(); } ///< 16 kHz, mono

private:
  std::filesystem::path folder_;
};

/// By ffmpeg, which must be installed. Blocks until it is done. An error is for the person at the command line.
tl::expected<film, std::string> take_apart(const std::string& file);

/// The bytes of a folder's JPEG files, in the order of their names; at least one, or an error for the person at the
/// command line.
tl::expected<std::vector<std::string>, std::string> read_pictures(const std::string& folder);

} // namespace parley::client
