#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace parley::inference {

/// A source of random numbers: a session's own stream, or a recorded list in replays. Not thread-safe.
class random_source {
public:
  virtual ~random_source() = default;

  /// Uniform in [0, 1).
  virtual double next() = 0;

  /// The state of a source, and restoring it, so that numbers whose use failed are drawn again. Recorded lists have
  /// none.
  using state = std::array<std::uint64_t, 4>;
  virtual state where() const { return {}; }
  virtual void go_on_from(const state& /*where*/) {}
};

/// Each use of randomness in a session has its own stream, so that one use does not shift the numbers of another.
enum class substream : std::uint64_t { text = 1, speech_tokens = 2, noise = 3 };

/// xoshiro256** seeded by splitmix64 over (seed, substream). Copyable: a copy continues in the same way.
class random_stream final : public random_source {
public:
  random_stream(std::uint64_t seed, substream use) {
    auto mix = seed + 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(use);
    for (auto& word : state_) {
      mix += 0x9e3779b97f4a7c15u;
      auto z = (mix ^ (mix >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }

  std::uint64_t bits() {
    auto result = std::rotl(state_[1] * 5, 7) * 9;
    auto shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  double next() override { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

  state where() const override { return state_; }
  void go_on_from(const state& where) override { state_ = where; }

private:
  state state_;
};

} // namespace parley::inference
