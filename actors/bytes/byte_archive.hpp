#pragma once

#include "actors/bytes/enum_values.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// Plain structs as bytes. A single description of a struct, `fields(archive, value)`, serves both writer and reader.
// Numbers are little-endian, lengths take eight bytes, blocks of samples are copied whole.
namespace parley::actors {

static_assert(std::endian::native == std::endian::little);

/// Types that are copied byte by byte.
template<class T>
concept plain_value = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// Finds `fields` by argument-dependent lookup. Grows as needed; not thread-safe.
class byte_writer {
public:
  template<class... Ts>
  void operator()(Ts&... values) {
    (put(values), ...);
  }

  /// Everything written so far.
  std::string take() { return std::move(bytes_); }

private:
  void raw(const void* from, std::size_t size) { bytes_.append(static_cast<const char*>(from), size); }

  template<plain_value T>
  void put(const T& value) {
    raw(&value, sizeof value);
  }
  void put(const std::string& text) {
    put(text.size());
    raw(text.data(), text.size());
  }
  template<class T>
  void put(const std::shared_ptr<const T>& value) {
    optional(value.get());
  }
  template<plain_value T, std::size_t N>
  void put(const std::array<T, N>& values) {
    raw(values.data(), sizeof values);
  }
  template<class T>
  void put(const std::optional<T>& value) {
    optional(value ? &*value : nullptr);
  }
  template<class T>
  void put(const std::vector<T>& values) {
    put(values.size());
    if constexpr (plain_value<T> && !std::is_same_v<T, bool>) {
      bytes_.reserve(bytes_.size() + values.size() * sizeof(T));
      raw(values.data(), values.size() * sizeof(T));
    } else {
      for (const auto& value : values) put(value);
    }
  }
  template<class... Ts>
  void put(const std::variant<Ts...>& value) {
    put(static_cast<std::uint8_t>(value.index()));
    std::visit([this](const auto& held) { put(held); }, value);
  }
  template<class T>
  requires std::is_class_v<T>
  void put(const T& value) { fields(*this, const_cast<T&>(value)); }

  template<class T>
  void optional(const T* value) {
    put(value != nullptr);
    if (value) put(*value);
  }

  std::string bytes_;
};

/// Never reads past the end: if something does not fit, the whole result is `false`. So it is for a bool or an enum with a
/// value that it does not have. The bytes must outlive it.
class byte_reader {
public:
  explicit byte_reader(std::string_view bytes) : rest_(bytes) {}

  template<class... Ts>
  void operator()(Ts&... values) {
    (get(values), ...);
  }

  /// Whether everything was read, and nothing is left over.
  bool complete() const { return good_ && rest_.empty(); }

  /// Whether everything so far could be read.
  bool good() const { return good_; }

  /// What was read makes no sense.
  void fail() { good_ = false; }

private:
  bool raw(void* to, std::size_t size) {
    if (!good_ || size > rest_.size()) return good_ = false;
    if (size > 0) std::memcpy(to, rest_.data(), size);
    rest_.remove_prefix(size);
    return true;
  }

  /// How many items a list may have that are no plain values: they take more room than the bytes that they come in.
  static constexpr std::size_t most_items = std::size_t{1} << 16;

  /// Reads a length; each item must take at least `least` bytes.
  std::size_t length(std::size_t least) {
    std::size_t count = 0;
    get(count);
    if (count > rest_.size() / least) good_ = false;
    return good_ ? count : 0;
  }

  template<plain_value T>
  void get(T& value) {
    if constexpr (std::is_enum_v<T>) {
      static_assert(enum_values<T> > 0, "how many values an enum has is said in enum_values.hpp, or where it is read");
      std::underlying_type_t<T> number{};
      raw(&number, sizeof number);
      if (!std::in_range<std::size_t>(number) || static_cast<std::size_t>(number) >= enum_values<T>) return fail();
      value = static_cast<T>(number);
    } else {
      raw(&value, sizeof value);
    }
  }
  void get(bool& value) {
    std::uint8_t byte = 0;
    raw(&byte, 1);
    if (byte > 1) return fail();
    value = byte != 0;
  }
  void get(std::string& text) {
    text.resize(length(1));
    raw(text.data(), text.size());
  }
  template<class T>
  void get(std::shared_ptr<const T>& value) {
    bool there = false;
    get(there);
    value.reset();
    if (!there || !good_) return;
    auto fresh = std::make_shared<T>();
    get(*fresh);
    value = std::move(fresh);
  }
  template<plain_value T, std::size_t N>
  void get(std::array<T, N>& values) {
    raw(values.data(), sizeof values);
  }
  template<class T>
  void get(std::optional<T>& value) {
    bool there = false;
    get(there);
    value.reset();
    if (there && good_) get(value.emplace());
  }
  template<class T>
  void get(std::vector<T>& values) {
    static_assert(!std::is_enum_v<T>, "enums are read one by one");
    if constexpr (plain_value<T> && !std::is_same_v<T, bool>) {
      values.resize(length(sizeof(T)));
      raw(values.data(), values.size() * sizeof(T));
    } else {
      values.clear();
      auto left = length(1);
      if (left > most_items) return fail();
      for (; left > 0 && good_; --left) get(values.emplace_back());
    }
  }
  template<class... Ts>
  void get(std::variant<Ts...>& value) {
    std::uint8_t index = 0;
    get(index);
    good_ &= index < sizeof...(Ts);
    if (good_) choose(value, index, std::index_sequence_for<Ts...>());
  }
  template<class T>
  requires std::is_class_v<T>
  void get(T& value) { fields(*this, value); }

  template<class Variant, std::size_t... I>
  void choose(Variant& value, std::size_t index, std::index_sequence<I...>) {
    ((I == index ? get(value.template emplace<I>()) : void()), ...);
  }

  std::string_view rest_;
  bool good_ = true;
};

} // namespace parley::actors
