#include "client/playback_timeline.hpp"

#include "client/latencies.hpp"
#include "protocol/media/wav.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <ostream>

namespace parley::client {
namespace {

std::size_t position(listener::seconds time) {
  return static_cast<std::size_t>(std::max(0.0, std::round(time.count() * listener::rate)));
}

} // namespace

void playback_timeline::take(seconds now, std::span<const float> samples) {
  ear_.sound(now, samples.size());
  samples_.insert(samples_.end(), samples.begin(), samples.end());
}

std::vector<float> playback_timeline::timeline(seconds end) const {
  std::vector<float> line(position(end));
  for (const auto& piece : ear_.heard()) {
    const auto at = position(piece.begin);
    if (line.size() < at + piece.samples) line.resize(at + piece.samples);
    const auto from = samples_.begin() + static_cast<std::ptrdiff_t>(piece.first_sample);
    std::copy_n(from, piece.samples, line.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return line;
}

bool save_heard(const std::string& path, std::span<const float> samples, std::ostream& out, std::ostream& err) {
  if (path.empty()) return true;
  std::ofstream file(path, std::ios::binary);
  file << protocol::write_wav(samples, static_cast<std::uint32_t>(listener::rate));
  file.close();
  if (!file) {
    err << "parley probe: --save: cannot write " << path << std::endl;
    return false;
  }
  const listener::seconds length(static_cast<double>(samples.size()) / listener::rate);
  out << std::left << std::setw(20) << "saved" << path << ", " << seconds_text(length) << std::endl;
  return true;
}

} // namespace parley::client
