# Read by ctest: tests that measure time or fill all processors run alone, for they and others would
# disturb each other. They carry the label "timed": scripts/test.sh tries them again when they fail.
# gtest_discover_tests() leaves a list of names for each program.
foreach(test IN LISTS sharing_test_TESTS gpu_time_test_TESTS attacks_test_TESTS gpu_swap_test_TESTS over_commit_test_TESTS hook_test_TESTS comm_test_TESTS bench_test_TESTS)
  if(test MATCHES "\\.(CudaSwapTest|Engines|OverCommit|LaunchGate|TimeShares|TimeAttack|DescriptorAttack|[A-Za-z]*Storm|Idleness|CompressorInAutomaticMode|PlannedPorts)\\.|\\.ALeaseKeepsMemoryThereAndEndsWithAPause$")
    set_tests_properties("${test}" PROPERTIES RUN_SERIAL ON LABELS "unit;timed")
  endif()
endforeach()
