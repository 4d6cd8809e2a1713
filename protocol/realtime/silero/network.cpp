#include "protocol/realtime/silero/network.hpp"

#include "base/each_cpu.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <utility>
#include <vector>

extern "C" const unsigned char parley_silero_weights[]; // weights.S

namespace parley::protocol::realtime::silero {
namespace {

constexpr std::size_t fft = 256, hop = 128;
constexpr std::size_t bins = fft / 2 + 1;
constexpr std::size_t folded = fft / 2 + 1;
constexpr std::size_t bin_room = 144; ///< `bins`, up to a multiple of what is computed at once
constexpr std::size_t frames = 4;     ///< spectra of a step
constexpr std::size_t reflected = 64; ///< samples mirrored at its end
constexpr std::size_t wide = 128, narrow = 64;

/// A matrix as [input][output] with a row of outputs for each input.
struct matrix {
  const float* at = nullptr;
  std::size_t inputs = 0, outputs = 0;

  /// The matrix of a convolution's tap.
  matrix tap(std::size_t which) const { return {at + which * inputs * outputs, inputs, outputs}; }
};

float from_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, rest = half & 0x7FFFu;
  // Scaling by 2^112 moves the exponent's bias, subnormal numbers included.
  const float size = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | sign);
}

struct weights {
  weights() {
    constexpr std::size_t count = 3 * (bins * wide + wide * narrow + narrow * narrow + narrow * wide) + wide + narrow +
                                  narrow + wide + 2 * wide * 4 * wide + 4 * wide + wide + 1;
    all.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t half;
      std::memcpy(&half, parley_silero_weights + 2 * i, sizeof half);
      all[i] = from_half(half);
    }
    const float* next = all.data();
    const auto take = [&](std::size_t size) { return std::exchange(next, next + size); };
    const auto convolution = [&](std::size_t inputs, std::size_t outputs, matrix& kernel, const float*& bias) {
      kernel = {take(3 * inputs * outputs), inputs, outputs};
      bias = take(outputs);
    };
    convolution(bins, wide, first, first_bias);
    convolution(wide, narrow, second, second_bias);
    convolution(narrow, narrow, third, third_bias);
    convolution(narrow, wide, fourth, fourth_bias);
    from_input = {take(wide * 4 * wide), wide, 4 * wide};
    from_hidden = {take(wide * 4 * wide), wide, 4 * wide};
    gates_bias = take(4 * wide);
    last = take(wide);
    last_bias = *take(1);

    // A Fourier transform of 256 real values: cosines of the sums of what lies symmetrically, sines of the differences.
    for (std::size_t n = 0; n < fft; ++n)
      hann[n] = static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(n) / fft));
    transform.resize(2 * folded * bin_room);
    for (std::size_t n = 0; n < folded; ++n)
      for (std::size_t k = 0; k < bins; ++k) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(k * n % fft) / fft;
        transform[n * bin_room + k] = static_cast<float>(std::cos(angle));
        transform[(folded + n) * bin_room + k] = static_cast<float>(std::sin(angle));
      }
    real = {transform.data(), folded, bin_room};
    imaginary = {transform.data() + folded * bin_room, folded, bin_room};
  }

  std::array<float, fft> hann{};
  std::vector<float> all, transform;
  matrix real, imaginary, first, second, third, fourth, from_input, from_hidden;
  const float *first_bias = nullptr, *second_bias = nullptr, *third_bias = nullptr, *fourth_bias = nullptr;
  const float *gates_bias = nullptr, *last = nullptr;
  float last_bias = 0;
};

const weights& shared() {
  static const weights only;
  return only;
}

using lanes = float __attribute__((vector_size(64)));
constexpr std::size_t width = 16;

/// Adds to each of four rows of outputs the product of its row of inputs and the matrix. The number of outputs is a
/// multiple of `width`.
PARLEY_FOR_EACH_CPU void add_products_of_4(const float* at, std::size_t inputs, std::size_t outputs, const float* in,
                                           std::size_t in_stride, float* out, std::size_t out_stride) {
  for (std::size_t o = 0; o < outputs; o += width) {
    lanes a{}, b{}, c{}, d{};
    for (std::size_t i = 0; i < inputs; ++i) {
      lanes row;
      std::memcpy(&row, at + i * outputs + o, sizeof row);
      a += in[i] * row;
      b += in[in_stride + i] * row;
      c += in[2 * in_stride + i] * row;
      d += in[3 * in_stride + i] * row;
    }
    for (std::size_t l = 0; l < width; ++l) {
      out[o + l] += a[l];
      out[out_stride + o + l] += b[l];
      out[2 * out_stride + o + l] += c[l];
      out[3 * out_stride + o + l] += d[l];
    }
  }
}

