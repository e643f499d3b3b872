#!/usr/bin/env bash
# Installs the collective libraries that `regatta bench coll --vs` compares with (OpenMPI, MPICH, Gloo, from
# Debian's packages) and builds the programs that time them, beside `regatta`.
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
