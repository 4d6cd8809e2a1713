#include "actors/kept_unit.hpp"

#include <cstdint>
#include <cstring>
#include <memory>

namespace parley::actors {

namespace {

template<class T>
void put(std::string& to, const std::vector<T>& values) {
  const std::uint64_t count = values.size();
  to.append(reinterpret_cast<const char*>(&count), sizeof count);
  to.append(reinterpret_cast<const char*>(values.data()), count * sizeof(T));
}

std::uint64_t take_count(std::string_view& from) {
  std::uint64_t count = 0;
  std::memcpy(&count, from.data(), sizeof count);
  from.remove_prefix(sizeof count);
  return count;
}

template<class T>
std::vector<T> take(std::string_view& from) {
  std::vector<T> values(take_count(from));
  std::memcpy(values.data(), from.data(), values.size() * sizeof(T));
  from.remove_prefix(values.size() * sizeof(T));
  return values;
}

} // namespace

std::size_t kept_unit::bytes() const {
  auto all = sound.bytes();
  for (const auto& frame : frames) all += frame->size();
  return all;
}

std::string pack(const kept_unit& unit) {
  std::string bytes;
  bytes.reserve(unit.bytes() + 64);
  const auto* numbers = unit.sound.numbers();
  bytes.push_back(numbers ? 'i' : 'f');
  if (numbers)
    put(bytes, *numbers);
  else
    put(bytes, *unit.sound.samples());
  for (const auto& frame : unit.frames) {
    const std::uint64_t size = frame->size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += *frame;
  }
  return bytes;
}

kept_unit unpack(std::string_view bytes) {
  kept_unit unit;
  const bool numbers = bytes.front() == 'i';
  bytes.remove_prefix(1);
  if (numbers)
    unit.sound = kept_sound(take<std::int16_t>(bytes));
  else
    unit.sound = kept_sound(std::make_shared<const std::vector<float>>(take<float>(bytes)));
  while (!bytes.empty()) {
    const auto size = take_count(bytes);
    unit.frames.push_back(std::make_shared<const std::string>(bytes.substr(0, size)));
    bytes.remove_prefix(size);
  }
  return unit;
}

} // namespace parley::actors
