# cmake --install BUILD --prefix DIR installs the program with its page, the default model, settings, manual,
# completions and systemd units.
include(GNUInstallDirs)
option(PARLEY_INSTALL_LIBTORCH "Install LibTorch's libraries, too, beside the program's own" ON)

install(TARGETS parley RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(PARLEY_INSTALL_LIBTORCH)
  # As a property of the target, the path goes into the installed file only, and CMake escapes what has to be escaped.
  set_target_properties(parley PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/parley")
  file(GLOB torch_libraries "${TORCH_ROOT}/lib/*.so*" "${TORCH_ROOT}/../nvidia/*/lib/*.so*")
  # Of the rest, what only Python or PyTorch's own tests load.
  list(FILTER torch_libraries EXCLUDE REGEX "/lib(torch_python|shm|jitbackend_test|torchbind_test|backend_with_compiler|aoti_custom_ops)[.]so")
  if(NOT PARLEY_TORCH_CUDA)
    list(FILTER torch_libraries EXCLUDE REGEX "/lib(torch_cuda|c10_cuda|torch_nvshmem|caffe2_nvrtc)[^/]*$")
  endif()
  install(FILES ${torch_libraries} DESTINATION "${CMAKE_INSTALL_LIBDIR}/parley")
else()
  set_target_properties(parley PROPERTIES INSTALL_RPATH "${TORCH_ROOT}/lib")
  # The unit hides all home directories from the program (ProtectHome).
  install(CODE "
    if(\"${TORCH_ROOT}/\" MATCHES \"^(/home/|/root/|/run/user/)\")
      message(FATAL_ERROR \"LibTorch lies in a home, ${TORCH_ROOT}, where a service cannot see it: configure with -DPARLEY_INSTALL_LIBTORCH=ON\")
    endif()
  ")
endif()
install(DIRECTORY models DESTINATION "${CMAKE_INSTALL_DATADIR}/parley")
install(FILES config/parley.toml DESTINATION "${CMAKE_INSTALL_SYSCONFDIR}/parley")
install(FILES docs/grafana.json DESTINATION "${CMAKE_INSTALL_DATADIR}/parley")
install(FILES LICENSE README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES packaging/parley.bash DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME parley)
install(FILES packaging/_parley DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
# The unit and the manual name the installation's path, which is known only now.
install(CODE "
  get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
  set(root \"\$ENV{DESTDIR}\${prefix}\")
  set(PARLEY_BIN \"\${prefix}/${CMAKE_INSTALL_BINDIR}\")
  set(PARLEY_ETC \"\${prefix}/${CMAKE_INSTALL_SYSCONFDIR}/parley\")
  foreach(unit IN ITEMS parley parley-gateway parley-worker)
    configure_file(\"${PROJECT_SOURCE_DIR}/packaging/\${unit}.service.in\" \"\${root}/lib/systemd/system/\${unit}.service\" @ONLY)
  endforeach()
  set(manual \"\${root}/${CMAKE_INSTALL_MANDIR}/man1/parley.1\")
  file(MAKE_DIRECTORY \"\${root}/${CMAKE_INSTALL_MANDIR}/man1\")
  execute_process(COMMAND \"\${CMAKE_COMMAND}\" \"-DBINARY=\${root}/${CMAKE_INSTALL_BINDIR}/parley\" -DPARLEY_VERSION=${PROJECT_VERSION}
    \"-DPARLEY_ETC=\${PARLEY_ETC}\" \"-DPARLEY_SHARE=\${prefix}/${CMAKE_INSTALL_DATADIR}/parley\" \"-DPARLEY_DOC=\${prefix}/${CMAKE_INSTALL_DOCDIR}\"
    \"-DTEMPLATE=${PROJECT_SOURCE_DIR}/packaging/parley.1.in\" \"-DOUTPUT=\${manual}\" -P \"${PROJECT_SOURCE_DIR}/cmake/WriteManPage.cmake\" COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS \"Installing: \${manual}\")
")
