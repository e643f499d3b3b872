#!/usr/bin/env bash
# Installs what is missing, builds the dev preset and runs every test: unit tests first, then system
# tests (the real programs; the lab where this user may build one), then those in a virtual machine.
#
#   scripts/test.sh [CTEST ARGUMENT...]      e.g. scripts/test.sh -R coll
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$root/scripts/install.sh"
folder=$(build_folder dev)
say "build: $folder"
configure dev "$folder"
build "$folder"
"$root/scripts/guest-kernel.sh" "$folder/guest-kernel" || say "no kernel for a guest: its tests will be skipped"

"$root/scripts/cuda-runtime.sh" "$folder/third_party/cuda-runtime"

run_tests() {
  ctest --test-dir "$folder" --output-on-failure --timeout 300 "$@" </dev/null
}
status=0
say "unit tests"
# One more at a time than there are processors, for many wait for each other's deadlines. A failed test is
# tried once more, and each try is told.
run_tests -LE 'system|guest|timed' -j "$(($(jobs) + 1))" --repeat until-pass:2 "$@" || status=1
say "timed tests"
# They hold real programs to times, and a machine that is busy for a moment is late: a failed test is
# tried twice more, and each try is told.
run_tests -L timed --repeat until-pass:3 "$@" || status=1
say "system tests"
# Three at a time, for most of them wait; those that measure run alone (RUN_SERIAL). Tried again as the timed ones.
run_tests -L system -j 3 --repeat until-pass:3 "$@" || status=1
say "guest tests"
# One at a time: an emulated machine keeps its deadlines only with all of the processors. Tried again as the
# timed ones.
run_tests -L guest --repeat until-pass:3 "$@" || status=1
if [ "$status" -eq 0 ]; then say "every test passed"; else say "tests failed"; fi
exit "$status"
