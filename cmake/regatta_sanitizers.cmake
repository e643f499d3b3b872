# Tests that start programs, in the builds of the presets asan and tsan: the programs load libraries of ours
# before any other, and some programs are not ours.
#
#   regatta_sanitized_tests(system.gpu_remote)   the named tests, and those of the folder's GoogleTest programs
#
# The runtime of the sanitizer is preloaded, so that it comes before the C library in every program, also in a
# shell or Python; the hook may stand before it. Reports go to files, for the programs that make them may be
# killed, or have no output: the test sanitizer.check comes after all others and fails when there is one.
set(REGATTA_SANITIZER "")
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=(address|thread)")
  set(REGATTA_SANITIZER ${CMAKE_MATCH_1})
endif()
if(NOT REGATTA_SANITIZER OR NOT REGATTA_TESTS)
  function(regatta_sanitized_tests)
  endfunction()
  return()
endif()

set(reports ${PROJECT_BINARY_DIR}/sanitizer_reports)
set(options log_path=${reports}/report)
if(REGATTA_SANITIZER STREQUAL "address")
  set(runtime libasan.so)
  list(APPEND environment
    ASAN_OPTIONS=verify_asan_link_order=0:${options}
    UBSAN_OPTIONS=print_stacktrace=1:${options}
    LSAN_OPTIONS=print_suppressions=0:suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan_suppressions.txt)
else()
  set(runtime libtsan.so)
  # As regatta_module() has it.
  list(APPEND environment
    TSAN_OPTIONS=die_after_fork=0:suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan_suppressions.txt:${options})
endif()
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${runtime}
  OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
file(REAL_PATH ${path} path)
# ThreadSanitizer starts when code that was compiled with it is loaded: it ends a shell, which has none.
if(REGATTA_SANITIZER STREQUAL "thread")
  set(start ${PROJECT_BINARY_DIR}/sanitizer_start)
  file(WRITE ${start}.c "extern int regatta_sanitizer_start;\n")
  execute_process(COMMAND ${CMAKE_C_COMPILER} -shared -fPIC -fsanitize=thread ${start}.c -o ${start}.so
    COMMAND_ERROR_IS_FATAL ANY)
  string(PREPEND path "${start}.so:")
endif()
list(APPEND environment LD_PRELOAD=${path} REGATTA_SANITIZER=${REGATTA_SANITIZER})
set(REGATTA_SANITIZER_ENVIRONMENT ${environment})
configure_file(${CMAKE_CURRENT_LIST_DIR}/sanitizer_tests.cmake.in ${PROJECT_BINARY_DIR}/sanitizer_tests.cmake @ONLY)

foreach(step begin check)
  add_test(NAME sanitizer.${step}
    COMMAND ${CMAKE_COMMAND} -D FOLDER=${reports} -D STEP=${step} -P ${CMAKE_CURRENT_LIST_DIR}/sanitizer_reports.cmake)
  set_tests_properties(sanitizer.${step} PROPERTIES LABELS unit)
endforeach()
set_tests_properties(sanitizer.begin PROPERTIES FIXTURES_SETUP sanitizer_reports)
set_tests_properties(sanitizer.check PROPERTIES FIXTURES_CLEANUP sanitizer_reports)

function(regatta_sanitized_tests)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${PROJECT_BINARY_DIR}/sanitizer_tests.cmake)
  foreach(test IN LISTS ARGN)
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT ${REGATTA_SANITIZER_ENVIRONMENT})
    set_property(TEST ${test} APPEND PROPERTY FIXTURES_REQUIRED sanitizer_reports)
  endforeach()
endfunction()
