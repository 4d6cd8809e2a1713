# cmake -DSOURCE=… -DOUTPUT=… -DVERSION=… -DLIBTORCH=… -DCAF=… -DBUILD=… -P WriteVersion.cmake: defines what `parley
# --version` prints. The commit is that of the checkout, or of the file COMMIT in sources that scripts/release.sh packed.
cmake_minimum_required(VERSION 3.25)
set(COMMIT "of unknown commit")
if(EXISTS "${SOURCE}/.git")
  execute_process(COMMAND git -C "${SOURCE}" describe --always --abbrev=12 --exclude=* --dirty=+ OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE status ERROR_QUIET)
  if(status EQUAL 0)
    set(COMMIT "commit ${found}")
  endif()
elseif(EXISTS "${SOURCE}/COMMIT")
  file(STRINGS "${SOURCE}/COMMIT" found LIMIT_COUNT 1)
  set(COMMIT "commit ${found}")
endif()
set(text "parley ${VERSION} (${COMMIT}, LibTorch ${LIBTORCH}, CAF ${CAF}, ${BUILD} build)")
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#include \"app/version.hpp\"\n\nconst char* const parley::app::version = \"@text@\";\n" @ONLY)
