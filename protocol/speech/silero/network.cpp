#include "protocol/speech/silero/network.hpp"

#include "base/each_cpu.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <utility>
#include <vector>

#if defined(__GNUC__) && !defined(__clang__)
// GCC warns that how a function receives a wide vector depends on the processor that it is compiled for. Those here that
// receive one are all inlined.
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

extern "C" const unsigned char parley_silero_weights[]; // weights.S

namespace parley::protocol::speech::silero {
namespace {

constexpr std::size_t fft = 256, hop = 128;
constexpr std::size_t bins = fft / 2 + 1;
constexpr std::size_t frames = 4;     ///< spectra of a step
constexpr std::size_t reflected = 64; ///< samples mirrored at its end
constexpr std::size_t wide = 128, narrow = 64;

constexpr std::size_t width = 16, block = 4 * width;

/// A matrix in integers of 16 bits and a scale for each output. A word holds that of an output in its lower half and that of the
/// output `width` further on in its upper one. The outputs are in blocks of `block`; in each there is a row for each input.
struct matrix {
  const std::int32_t* at = nullptr;
  const float* scales = nullptr;
  std::size_t inputs = 0, outputs = 0;

  /// The matrix of a convolution's tap.
  matrix tap(std::size_t which) const {
    return {at + which * inputs * outputs / 2, scales + which * outputs, inputs, outputs};
  }
};

float from_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, rest = half & 0x7FFFu;
  // Scaling by 2^112 moves the exponent's bias, subnormal numbers included.
  const float size = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | sign);
}

struct weights {
  weights() {
    constexpr std::size_t products =
        3 * (bins * wide + wide * narrow + narrow * narrow + narrow * wide) + 2 * wide * 4 * wide;
    words.reserve(products / 2);
    scales.reserve(3 * (wide + narrow + narrow + wide) + 2 * 4 * wide);
    const unsigned char* next = parley_silero_weights;
    const auto number = [&] {
      std::uint16_t half;
      std::memcpy(&half, std::exchange(next, next + sizeof half), sizeof half);
      return from_half(half);
    };
    const auto vector = [&](std::span<float> to) { std::generate(to.begin(), to.end(), number); };
    const auto product = [&](std::size_t inputs, std::size_t outputs) {
      std::vector<float> values(inputs * outputs);
      vector(values);
      const matrix made{words.data() + words.size(), scales.data() + scales.size(), inputs, outputs};
      const std::size_t begin = words.size();
      words.resize(begin + values.size() / 2);
      for (std::size_t o = 0; o < outputs; ++o) {
        float largest = 0x1p-14f;
        for (std::size_t i = 0; i < inputs; ++i) largest = std::max(largest, std::abs(values[i * outputs + o]));
        constexpr float most = 32767;
        for (std::size_t i = 0; i < inputs; ++i) {
          const auto number = static_cast<std::uint32_t>(std::lround(values[i * outputs + o] / largest * most));
          const std::size_t row = begin + (o / block * inputs + i) * block / 2;
          auto& word = words[row + o % block / (2 * width) * width + o % width];
          word = static_cast<std::int32_t>(static_cast<std::uint32_t>(word) |
                                           (o / width % 2 ? number << 16 : number & 0xFFFF));
        }
        scales.push_back(largest / most * 0x1p-16f); // the products are with the upper half of a word
      }
      return made;
    };
    const auto convolution = [&](std::size_t inputs, std::size_t outputs, std::span<float> bias) {
      const matrix first_tap = product(inputs, outputs);
      for (int tap = 1; tap < 3; ++tap) product(inputs, outputs);
      vector(bias);
      return first_tap;
    };
    first = convolution(bins, wide, first_bias);
    second = convolution(wide, narrow, second_bias);
    third = convolution(narrow, narrow, third_bias);
    fourth = convolution(narrow, wide, fourth_bias);
    from_input = product(wide, 4 * wide);
    from_hidden = product(wide, 4 * wide);
    vector(gates_bias);
    vector(last);
    last_bias = number();
    for (std::size_t n = 0; n < fft; ++n)
      hann[n] = static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(n) / fft));
    for (std::size_t k = 0; k < fft / 2; ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k) / fft;
      cosine[k] = static_cast<float>(std::cos(angle));
      sine[k] = static_cast<float>(std::sin(angle));
    }
  }

  std::vector<std::int32_t> words;
  std::vector<float> scales;
  matrix first, second, third, fourth, from_input, from_hidden;
  std::array<float, wide> first_bias, fourth_bias, last;
  std::array<float, narrow> second_bias, third_bias;
  std::array<float, 4 * wide> gates_bias;
  float last_bias = 0;
  std::array<float, fft> hann;
  std::array<float, fft / 2> cosine, sine; ///< of 2 pi k / fft
};

