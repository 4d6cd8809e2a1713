#include "inference/engine/default_model.hpp"

#include <stdexcept>

namespace parley::inference {

std::filesystem::path embedded_model(std::string_view model) {
  namespace fs = std::filesystem;
  auto name = fs::path("models") / model;
  auto usable = [](const fs::path& p) { return fs::exists(p / "config.json"); };
  if (usable(name)) return name;
  std::error_code ignored;
  auto folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (auto levels = 0; levels < 4 && !folder.empty(); ++levels, folder = folder.parent_path()) {
    if (usable(folder / name)) return folder / name;
    if (usable(folder / "share/parley" / name)) return folder / "share/parley" / name;
  }
  throw std::runtime_error("the embedded model " + name.string() + " is not there: set worker.model (--model)");
}

std::filesystem::path default_model_directory() {
  return embedded_model("nano");
}

} // namespace parley::inference
