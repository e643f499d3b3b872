# Manual pages, installed files and Debian packages: docs/install.md.
#   regatta         the programs, the GPU hook library, manual pages, completion and examples
#   libregatta-coll the C library of the collectives with its header and pkg-config file
#   regatta-torch   the training worker and the backend of torch.distributed
set(programs regatta regatta-agent regatta-prober regatta-bench-rank regatta-controller regatta-node-agent regatta-supervisor regatta-device-reader)
install(TARGETS ${programs} RUNTIME COMPONENT regatta)
set(components regatta coll)
set(packaged ${programs} regatta_gpu_hook regatta_replacement_cuda regatta_replacement_nvml regatta_coll_c)
if(TARGET regatta-worker)
  install(TARGETS regatta-worker RUNTIME COMPONENT torch)
  list(APPEND components torch)
  list(APPEND packaged regatta-worker)
endif()
if(TARGET torch_backend)
  list(APPEND packaged torch_backend)
endif()

set(data ${PROJECT_SOURCE_DIR}/cmake/packages)
install(FILES ${data}/regatta.bash DESTINATION share/bash-completion/completions RENAME regatta COMPONENT regatta)
# Not enabled by their installation.
install(FILES ${data}/regatta-heal.service ${data}/regatta-probe.service ${data}/regatta-prober.service
  ${data}/regatta-controller.service ${data}/regatta-node-agent.service
  DESTINATION lib/systemd/system COMPONENT regatta)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION share/doc/regatta COMPONENT regatta)
get_target_property(REGATTA_COLL_VERSION regatta_coll_c VERSION)
configure_file(${data}/regatta-coll.pc.in ${PROJECT_BINARY_DIR}/regatta-coll.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/regatta-coll.pc DESTINATION lib/pkgconfig COMPONENT coll)

# A page for regatta and for each of its commands, from their --help.
find_package(Python3 COMPONENTS Interpreter)
set(man ${PROJECT_BINARY_DIR}/man)
add_custom_command(OUTPUT ${man}/regatta.1
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/make_man_pages.py $<TARGET_FILE:regatta> ${man}
  DEPENDS regatta ${PROJECT_SOURCE_DIR}/tools/make_man_pages.py VERBATIM)
add_custom_target(man DEPENDS ${man}/regatta.1)
install(DIRECTORY ${man}/ DESTINATION share/man/man1 COMPONENT regatta OPTIONAL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PACKAGE_CONTACT "The developers of Regatta <regatta@example.org>")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Libraries of these packages and the stand-ins that the linker had for NVIDIA's.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/regatta/runtime/comm
  ${PROJECT_BINARY_DIR}/bin ${PROJECT_BINARY_DIR}/regatta/gpu/sharing/internal/hook)
foreach(component ${components})
  string(TOUPPER ${component} upper)
  set(package regatta-${component})
  set(section admin)
  if(component STREQUAL regatta)
    set(package regatta)
  elseif(component STREQUAL coll)
    set(package libregatta-coll)
    set(section libs)
  endif()
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/${package} RENAME copyright COMPONENT ${component})
  install(FILES ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION share/doc/${package} COMPONENT ${component})
endforeach()
set(CPACK_COMPONENT_REGATTA_DESCRIPTION
  "AI computing platform for GPU clusters\n Plans training, runs it, observes and heals the network, shares GPUs.")
set(CPACK_COMPONENT_COLL_DESCRIPTION
  "collectives of Regatta, C library\n Collectives over shared memory, RDMA and TCP, with header and pkg-config file.")
set(CPACK_COMPONENT_TORCH_DESCRIPTION
  "training worker and torch.distributed backend of Regatta\n The rank program of regatta run, and the Python module regatta_torch.")
set(CPACK_DEBIAN_REGATTA_PACKAGE_RECOMMENDS regatta-torch)
set(CPACK_DEBIAN_REGATTA_PACKAGE_SUGGESTS "bash-completion, libibverbs1")
set(CPACK_DEBIAN_COLL_PACKAGE_SUGGESTS libibverbs1)
set(CPACK_DEBIAN_TORCH_PACKAGE_DEPENDS
  "regatta (= ${PROJECT_VERSION}), libregatta-coll (= ${PROJECT_VERSION}), python3-torch")
include(CPack)

add_custom_target(programs DEPENDS ${packaged} man)
add_custom_target(packages COMMAND ${CMAKE_CPACK_COMMAND} --config ${PROJECT_BINARY_DIR}/CPackConfig.cmake
  DEPENDS programs WORKING_DIRECTORY ${PROJECT_BINARY_DIR} USES_TERMINAL VERBATIM)
