# One call a folder: the library regatta::NAME, its unit tests and its micro benchmarks.
#
#   regatta_module(NAME coll SOURCES ring.cc TESTS ring_test.cc BENCHMARKS ring_bench.cc
#                  DEPS core os SYSTEM Threads::Threads)
#
# PROCESSES N runs the tests in N processes instead of one each.
# DEPS is the permission list that tools/check_layers.py compares with the includes.
include(regatta_warnings)

# Every unit test there is, whatever module it belongs to: scripts/deep-check.sh builds this.
if(REGATTA_TESTS)
  add_custom_target(unit_tests)
endif()

# Sources are compiled in groups: most of a compiler's time goes into headers, which a group reads once. In a
# group the names of unnamed namespaces meet, so they differ between the sources of a target.
option(REGATTA_UNITY "Compile the sources of a library or program in groups" ON)

# regatta_unity(TARGET [ALONE SOURCE...]): ALONE are sources whose system headers do not go with others, and those
# that a program may need without the rest of the library, or the rest without them.
function(regatta_unity target)
  cmake_parse_arguments(U "" "" "ALONE" ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${REGATTA_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  # A class that only its source knows may hold types of an unnamed namespace: the warning is for headers.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.c$")
  set_source_files_properties(${sources} ${U_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# A library that is loaded into foreign programs has libstdc++ and libgcc in it. Not under a sanitizer, which has to
# see how they synchronise.
function(regatta_static_runtime target)
  if(NOT REGATTA_SANITIZER)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()

function(regatta_module)
  cmake_parse_arguments(M "" "NAME;PROCESSES" "SOURCES;ALONE;TESTS;BENCHMARKS;DEPS;SYSTEM" ${ARGN})
  list(TRANSFORM M_DEPS PREPEND regatta::)
  set(scope PUBLIC)
  if(M_SOURCES)
    add_library(regatta_${M_NAME} STATIC ${M_SOURCES} ${M_ALONE})
    regatta_warnings(regatta_${M_NAME})
    regatta_unity(regatta_${M_NAME} ALONE ${M_ALONE})
  else()
    set(scope INTERFACE)
    add_library(regatta_${M_NAME} INTERFACE)
  endif()
  add_library(regatta::${M_NAME} ALIAS regatta_${M_NAME})
  target_include_directories(regatta_${M_NAME} ${scope} ${PROJECT_SOURCE_DIR})
  target_link_libraries(regatta_${M_NAME} ${scope} ${M_DEPS} ${M_SYSTEM})
  if(M_TESTS AND REGATTA_TESTS)
    add_executable(${M_NAME}_test ${M_TESTS})
    add_dependencies(unit_tests ${M_NAME}_test)
    regatta_warnings(${M_NAME}_test)
    target_compile_definitions(${M_NAME}_test PRIVATE
      REGATTA_TESTDATA="${CMAKE_CURRENT_SOURCE_DIR}/testdata")
    target_link_libraries(${M_NAME}_test PRIVATE regatta::${M_NAME} GTest::gmock_main)
    # Tests that fork a process which starts threads pass under ThreadSanitizer with this option.
    set(tsan_options die_after_fork=0:suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan_suppressions.txt)
    # A process per test, so that ctest names it; or shares of all tests, where a program takes long to start.
    if(M_PROCESSES)
      foreach(process RANGE 1 ${M_PROCESSES})
        math(EXPR index "${process} - 1")
        add_test(NAME ${M_NAME}.part_${process}_of_${M_PROCESSES} COMMAND ${M_NAME}_test)
        set_tests_properties(${M_NAME}.part_${process}_of_${M_PROCESSES} PROPERTIES TIMEOUT 300 LABELS unit
          ENVIRONMENT "TSAN_OPTIONS=${tsan_options};GTEST_TOTAL_SHARDS=${M_PROCESSES};GTEST_SHARD_INDEX=${index}")
      endforeach()
    else()
      gtest_discover_tests(${M_NAME}_test TEST_PREFIX ${M_NAME}. DISCOVERY_TIMEOUT 60
        PROPERTIES TIMEOUT $<IF:$<BOOL:${REGATTA_SANITIZER}>,900,120> LABELS unit
          ENVIRONMENT TSAN_OPTIONS=${tsan_options})
    endif()
  endif()
  if(M_BENCHMARKS AND REGATTA_BENCHMARKS)
    add_executable(${M_NAME}_bench ${M_BENCHMARKS})
    regatta_warnings(${M_NAME}_bench)
    target_link_libraries(${M_NAME}_bench PRIVATE regatta::${M_NAME} benchmark::benchmark_main)
  endif()
endfunction()
