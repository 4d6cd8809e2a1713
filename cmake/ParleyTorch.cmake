# LibTorch straight from the PyTorch wheel (CPU or CUDA). TorchConfig.cmake is bypassed: for a CUDA wheel it insists on
# nvcc and a whole CUDA toolkit, even for programs with no CUDA source of their own.
#   -DTORCH_ROOT=<site-packages/torch>; default: the virtual environment that scripts/setup.sh makes
#   -DPARLEY_FIND_TORCH=ON: find_package(Torch) instead, for a LibTorch of your own (-DTorch_DIR, CMAKE_PREFIX_PATH)
option(PARLEY_FIND_TORCH "Take LibTorch by find_package(Torch), not from a PyTorch wheel" OFF)
if(PARLEY_FIND_TORCH)
  find_package(Torch REQUIRED)
  add_library(parley_torch INTERFACE)
  add_library(parley::torch ALIAS parley_torch)
  target_include_directories(parley_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  # The libraries without the flags that come with them: the C++ standard and what to warn of are ours to say.
  target_link_libraries(parley_torch INTERFACE ${TORCH_LIBRARIES})
  get_filename_component(TORCH_ROOT "${TORCH_INSTALL_PREFIX}" ABSOLUTE)
  set(PARLEY_TORCH_CUDA ${TORCH_CUDA_LIBRARIES})
  message(STATUS "LibTorch ${Torch_VERSION} by find_package")
  return()
endif()
if(NOT TORCH_ROOT)
  set(_cache "$ENV{PARLEY_CACHE}")
  if(NOT _cache)
    set(_cache "$ENV{XDG_CACHE_HOME}")
    if(NOT _cache)
      set(_cache "$ENV{HOME}/.cache")
    endif()
    string(APPEND _cache "/parley")
  endif()
  file(GLOB _found "${_cache}/venv/lib/python3*/site-packages/torch")
  if(NOT _found)
    message(FATAL_ERROR "LibTorch not found: run scripts/setup.sh, or pass -DTORCH_ROOT=<site-packages/torch>")
  endif()
  set(TORCH_ROOT "${_found}" CACHE PATH "the torch folder of a PyTorch wheel")
endif()

file(STRINGS "${TORCH_ROOT}/version.py" _line REGEX "^__version__")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+[^']*" TORCH_VERSION "${_line}")

add_library(parley_torch INTERFACE)
add_library(parley::torch ALIAS parley_torch)
target_include_directories(parley_torch SYSTEM INTERFACE "${TORCH_ROOT}/include")
foreach(_name torch_cpu c10)
  target_link_libraries(parley_torch INTERFACE "${TORCH_ROOT}/lib/lib${_name}.so")
endforeach()
set(PARLEY_TORCH_CUDA OFF)
if(EXISTS "${TORCH_ROOT}/lib/libtorch_cuda.so")
  set(PARLEY_TORCH_CUDA ON)
  # Kept although no symbol of it is named: loading it registers the CUDA kernels.
  target_link_options(parley_torch INTERFACE "LINKER:--push-state,--no-as-needed" "${TORCH_ROOT}/lib/libtorch_cuda.so" "LINKER:--pop-state"
                      "LINKER:--allow-shlib-undefined")
  target_link_libraries(parley_torch INTERFACE "${TORCH_ROOT}/lib/libc10_cuda.so")
endif()
# The wheel brings its own libgomp with the SONAME of Debian's: it must be the only OpenMP runtime, so nothing here uses -fopenmp.
# Programs find the libraries by the run path that CMake gives to what it links by path, and takes away when it installs.
message(STATUS "LibTorch ${TORCH_VERSION}, CUDA: ${PARLEY_TORCH_CUDA}")
