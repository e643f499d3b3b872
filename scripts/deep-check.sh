#!/usr/bin/env bash
# The slow checks: the release build that scripts/quickstart.sh makes without a warning, AddressSanitizer
# with UBSan, ThreadSanitizer (both over every unit test and the system tests of GPUs of other servers), every
# labelled fault of the network, and clang-tidy. About an hour on two cores, less with ccache. Exit status 1 when
# one failed.
#
#   scripts/deep-check.sh [release] [asan] [tsan] [faults] [tidy]     (all five when none is named)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
source scripts/common.sh

# sanitize PRESET [CTEST ARGUMENT...]: every unit test there is and the system tests of label sanitized, built with
# this preset. cmake/regatta_sanitizers.cmake says how programs are started, and where reports go.
# ThreadSanitizer of g++ 12 does not run under the address randomisation of newer kernels, so setarch turns that
# off for these processes. It does not model fences; -Wno-tsan silences its warning about them. The test
# lab.LabOfAnOrdinaryUser skips itself under it: only a process of one thread may enter a user namespace, and the
# sanitizer adds a thread. cmake/tsan_suppressions.txt lists the reports about packaged libraries that are ignored.
sanitize() {
  local preset=$1 folder plain=()
  shift
  setarch -R true 2>/dev/null && plain=(setarch -R)
  folder=$(build_folder "$preset")
  configure "$preset" "$folder" -DREGATTA_TORCH=ON || return 1
  "${plain[@]}" ninja -C "$folder" -j "$(jobs)" --quiet unit_tests || return 1
  "${plain[@]}" ctest --test-dir "$folder" -L 'unit|sanitized' -j "$(jobs)" --output-on-failure --timeout 300 "$@"
}

# The optimizer of the release build sees further, and warns where the dev build does not.
release() {
  local folder
  folder=$(build_folder release-strict)
  configure release "$folder" -DREGATTA_WERROR=ON || return 1
  build "$folder" regatta regatta-agent regatta-worker
}

# The tests run a part of the long files.
faults() {
  local folder
  folder=$(build_folder dev)
  configure dev "$folder"
  build "$folder" regatta-fault-suite
  (cd bench/faults && "$folder/bin/regatta-fault-suite" single.txt double.txt healthy.txt settings.txt lasting.txt &&
    "$folder/bin/regatta-fault-suite" --traces double.txt)
}

checks=("$@")
[ "${#checks[@]}" -gt 0 ] || checks=(release asan tsan faults tidy)
failed=0
for check in "${checks[@]}"; do
  say "$check"
  case $check in
    release) release || failed=1 ;;
    asan) sanitize asan || failed=1 ;;
    tsan) sanitize tsan || failed=1 ;;
    faults) faults || failed=1 ;;
    tidy) tools/check_tidy.py --build "$(build_folder dev)" || failed=1 ;;
    *) fail "there is no check '$check'; name release, asan, tsan, faults or tidy" ;;
  esac
done
exit "$failed"
