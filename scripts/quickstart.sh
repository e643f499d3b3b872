#!/usr/bin/env bash
# The main job on one machine: installs, builds, measures an emulated cluster, plans a training job
# for it, runs it beside pure data parallelism, and writes the report. A second run rebuilds only
# what changed and measures nothing again.
#
#   scripts/quickstart.sh          (REGATTA_PRESET=dev|release chooses the build)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cluster=$root/examples/cluster.yaml
job=$root/examples/job.yaml
out=$root/out/quickstart

"$root/scripts/install.sh"

# A dev build that is there already is as good as a release build and costs nothing.
preset=${REGATTA_PRESET:-$([ -e "$root/build/dev/CMakeCache.txt" ] && echo dev || echo release)}
folder=$(build_folder "$preset")
say "build: $folder (the first time takes minutes, later only what changed)"
configure "$preset" "$folder"
build "$folder" regatta regatta-agent regatta-worker regatta_coll_c regatta-controller regatta-node-agent
PATH=$folder/bin:$PATH
cd "$root"

# In somebody else's checkout rates and report go to a folder of the user's own.
if ! { mkdir -p "$out" && [ -w "$out" ] && [ -w "$root/examples" ]; } 2>/dev/null; then
  out=$(mktemp -d)
  cp "$cluster" "$out/cluster.yaml"
  cluster=$out/cluster.yaml
fi

measured=${cluster%.yaml}.measured.json
if [ ! -e "$measured" ] || [ "$cluster" -nt "$measured" ]; then
  say "measure: the real rates of the emulated cluster"
  regatta measure "$cluster"
fi
say "run: plan, train, compare with pure data parallelism"
regatta run "$job" --cluster "$cluster" --compare pure-dp --compare-steps 10 --out "$out"
say "program: $folder/bin/regatta"
say "report: open $out/report.html in a browser (and $out/trace.json in ui.perfetto.dev)"
