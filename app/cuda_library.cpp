#include "app/cuda_library.hpp"

#include <dlfcn.h>

namespace parley::app {

void load_cuda_library(const std::string& device) {
  if (device == "cpu") return;
  // Never closed: LibTorch registers what the libraries contain.
  if (::dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) ::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL);
}

} // namespace parley::app
