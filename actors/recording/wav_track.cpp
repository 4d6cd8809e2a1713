#include "actors/recording/wav_track.hpp"

#include "actors/recording/file_writes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>
#include <unistd.h>

namespace parley::actors {

namespace {

constexpr std::uint32_t header_bytes = 44;
constexpr std::uint64_t most_samples = (std::numeric_limits<std::uint32_t>::max() - header_bytes) / 2;

std::int16_t to_pcm16(float sample) {
  return static_cast<std::int16_t>(std::lround(std::clamp(sample, -1.0f, 1.0f) * 32767));
}

} // namespace

wav_track::wav_track(const std::filesystem::path& file, std::uint32_t rate) : file_(make_file(file)), rate_(rate) {
  write_header();
}

wav_track::~wav_track() {
  ::close(file_);
}

std::uint64_t wav_track::append(std::span<const float> samples) {
  if (samples_ + samples.size() > most_samples)
    throw std::system_error(std::make_error_code(std::errc::file_too_large), "a WAV file holds 4 GiB");
  scratch_.resize(samples.size());
  std::transform(samples.begin(), samples.end(), scratch_.begin(), to_pcm16);
  // The sound first: a header never promises what is not there.
  write_at(file_, scratch_.data(), scratch_.size() * 2, header_bytes + samples_ * 2);
  const auto before = samples_;
  samples_ += samples.size();
  write_header();
  return before;
}

void wav_track::write_header() {
  std::array<char, header_bytes> header{};
  const auto text = [&](std::size_t at, const char* four) { std::memcpy(header.data() + at, four, 4); };
  const auto number = [&](std::size_t at, std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) header[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i));
  };
  const auto data_bytes = static_cast<std::uint32_t>(samples_ * 2);
  text(0, "RIFF");
  number(4, header_bytes - 8 + data_bytes, 4);
  text(8, "WAVE");
  text(12, "fmt ");
  number(16, 16, 4);
  number(20, 1, 2); // PCM
  number(22, 1, 2); // mono
  number(24, rate_, 4);
  number(28, rate_ * 2, 4);
  number(32, 2, 2);
  number(34, 16, 2);
  text(36, "data");
  number(40, data_bytes, 4);
  write_at(file_, header.data(), header.size(), 0);
}

} // namespace parley::actors
