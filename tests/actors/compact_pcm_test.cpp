#include "actors/bytes/compact_pcm.hpp"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace parley::actors {

namespace {

conversation::pcm shared(std::vector<float> samples) {
  return std::make_shared<const std::vector<float>>(std::move(samples));
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) return false;
  return true;
}

} // namespace

TEST_CASE("16-bit samples are kept in half the memory, bit by bit") {
  std::vector<float> all;
  for (int i = -32768; i < 32768; ++i) all.push_back(static_cast<float>(i) / 32768);
  const compact_pcm kept(shared(all));
  CHECK(kept.bytes() == all.size() * 2);
  CHECK(same_bits(*kept.samples(), all));
}

TEST_CASE("other samples are kept as they are") {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> any(-1, 1);
  for (const float odd : {1.0F, -0.0F, 1.0F / 65536, std::numeric_limits<float>::denorm_min(), 0.1F,
                          std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> samples{0.5F, odd, 0.25F};
    const auto came = shared(samples);
    const compact_pcm kept(came);
    CHECK(kept.bytes() == 12);
    CHECK(kept.samples() == came);
  }
  std::vector<float> noise(16000);
  for (auto& x : noise) x = any(random);
  CHECK(same_bits(*compact_pcm(shared(noise)).samples(), noise));
}

TEST_CASE("no samples are no samples") {
  CHECK(compact_pcm(nullptr).samples() == nullptr);
  CHECK(compact_pcm(nullptr).bytes() == 0);
  CHECK(compact_pcm(shared({})).samples()->empty());
}

} // namespace parley::actors
