#!/usr/bin/env python3
"""How fast the planner searches: GPT-3 175B on 4,096 A100, batches of 4,096, every form, with and without bounds.

Prints medians and spreads over ROUNDS runs: points, seconds, evaluations a second; and whether both rank the same plans.

    bench/plan_search.py [ROUNDS]
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

REGATTA = os.environ.get("REGATTA_BIN", "build/dev/bin") + "/regatta"
CLUSTER = """name: a100-4096
server_types:
  dgx: {preset: dgx-a100-80g}
fabric:
  tiers: [leaf]
servers: {count: 512, type: dgx}
"""
JOB = "name: gpt3\nmodel: {preset: gpt3-175b}\nglobal_batch: 4096\nprecision: bf16\n"


def plan(folder, cores, *flags):
    command = ["taskset", "-c", cores, REGATTA, "plan", folder / "job.yaml", "--cluster", folder / "cluster.yaml", "--extended-search",
               "--json", *flags]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "cluster.yaml").write_text(CLUSTER)
        (folder / "job.yaml").write_text(JOB)
        for cores in ("0", "0-1"):
            ranked = []
            for flags in (("--exhaustive",), ()):
                runs = [plan(folder, cores, *flags) for _ in range(rounds)]
                times = sorted(run["search_time_s"] for run in runs)
                ranked.append(runs[0]["ranked"])
                print(f"cores {cores}, {'exhaustive' if flags else 'with bounds'}: {runs[0]['evaluated']} strategies in "
                      f"{statistics.median(times):.3f} s ({times[0]:.3f} to {times[-1]:.3f}), "
                      f"{runs[0]['evaluated'] / statistics.median(times) / 1e6:.2f} million a second")
            print(f"cores {cores}: the same plans: {ranked[0] == ranked[1]}")


if __name__ == "__main__":
    main()
