#!/usr/bin/env bash
# The tests that a machine with a CUDA device runs over its real driver; elsewhere they run over one without
# devices. Builds what they need. Exit status 77, with the reason, where there is no driver.
#
#   scripts/gpu-check.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

library=libcuda.so.1
ldconfig -p | grep -q "$library" || { say "skipped: there is no $library on this machine"; exit 77; }
folder=$(build_folder dev)
configure dev "$folder"
build "$folder" coll_test
REGATTA_TEST_CUDA=$library "$folder/bin/coll_test" --gtest_filter='Device*:CudaDriver*'