/// The same for one row; the number of outputs is a multiple of 4 `width`.
PARLEY_FOR_EACH_CPU void add_product(const float* at, std::size_t inputs, std::size_t outputs, const float* in,
                                     float* out) {
  for (std::size_t o = 0; o < outputs; o += 4 * width) {
    lanes a{}, b{}, c{}, d{};
    for (std::size_t i = 0; i < inputs; ++i) {
      const float* from = at + i * outputs + o;
      lanes first, second, third, fourth;
      std::memcpy(&first, from, sizeof first);
      std::memcpy(&second, from + width, sizeof second);
      std::memcpy(&third, from + 2 * width, sizeof third);
      std::memcpy(&fourth, from + 3 * width, sizeof fourth);
      a += in[i] * first;
      b += in[i] * second;
      c += in[i] * third;
      d += in[i] * fourth;
    }
    for (std::size_t l = 0; l < width; ++l) {
      out[o + l] += a[l];
      out[o + width + l] += b[l];
      out[o + 2 * width + l] += c[l];
      out[o + 3 * width + l] += d[l];
    }
  }
}

void add_product(const matrix& by, const float* in, float* out) {
  add_product(by.at, by.inputs, by.outputs, in, out);
}

void add_products_of_4(const matrix& by, const float* in, std::size_t in_stride, float* out, std::size_t out_stride) {
  add_products_of_4(by.at, by.inputs, by.outputs, in, in_stride, out, out_stride);
}

void keep_positive(std::span<float> values) {
  for (auto& x : values) x = std::max(x, 0.0f);
}

float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

} // namespace

float network::step(std::span<const float, window> samples) {
  const auto& w = shared();

  // What it sees: the end of the last window, this one, and its end mirrored.
  std::array<float, overlap + window + reflected> seen;
  std::copy(before_.begin(), before_.end(), seen.begin());
  std::copy(samples.begin(), samples.end(), seen.begin() + overlap);
  for (std::size_t i = 0; i < reflected; ++i) seen[overlap + window + i] = seen[overlap + window - 2 - i];
  std::copy(samples.end() - overlap, samples.end(), before_.begin());

  // Magnitudes, with a row of zeros on either side.
  std::array<float, frames * folded> sums{}, differences{};
  for (std::size_t frame = 0; frame < frames; ++frame) {
    const float* from = &seen[frame * hop];
    float *sum = &sums[frame * folded], *difference = &differences[frame * folded];
    sum[0] = from[0] * w.hann[0];
    sum[fft / 2] = from[fft / 2] * w.hann[fft / 2];
    for (std::size_t n = 1; n < fft / 2; ++n) {
      const float left = from[n] * w.hann[n], right = from[fft - n] * w.hann[fft - n];
      sum[n] = left + right;
      difference[n] = left - right;
    }
  }
  std::array<float, frames * bin_room> real{}, imaginary{};
  add_products_of_4(w.real, sums.data(), folded, real.data(), bin_room);
  add_products_of_4(w.imaginary, differences.data(), folded, imaginary.data(), bin_room);
  std::array<float, (frames + 2) * bins> spectra{};
  for (std::size_t frame = 0; frame < frames; ++frame)
    for (std::size_t k = 0; k < bins; ++k) {
      const float re = real[frame * bin_room + k], im = imaginary[frame * bin_room + k];
      spectra[(frame + 1) * bins + k] = std::sqrt(re * re + im * im);
    }

  // Four convolutions over time; the second and the third go two steps at a time, so one row is left.
  std::array<float, (frames + 2) * wide> heard{};
  for (std::size_t frame = 0; frame < frames; ++frame) std::copy_n(w.first_bias, wide, &heard[(frame + 1) * wide]);
  for (std::size_t tap = 0; tap < 3; ++tap)
    add_products_of_4(w.first.tap(tap), &spectra[tap * bins], bins, &heard[wide], wide);
  keep_positive(heard);
  std::array<float, 4 * narrow> halved{};
  for (std::size_t row = 0; row < 2; ++row) {
    std::copy_n(w.second_bias, narrow, &halved[(row + 1) * narrow]);
    for (std::size_t tap = 0; tap < 3; ++tap)
      add_product(w.second.tap(tap), &heard[(2 * row + tap) * wide], &halved[(row + 1) * narrow]);
  }
  keep_positive(halved);
  std::array<float, narrow> one;
  std::copy_n(w.third_bias, narrow, one.begin());
  for (std::size_t tap = 1; tap < 3; ++tap) add_product(w.third.tap(tap), &halved[tap * narrow], one.data());
  keep_positive(one);
  std::array<float, wide> features;
  std::copy_n(w.fourth_bias, wide, features.begin());
  add_product(w.fourth.tap(1), one.data(), features.data());
  keep_positive(features);

  std::array<float, 4 * cells> gates;
  std::copy_n(w.gates_bias, gates.size(), gates.begin());
  add_product(w.from_input, features.data(), gates.data());
  add_product(w.from_hidden, hidden_.data(), gates.data());
  float speech = w.last_bias;
  for (std::size_t i = 0; i < cells; ++i) {
    const float in = sigmoid(gates[i]), forget = sigmoid(gates[cells + i]);
    const float fresh = std::tanh(gates[2 * cells + i]), out = sigmoid(gates[3 * cells + i]);
    cell_[i] = forget * cell_[i] + in * fresh;
    hidden_[i] = out * std::tanh(cell_[i]);
    speech += w.last[i] * std::max(hidden_[i], 0.0f);
  }
  return sigmoid(speech);
}

} // namespace parley::protocol::realtime::silero
