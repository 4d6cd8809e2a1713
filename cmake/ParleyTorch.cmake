# LibTorch straight from the PyTorch wheel (CPU or CUDA). TorchConfig.cmake is bypassed: for a CUDA wheel it insists on
# nvcc and a whole CUDA toolkit, even for programs with no CUDA source of their own.
#   -DTORCH_ROOT=<site-packages/torch>; default: the virtual environment that scripts/setup.sh makes
#   -DPARLEY_FIND_TORCH=ON: uses find_package(Torch) to find your own LibTorch (-DTorch_DIR, CMAKE_PREFIX_PATH)
option(PARLEY_FIND_TORCH "Find LibTorch with find_package(Torch), not in a PyTorch wheel" OFF)
if(PARLEY_FIND_TORCH)
  find_package(Torch REQUIRED)
  add_library(parley_torch INTERFACE)
  add_library(parley::torch ALIAS parley_torch)
  target_include_directories(parley_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  # Without TORCH_CXX_FLAGS: we choose the C++ standard and the warnings ourselves.
  target_link_libraries(parley_torch INTERFACE ${TORCH_LIBRARIES})
  get_filename_component(TORCH_ROOT "${TORCH_INSTALL_PREFIX}" ABSOLUTE)
  set(PARLEY_TORCH_CUDA ${TORCH_CUDA_LIBRARIES} CACHE INTERNAL "whether LibTorch's CUDA libraries are linked")
  set(TORCH_VERSION "${Torch_VERSION}" CACHE INTERNAL "version of LibTorch")
  message(STATUS "LibTorch ${Torch_VERSION} by find_package")
  return()
endif()
if(NOT TORCH_ROOT)
  include(ParleyCache)
  parley_cache(_cache)
  file(GLOB _found "${_cache}/venv/lib/python3*/site-packages/torch")
  if(NOT _found)
    message(FATAL_ERROR "LibTorch not found: run scripts/setup.sh, or pass -DTORCH_ROOT=<site-packages/torch>")
  endif()
  set(TORCH_ROOT "${_found}" CACHE PATH "the torch folder of a PyTorch wheel")
endif()

# scripts/setup.sh touches it when other libraries have taken the place of these.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${TORCH_ROOT}/version.py")
file(STRINGS "${TORCH_ROOT}/version.py" _line REGEX "^__version__")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+[^']*" _version "${_line}")
set(TORCH_VERSION "${_version}" CACHE INTERNAL "version of LibTorch")

add_library(parley_torch INTERFACE)
add_library(parley::torch ALIAS parley_torch)
target_include_directories(parley_torch SYSTEM INTERFACE "${TORCH_ROOT}/include")
foreach(_name torch_cpu c10)
  target_link_libraries(parley_torch INTERFACE "${TORCH_ROOT}/lib/lib${_name}.so")
endforeach()
set(PARLEY_TORCH_CUDA OFF)
if(EXISTS "${TORCH_ROOT}/lib/libtorch_cuda.so")
  target_link_options(parley_torch INTERFACE "LINKER:--allow-shlib-undefined")
  # On machines without a GPU, scripts/setup.sh may install only those of CUDA's libraries that LibTorch loads on a CPU.
  set(_cuda "${TORCH_ROOT}/../nvidia")
  if(NOT EXISTS "${_cuda}/cu13" OR EXISTS "${_cuda}/cudnn")
    set(PARLEY_TORCH_CUDA ON)
    # Linked although no symbol of it is used: loading it registers the CUDA kernels.
    target_link_options(parley_torch INTERFACE "LINKER:--push-state,--no-as-needed" "${TORCH_ROOT}/lib/libtorch_cuda.so" "LINKER:--pop-state")
    target_link_libraries(parley_torch INTERFACE "${TORCH_ROOT}/lib/libc10_cuda.so")
  endif()
endif()
if(PARLEY_TORCH_CUDA)
  # For CUDA graphs. Without these headers, kernels are launched one by one.
  find_path(PARLEY_CUDA_INCLUDE cuda_runtime_api.h PATHS "${_cuda}/cu13/include" /usr/local/cuda/include)
  if(PARLEY_CUDA_INCLUDE AND NOT EXISTS "${PARLEY_CUDA_INCLUDE}/crt/host_defines.h")
    set(PARLEY_CUDA_INCLUDE "" CACHE PATH "folder of cuda_runtime_api.h" FORCE)
  endif()
  message(STATUS "CUDA headers: ${PARLEY_CUDA_INCLUDE}")
endif()
# The wheel brings its own libgomp, with the same SONAME as Debian's. It must be the only OpenMP runtime, so nothing
# here uses -fopenmp. Programs find the libraries through the run path that CMake adds for libraries linked by path and
# removes on installation.
set(PARLEY_TORCH_CUDA ${PARLEY_TORCH_CUDA} CACHE INTERNAL "whether LibTorch's CUDA libraries are linked")
message(STATUS "LibTorch ${TORCH_VERSION}, CUDA: ${PARLEY_TORCH_CUDA}")
