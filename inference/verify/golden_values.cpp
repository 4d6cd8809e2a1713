#include "inference/verify/golden_values.hpp"

#include <ATen/ATen.h>

#include <charconv>
#include <stdexcept>
#include <string_view>

namespace parley::inference::verify {

namespace {

constexpr std::string_view every_mark = ".every", of_mark = "of";

/// Removes a positive number from the front of `text` and returns it; 0 if there is none.
std::int64_t take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return 0;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return std::max<std::int64_t>(number, 0);
}

/// The values of a thinned tensor, whose name ends like "31of24000"; nullopt for other names.
std::optional<golden_values> thinned(std::string_view numbers, const at::Tensor& values) {
  golden_values result{values};
  result.every = take_number(numbers);
  if (!numbers.starts_with(of_mark)) return std::nullopt;
  numbers.remove_prefix(of_mark.size());
  result.count = take_number(numbers);
  if (!numbers.empty() || result.every < 2 || values.dim() != 1) return std::nullopt;
  if (values.numel() != (result.count + result.every - 1) / result.every) return std::nullopt;
  return result;
}

} // namespace

std::optional<golden_values> find_golden(const safetensors_file& file, const std::string& name) {
  if (file.has(name)) {
    auto values = file.tensor(name);
    const auto count = values.numel();
    return golden_values{std::move(values), 1, count};
  }
  const auto begin = name + std::string(every_mark);
  for (const auto& stored : file.names()) {
    if (!stored.starts_with(begin)) continue;
    if (auto found = thinned(std::string_view(stored).substr(begin.size()), file.tensor(stored))) return found;
    throw std::runtime_error(file.path().string() + ": tensor " + stored + " does not hold what its name says");
  }
  return std::nullopt;
}

golden_values golden_of(const safetensors_file& file, const std::string& name) {
  auto found = find_golden(file, name);
  if (!found) throw std::runtime_error(file.path().string() + ": no tensor " + name);
  return *std::move(found);
}

} // namespace parley::inference::verify
