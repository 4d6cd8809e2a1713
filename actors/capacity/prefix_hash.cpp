#include "actors/capacity/prefix_hash.hpp"

#include <cstring>
#include <string_view>

namespace parley::actors {

namespace {

/// Processes eight bytes at a time, because a voice may have four million.
class hash {
public:
  void add(std::string_view bytes) {
    mix(bytes.size());
    for (; bytes.size() >= sizeof(std::uint64_t); bytes.remove_prefix(sizeof(std::uint64_t))) {
      std::uint64_t eight;
      std::memcpy(&eight, bytes.data(), sizeof eight);
      mix(eight);
    }
    for (const char byte : bytes) mix(static_cast<unsigned char>(byte));
  }

  std::uint64_t value() const { return value_; }

private:
  /// The last steps of SplitMix64.
  void mix(std::uint64_t of) {
    std::uint64_t z = (value_ ^ of) + 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    value_ = z ^ (z >> 31);
  }

  std::uint64_t value_ = 0;
};

} // namespace

std::optional<prefix_hash> prompt_of(const conversation::command& open) {
  const auto* duplex = std::get_if<conversation::open_duplex>(&open);
  if (!duplex) return {};
  hash all;
  all.add(duplex->system_prompt);
  if (duplex->voice) {
    const auto& samples = *duplex->voice;
    all.add({reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof(float)});
  } else {
    all.add({}); // an empty voice counts as none
  }
  return std::max<prefix_hash>(1, all.value());
}

} // namespace parley::actors
