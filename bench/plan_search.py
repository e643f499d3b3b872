#!/usr/bin/env python3
"""How fast the planner searches, every form, with and without bounds: GPT-3 175B on 4,096 A100 in batches of 4,096, or Qwen3 235B,
whose experts fold over tensor, context and data ranks, on 256 H100 in batches of 1,024.

Prints medians and spreads over ROUNDS runs: points, seconds, evaluations a second; and whether both rank the same plans.

    bench/plan_search.py [ROUNDS [gpt3 | qwen3]]
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

REGATTA = os.environ.get("REGATTA_BIN", "build/dev/bin") + "/regatta"
CLUSTER = """name: cluster
server_types:
  dgx: {{preset: {server}}}
fabric:
  tiers: [leaf]
servers: {{count: {servers}, type: dgx}}
"""
JOB = "name: job\nmodel: {{preset: {model}}}\nglobal_batch: {batch}\nprecision: bf16\n"
PROBLEMS = {
    "gpt3": {"model": "gpt3-175b", "batch": 4096, "server": "dgx-a100-80g", "servers": 512},
    "qwen3": {"model": "qwen3-235b-a22b", "batch": 1024, "server": "dgx-h100", "servers": 32},
}


def plan(folder, cores, *flags):
    command = ["taskset", "-c", cores, REGATTA, "plan", folder / "job.yaml", "--cluster", folder / "cluster.yaml", "--extended-search",
               "--json", *flags]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    problem = PROBLEMS[sys.argv[2] if len(sys.argv) > 2 else "gpt3"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "cluster.yaml").write_text(CLUSTER.format(**problem))
        (folder / "job.yaml").write_text(JOB.format(**problem))
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
