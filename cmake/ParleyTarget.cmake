# Settings of all our targets: the same include root, the same warnings.
function(parley_defaults target)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic $<$<BOOL:${PARLEY_WERROR}>:-Werror>)
endfunction()

# parley_unity(<target> [sources to compile alone…]): with PARLEY_UNITY, compiles several small sources as one. Large
# sources stay alone: they gain least, and recompiling them after an edit takes longest.
function(parley_unity target)
  if(NOT PARLEY_UNITY)
    return()
  endif()
  set(alone ${ARGN})
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    file(SIZE "${CMAKE_CURRENT_SOURCE_DIR}/${source}" bytes)
    if(bytes GREATER PARLEY_UNITY_BYTES)
      list(APPEND alone ${source})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE "${PARLEY_UNITY}")
  set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# parley_library(<name> SOURCES … [PUBLIC libs…] [PRIVATE libs…] [ALONE sources that a unity build compiles alone…]):
# static library parley_<name>, alias parley::<name>.
function(parley_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE;ALONE" ${ARGN})
  add_library(parley_${name} STATIC ${arg_SOURCES})
  add_library(parley::${name} ALIAS parley_${name})
  target_link_libraries(parley_${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  parley_defaults(parley_${name})
  parley_unity(parley_${name} ${arg_ALONE})
endfunction()

# parley_tests(<folder> [BINARY b] SOURCES a_test.cpp … LINK libs… [ALONE sources that a unity build compiles alone…]):
# a binary b_tests (<folder>_tests), one ctest entry <folder>/a per source file. The working directory is the source
# root, so that tests find tests/data and models. Tests that do not need LibTorch have the label `plain`; the target
# `plain` builds them.
function(parley_tests folder)
  cmake_parse_arguments(arg "" "BINARY" "SOURCES;LINK;ALONE" ${ARGN})
  if(NOT arg_BINARY)
    set(arg_BINARY ${folder})
  endif()
  set(binary ${arg_BINARY}_tests)
  add_executable(${binary} ${arg_SOURCES})
  target_link_libraries(${binary} PRIVATE ${arg_LINK} parley_catch_main)
  parley_defaults(${binary})
  parley_unity(${binary} ${arg_ALONE})
  # The code under test keeps its optimization. The tests themselves only get -O1: they are compiled more often than
  # they run.
  target_compile_options(${binary} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O1>)
  set(labels ${folder})
  if(NOT "parley::inference" IN_LIST arg_LINK) # with it, -O1 in Debug too, like the precompiled ATen headers
    target_compile_options(${binary} PRIVATE $<$<CONFIG:Debug>:-O0>)
    list(APPEND labels plain)
    add_dependencies(plain ${binary})
  endif()
  foreach(source ${arg_SOURCES})
    get_filename_component(stem ${source} NAME_WE)
    if(stem MATCHES "_test$")
      string(REGEX REPLACE "_test$" "" short ${stem})
      # -# gives each test case a tag with the name of its file.
      add_test(NAME ${folder}/${short} COMMAND ${binary} -w NoTests -\# "[#${stem}]" WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
      # One intra-op thread: on a busy machine LibTorch's spinning helper threads cost a thousand times what they gain.
      set_tests_properties(${folder}/${short} PROPERTIES LABELS "${labels}" TIMEOUT 900 ENVIRONMENT OMP_NUM_THREADS=1)
    endif()
  endforeach()
endfunction()

# parley_python_test(<name> <script or arguments of python…>): one ctest entry, run from the source root with the
# virtual environment's Python; PARLEY_BINARY names the built program.
include(ParleyCache)
parley_cache(_cache)
set(PARLEY_PYTHON "${_cache}/venv/bin/python" CACHE FILEPATH "Python with the packages of scripts/requirements.tests.txt")
function(parley_python_test name)
  add_test(NAME ${name} COMMAND "${PARLEY_PYTHON}" ${ARGN} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES TIMEOUT 900 ENVIRONMENT "PARLEY_BINARY=${PROJECT_BINARY_DIR}/parley;PYTHONDONTWRITEBYTECODE=1")
endfunction()