const weights& shared() {
  static const weights only;
  return only;
}

using lanes = float __attribute__((vector_size(4 * width)));
using pairs = std::int32_t __attribute__((vector_size(4 * width)));

PARLEY_INLINE pairs pairs_at(const std::int32_t* at) {
  pairs both;
  std::memcpy(&both, at, sizeof both);
  return both;
}

PARLEY_INLINE lanes lower(pairs both) {
  return __builtin_convertvector(both << 16, lanes);
}

PARLEY_INLINE lanes upper(pairs both) {
  return __builtin_convertvector(both & ~0xFFFF, lanes);
}

PARLEY_INLINE lanes lanes_at(const float* at) {
  lanes all;
  std::memcpy(&all, at, sizeof all);
  return all;
}

PARLEY_INLINE void add(lanes sum, const float* scale, float* to) {
  const lanes after = lanes_at(to) + sum * lanes_at(scale);
  std::memcpy(to, &after, sizeof after);
}

/// Adds to each of four rows of outputs the product of its row of inputs and the matrix.
PARLEY_FOR_EACH_CPU void add_products_of_4(const std::int32_t* at, const float* scales, std::size_t inputs,
                                           std::size_t outputs, const float* in, std::size_t in_stride, float* out,
                                           std::size_t out_stride) {
  for (std::size_t o = 0; o < outputs; o += 2 * width) {
    lanes a0{}, a1{}, b0{}, b1{}, c0{}, c1{}, d0{}, d1{};
    const std::int32_t* from = at + (o / block * inputs * block + o % block) / 2;
    for (std::size_t i = 0; i < inputs; ++i, from += block / 2) {
      const pairs both = pairs_at(from);
      const lanes left = lower(both), right = upper(both);
      a0 += in[i] * left;
      a1 += in[i] * right;
      b0 += in[in_stride + i] * left;
      b1 += in[in_stride + i] * right;
      c0 += in[2 * in_stride + i] * left;
      c1 += in[2 * in_stride + i] * right;
      d0 += in[3 * in_stride + i] * left;
      d1 += in[3 * in_stride + i] * right;
    }
    add(a0, scales + o, out + o);
    add(a1, scales + o + width, out + o + width);
    add(b0, scales + o, out + out_stride + o);
    add(b1, scales + o + width, out + out_stride + o + width);
    add(c0, scales + o, out + 2 * out_stride + o);
    add(c1, scales + o + width, out + 2 * out_stride + o + width);
    add(d0, scales + o, out + 3 * out_stride + o);
    add(d1, scales + o + width, out + 3 * out_stride + o + width);
  }
}

/// The same for one row.
PARLEY_FOR_EACH_CPU void add_product(const std::int32_t* at, const float* scales, std::size_t inputs,
                                     std::size_t outputs, const float* in, float* out) {
  for (std::size_t o = 0; o < outputs; o += block) {
    lanes a{}, b{}, c{}, d{};
    for (std::size_t i = 0; i < inputs; ++i, at += block / 2) {
      const pairs first = pairs_at(at), second = pairs_at(at + width);
      a += in[i] * lower(first);
      b += in[i] * upper(first);
      c += in[i] * lower(second);
      d += in[i] * upper(second);
    }
    add(a, scales + o, out + o);
    add(b, scales + o + width, out + o + width);
    add(c, scales + o + 2 * width, out + o + 2 * width);
    add(d, scales + o + 3 * width, out + o + 3 * width);
  }
}

