#include "actors/recording/wav_track.hpp"

#include "base/file_writes.hpp"
#include "base/wav.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <system_error>
#include <unistd.h>

namespace parley::actors {

namespace {

constexpr auto header_bytes = base::wav_header_bytes;
constexpr std::uint64_t most_samples = (std::numeric_limits<std::uint32_t>::max() - header_bytes) / 2;

std::int16_t to_pcm16(float sample) {
  return static_cast<std::int16_t>(std::lround(std::clamp(sample, -1.0f, 1.0f) * 32767));
}

} // namespace

wav_track::wav_track(const std::filesystem::path& file, std::uint32_t rate)
    : file_(base::make_file(file)), rate_(rate) {
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
  // The sound first, so that the header never promises more than the file holds.
  base::write_at(file_, scratch_.data(), scratch_.size() * 2, header_bytes + samples_ * 2);
  const auto before = samples_;
  samples_ += samples.size();
  write_header();
  return before;
}

void wav_track::write_header() {
  const auto header = base::wav_header(rate_, static_cast<std::uint32_t>(samples_ * 2));
  base::write_at(file_, header.data(), header.size(), 0);
}

} // namespace parley::actors
