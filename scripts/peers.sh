#!/usr/bin/env bash
# Installs what regatta is compared with, from Debian's packages, and builds the programs that do it, beside
# `regatta`: the collective libraries of `regatta bench coll --vs` (OpenMPI, MPICH, Gloo) and the simulators SimGrid and ns-3.
#
#   scripts/peers.sh          (REGATTA_PRESET=dev|release chooses the build)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$root/scripts/install.sh" "$root/scripts/packages.txt" "$root/bench/peers/packages.txt"
preset=${REGATTA_PRESET:-$([ -e "$root/build/dev/CMakeCache.txt" ] && echo dev || echo release)}
folder=$(build_folder "$preset")
configure "$preset" "$folder"
build "$folder" regatta peers
say "try: $folder/bin/regatta bench coll all_reduce --sizes 64M --vs openmpi,mpich,gloo"