void add_product(const matrix& by, const float* in, float* out) {
  add_product(by.at, by.scales, by.inputs, by.outputs, in, out);
}

void add_products_of_4(const matrix& by, const float* in, std::size_t in_stride, float* out, std::size_t out_stride) {
  add_products_of_4(by.at, by.scales, by.inputs, by.outputs, in, in_stride, out, out_stride);
}

void keep_positive(std::span<float> values) {
  for (auto& x : values) x = std::max(x, 0.0f);
}

/// e to the power of x, to seven digits.
PARLEY_INLINE lanes exponential(lanes x) {
  constexpr float most = 87;
  x = x < -most ? lanes{} - most : x > most ? lanes{} + most : x;
  const lanes power = x * std::numbers::log2e_v<float>;
  const pairs shifted = std::bit_cast<pairs>(power + 0x1.8p23f); // its lower bits are the nearest integer
  const lanes rest = (power - (std::bit_cast<lanes>(shifted) - 0x1.8p23f)) * std::numbers::ln2_v<float>;
  lanes sum = rest * (1 / 720.0f) + 1 / 120.0f;
  for (const float factor : {1 / 24.0f, 1 / 6.0f, 0.5f, 1.0f, 1.0f}) sum = sum * rest + factor;
  return std::bit_cast<lanes>(std::bit_cast<pairs>(sum) + (shifted << 23));
}

PARLEY_INLINE lanes sigmoid(lanes x) {
  return 1 / (1 + exponential(-x));
}

PARLEY_INLINE lanes hyperbolic_tangent(lanes x) {
  return 1 - 2 / (1 + exponential(2 * x));
}

/// A step of the LSTM: gates [4 x cells] -> cell and hidden state [cells]; returns the sum of `last` times the positive ones.
PARLEY_FOR_EACH_CPU float remember(const float* gates, std::size_t cells, float* cell, float* hidden,
                                   const float* last) {
  lanes sums{};
  for (std::size_t i = 0; i < cells; i += width) {
    const lanes in = sigmoid(lanes_at(gates + i)), forget = sigmoid(lanes_at(gates + cells + i));
    const lanes fresh = hyperbolic_tangent(lanes_at(gates + 2 * cells + i)),
                out = sigmoid(lanes_at(gates + 3 * cells + i));
    const lanes now = forget * lanes_at(cell + i) + in * fresh, shown = out * hyperbolic_tangent(now);
    std::memcpy(cell + i, &now, sizeof now);
    std::memcpy(hidden + i, &shown, sizeof shown);
    sums += lanes_at(last + i) * (shown > 0 ? shown : lanes{});
  }
  float sum = 0;
  for (std::size_t l = 0; l < width; ++l) sum += sums[l];
  return sum;
}

/// A value of each of the spectra of a step.
using of_frames = float __attribute__((vector_size(4 * frames)));

