#!/usr/bin/env bash
# The slow checks: AddressSanitizer with UBSan, ThreadSanitizer and clang-tidy, each over the modules it
# pays for. About half an hour on two cores, less with ccache. Exit status 1 when one failed.
#
#   scripts/deep-check.sh [asan] [tsan] [tidy]     (all three when none is named)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
source scripts/common.sh

# sanitize PRESET MODULE...: the unit tests of these modules, built without libtorch.
# ThreadSanitizer of g++ 12 cannot live with the address randomisation of newer kernels, so it is
# turned off for these processes.
sanitize() {
  local preset=$1 folder plain=() targets=() names
  shift
  setarch -R true 2>/dev/null && plain=(setarch -R)
  folder=$(build_folder "$preset-no-torch")
  configure "$preset" "$folder" -DREGATTA_TORCH=OFF || return 1
  targets=("${@/%/_test}")
  names=$(IFS='|' && echo "$*")
  "${plain[@]}" ninja -C "$folder" -j "$(jobs)" --quiet "${targets[@]}" || return 1
  "${plain[@]}" ctest --test-dir "$folder" -R "^($names)\\." -L unit -j "$(jobs)" --output-on-failure \
    --timeout 300
}

checks=("$@")
[ "${#checks[@]}" -gt 0 ] || checks=(asan tsan tidy)
failed=0
for check in "${checks[@]}"; do
  say "$check"
  case $check in
    asan) sanitize asan core topo workload os cost wire plan coll report agent || failed=1 ;;
    # The modules that start threads.
    tsan) sanitize tsan os wire coll agent || failed=1 ;;
    tidy) tools/check_tidy.py --build "$(build_folder dev)" || failed=1 ;;
    *) fail "there is no check '$check'; name asan, tsan or tidy" ;;
  esac
done
exit "$failed"
