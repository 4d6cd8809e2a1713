#include "protocol/media/resampler.hpp"

#include <soxr.h>

#include <cmath>
#include <stdexcept>

namespace parley::protocol {

void resampler::deleter::operator()(soxr* held) const {
  soxr_delete(held);
}

resampler::resampler(double from_rate, double to_rate) : ratio_(to_rate / from_rate) {
  if (from_rate == to_rate) return;
  soxr_error_t failure = nullptr;
  auto format = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  auto quality = soxr_quality_spec(SOXR_HQ, 0);
  auto runtime = soxr_runtime_spec(1);
  soxr_.reset(soxr_create(from_rate, to_rate, 1, &failure, &format, &quality, &runtime));
  if (failure != nullptr) throw std::runtime_error(std::string("libsoxr: ") + failure);
}

void resampler::feed(std::span<const float> samples, std::vector<float>& out) {
  if (!soxr_) {
    out.insert(out.end(), samples.begin(), samples.end());
    return;
  }
  std::vector<float> block(static_cast<std::size_t>(std::ceil(static_cast<double>(samples.size()) * ratio_)) + 1024);
  while (!samples.empty()) {
    std::size_t taken = 0;
    std::size_t made = 0;
    soxr_process(soxr_.get(), samples.data(), samples.size(), &taken, block.data(), block.size(), &made);
    out.insert(out.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(made));
    samples = samples.subspan(taken);
  }
}

void resampler::finish(std::vector<float>& out) {
  if (!soxr_) return;
  std::vector<float> block(4096);
  for (std::size_t made = block.size(); made > 0;) {
    soxr_process(soxr_.get(), nullptr, 0, nullptr, block.data(), block.size(), &made);
    out.insert(out.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(made));
  }
}

} // namespace parley::protocol