/// Magnitudes [bins] of the Fourier transforms of `fft` real values of each frame, as a transform of half as many complex ones.
PARLEY_FOR_EACH_CPU void magnitudes(const float* seen, const float* hann, const float* cosine, const float* sine,
                                    of_frames* out) {
  constexpr std::size_t half = fft / 2;
  std::array<of_frames, half> re, im;
  std::size_t mirrored = 0; // the bits of n in reverse
  for (std::size_t n = 0; n < half; ++n) {
    for (std::size_t frame = 0; frame < frames; ++frame) {
      re[mirrored][frame] = seen[frame * hop + 2 * n] * hann[2 * n];
      im[mirrored][frame] = seen[frame * hop + 2 * n + 1] * hann[2 * n + 1];
    }
    std::size_t bit = half / 2;
    for (; mirrored & bit; bit /= 2) mirrored ^= bit;
    mirrored |= bit;
  }
  for (std::size_t size = 1; size < half; size *= 2)
    for (std::size_t k = 0; k < size; ++k) {
      const float c = cosine[k * (half / size)], s = sine[k * (half / size)];
      for (std::size_t at = k; at < half; at += 2 * size) {
        const of_frames r = re[at + size] * c + im[at + size] * s, i = im[at + size] * c - re[at + size] * s;
        re[at + size] = re[at] - r;
        im[at + size] = im[at] - i;
        re[at] += r;
        im[at] += i;
      }
    }
  const auto root = [](of_frames x) {
    of_frames y;
    for (std::size_t frame = 0; frame < frames; ++frame) y[frame] = std::sqrt(x[frame]);
    return y;
  };
  for (std::size_t k = 0; k <= half; ++k) {
    const std::size_t left = k % half, right = (half - k) % half;
    const float c = k < half ? cosine[k] : -1, s = k < half ? sine[k] : 0;
    const of_frames even_re = (re[left] + re[right]) * 0.5f, even_im = (im[left] - im[right]) * 0.5f;
    const of_frames odd_re = (im[left] + im[right]) * 0.5f, odd_im = (re[right] - re[left]) * 0.5f;
    const of_frames real = even_re + odd_re * c + odd_im * s, imaginary = even_im + odd_im * c - odd_re * s;
    out[k] = root(real * real + imaginary * imaginary);
  }
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
  std::array<of_frames, bins> found;
  magnitudes(seen.data(), w.hann.data(), w.cosine.data(), w.sine.data(), found.data());
  std::array<float, (frames + 2) * bins> spectra{};
  for (std::size_t frame = 0; frame < frames; ++frame)
    for (std::size_t k = 0; k < bins; ++k) spectra[(frame + 1) * bins + k] = found[k][frame];

  // Four convolutions over time; the second and the third go two steps at a time, so one row is left.
  std::array<float, (frames + 2) * wide> heard{};
  for (std::size_t frame = 0; frame < frames; ++frame)
    std::copy_n(w.first_bias.begin(), wide, &heard[(frame + 1) * wide]);
  for (std::size_t tap = 0; tap < 3; ++tap)
    add_products_of_4(w.first.tap(tap), &spectra[tap * bins], bins, &heard[wide], wide);
  keep_positive(heard);
  std::array<float, 4 * narrow> halved{};
  for (std::size_t row = 0; row < 2; ++row) {
    std::copy_n(w.second_bias.begin(), narrow, &halved[(row + 1) * narrow]);
    for (std::size_t tap = 0; tap < 3; ++tap)
      add_product(w.second.tap(tap), &heard[(2 * row + tap) * wide], &halved[(row + 1) * narrow]);
  }
  keep_positive(halved);
  std::array<float, narrow> one;
  std::copy_n(w.third_bias.begin(), narrow, one.begin());
  for (std::size_t tap = 1; tap < 3; ++tap) add_product(w.third.tap(tap), &halved[tap * narrow], one.data());
  keep_positive(one);
  std::array<float, wide> features;
  std::copy_n(w.fourth_bias.begin(), wide, features.begin());
  add_product(w.fourth.tap(1), one.data(), features.data());
  keep_positive(features);

  std::array<float, 4 * cells> gates;
  std::copy_n(w.gates_bias.begin(), gates.size(), gates.begin());
  add_product(w.from_input, features.data(), gates.data());
  add_product(w.from_hidden, hidden_.data(), gates.data());
  const float speech = w.last_bias + remember(gates.data(), cells, cell_.data(), hidden_.data(), w.last.data());
  return 1 / (1 + std::exp(-speech));
}

} // namespace parley::protocol::speech::silero
