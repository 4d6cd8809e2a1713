# Compiler cache, linker and sanitizers.
find_program(PARLEY_CCACHE ccache)
if(PARLEY_CCACHE)
  # ccache asks for this sloppiness to cache compilations with a precompiled header. The rest lets checkouts and build
  # folders with other paths share the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${PARLEY_CCACHE}")
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()
# Programs are compiled like libraries, so that they can share precompiled headers.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)
find_program(PARLEY_MOLD mold)
if(PARLEY_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(PARLEY_SANITIZE)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    message(FATAL_ERROR "PARLEY_SANITIZE is for Debug and RelWithDebInfo builds")
  endif()
  if(PARLEY_SANITIZE STREQUAL "address")
    add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
    add_link_options(-fsanitize=address,undefined)
  elseif(PARLEY_SANITIZE STREQUAL "thread")
    add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
    add_link_options(-fsanitize=thread)
  else()
    message(FATAL_ERROR "PARLEY_SANITIZE must be empty, address or thread")
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized) # with sanitizers it gives false warnings; the release build keeps it
  endif()
endif()
if(PARLEY_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
