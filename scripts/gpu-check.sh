#!/usr/bin/env bash
# Checks on a machine with a CUDA device: the semantics of the driver that the tests rely on, and each part of GPU
# sharing. Builds the programs of the checks and writes docs/gpu-results.md. Exit status 1 when a part failed; 77, with
# the reason, when there is no driver or no device.
#
#   scripts/gpu-check.sh                  on the real driver
#   scripts/gpu-check.sh --stand-in       the same on the device of the tests, to see that the check works; writes nothing
#   ... --seconds N --only PART,...       how long each program works (10); some parts, which are then not written
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

results=(--results "$root/docs/gpu-results.md")
for word in "$@"; do
  case $word in
    --stand-in | --only*) results=() ;;
  esac
done
if [[ ! " $* " == *" --stand-in "* ]] && ! ldconfig -p | grep -q libcuda.so.1; then
  say "skipped: there is no libcuda.so.1 on this machine"
  exit 77
fi
folder=$(build_folder dev)
configure dev "$folder"
build "$folder" comm_test standin_cuda_test hook_test regatta regatta-gpu-work cudart_test attack_programs
[[ " $* " == *" --stand-in "* ]] || "$root/scripts/cuda-runtime.sh" "$folder/third_party/cuda-runtime"
exec python3 "$root/tests/gpu_check/gpu_check.py" "$folder" "${results[@]}" "$@"
