#!/usr/bin/env bash
# The slow checks: the release build that scripts/quickstart.sh makes without a warning, AddressSanitizer
# with UBSan, ThreadSanitizer (both over every unit test) and clang-tidy. About 40 minutes on two cores, less
# with ccache. Exit status 1 when one failed.
#
#   scripts/deep-check.sh [release] [asan] [tsan] [tidy]     (all four when none is named)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
source scripts/common.sh

# sanitize PRESET [CTEST ARGUMENT...]: every unit test there is, built with this preset.
# ThreadSanitizer of g++ 12 cannot live with the address randomisation of newer kernels, so it is
# turned off for these processes. It does not model fences, and says so (-Wno-tsan): what a fence orders is not
# all that orders data here. One test skips itself under it, lab.LabOfAnOrdinaryUser: a user namespace
# is entered by a process of one thread, and the sanitizer has a thread of its own. What the sanitizer
# must not report about packaged libraries is in cmake/tsan_suppressions.txt; nothing else is left out.
sanitize() {
  local preset=$1 folder plain=()
  shift
  setarch -R true 2>/dev/null && plain=(setarch -R)
  folder=$(build_folder "$preset")
  configure "$preset" "$folder" -DREGATTA_TORCH=ON || return 1
  "${plain[@]}" ninja -C "$folder" -j "$(jobs)" --quiet unit_tests || return 1
  "${plain[@]}" ctest --test-dir "$folder" -L unit -j "$(jobs)" --output-on-failure --timeout 300 "$@"
}

# The optimizer of the release build sees further, and warns where the dev build does not.
release() {
  local folder
  folder=$(build_folder release-strict)
  configure release "$folder" -DREGATTA_WERROR=ON || return 1
  build "$folder" regatta regatta-agent regatta-worker
}

checks=("$@")
[ "${#checks[@]}" -gt 0 ] || checks=(release asan tsan tidy)
failed=0
for check in "${checks[@]}"; do
  say "$check"
  case $check in
    release) release || failed=1 ;;
    asan) sanitize asan || failed=1 ;;
    tsan) sanitize tsan || failed=1 ;;
    tidy) tools/check_tidy.py --build "$(build_folder dev)" || failed=1 ;;
    *) fail "there is no check '$check'; name release, asan, tsan or tidy" ;;
  esac
done
exit "$failed"
