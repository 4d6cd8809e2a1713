#include "inference/speech/layers.hpp"

namespace parley::inference::speech {

tensor_map fold_weight_norm(const tensor_map& from, const std::string& widened) {
  static const std::string gain = ".parametrizations.weight.original0",
                           direction = ".parametrizations.weight.original1";
  tensor_map result(from.origin());
  for (const auto& [name, tensor] : from) {
    if (name.ends_with(gain)) continue;
    const bool wide = !widened.empty() && name.starts_with(widened);
    const auto value = wide ? tensor.to(at::kDouble) : tensor;
    if (!name.ends_with(direction)) {
      result.put(name, value);
      continue;
    }
    const auto base = name.substr(0, name.size() - direction.size());
    const auto g = from.at(base + gain).to(value.scalar_type());
    result.put(base + ".weight", at::_weight_norm(value, g, 0));
  }
  return result;
}

} // namespace parley::inference::speech
