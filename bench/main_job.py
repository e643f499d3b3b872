#!/usr/bin/env python3
"""Measures what the main job must hold and prints it as Markdown rows for docs/benchmarks.md.

  bench/main_job.py [--build build/dev] [--rounds 1] [--plans 8] [--out out/bench]

On each of three clusters: measure the rates, then `rounds` times the planned job beside pure data
parallelism, then a sweep over `plans` plans. Takes about 15 minutes on two cores; run it on an
otherwise idle machine.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = [("examples/cluster.yaml", "examples/job.yaml"),
         ("examples/cluster-one-leaf.yaml", "examples/job-one-leaf.yaml"),
         ("bench/clusters/two-wide-servers.yaml", "examples/job.yaml")]


def run(arguments, log):
    print("+ " + " ".join(str(a) for a in arguments), file=sys.stderr, flush=True)
    with open(log, "w", encoding="utf-8") as sink:
        subprocess.run([str(a) for a in arguments], cwd=ROOT, stdout=sink, stderr=sink, check=True)


def result_of(folder):
    return json.loads((folder / "result.json").read_text(encoding="utf-8"))


def spread(values, unit="", digits=2):
    """Median (minimum to maximum)."""
    low, mid, high = min(values), statistics.median(values), max(values)
    return f"{mid:.{digits}f}{unit} ({low:.{digits}f} to {high:.{digits}f})"


def deviation_percent(run_json):
    """Measured against predicted: positive where the run was slower."""
    return 100 * run_json["deviation"]


def row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def compare_rows(name, results):
    plan = results[0]["plan"]["strategy"]
    label = f"tp{plan['tp']} pp{plan['pp']} dp{plan['dp']} mb{plan['micro_batch']}"
    row(f"{name}: speed-up over pure data parallel", ">= 2.0x",
        spread([r["compare"]["speedup"] for r in results], "x"))
    for what, runs in ((label, results), ("pure-dp", [r["compare"] for r in results])):
        row(f"{name}: {what}, step measured", "", spread([r["measured"]["step_time_s"] for r in runs], " s"))
        row(f"{name}: {what}, against predicted", "within 15 %",
            spread([deviation_percent(r) for r in runs], " %", 1))


def sweep_rows(name, result):
    plans = result["sweep"]["plans"]
    measured = [p["measured"]["step_time_s"] for p in plans]
    first = min(plans, key=lambda p: p["predicted"]["step_time_s"])
    row(f"{name}: Spearman over {len(plans)} plans", ">= 0.9", f"{result['sweep']['spearman']:.3f}")
    row(f"{name}: plan ranked first against the best measured", "within 10 %",
        f"{100 * (first['measured']['step_time_s'] / min(measured) - 1):+.1f} %")
    row(f"{name}: largest deviation of the sweep", "",
        f"{max((deviation_percent(p) for p in plans), key=abs):+.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--plans", type=int, default=8)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--out", default="out/bench")
    arguments = parser.parse_args()
    regatta = ROOT / arguments.build / "bin" / "regatta"
    out = ROOT / arguments.out
    out.mkdir(parents=True, exist_ok=True)
    print(time.strftime("%Y-%m-%d, ") + arguments.build)
    row("what", "must hold", "median (range)")
    row("---", "---", "---")
    errors = []
    for cluster_file, job_file in CASES:
        cluster, job = ROOT / cluster_file, ROOT / job_file
        name = cluster.stem
        run([regatta, "measure", cluster], out / f"{name}-measure.log")
        results = []
        for i in range(arguments.rounds):
            folder = out / f"{name}-{i}"
            run([regatta, "run", job, "--cluster", cluster, "--steps", arguments.steps, "--compare", "pure-dp",
                 "--out", folder], f"{folder}.log")
            results.append(result_of(folder))
        if results:
            compare_rows(name, results)
        folder = out / f"{name}-sweep"
        run([regatta, "run", job, "--cluster", cluster, "--steps", 9, "--sweep", arguments.plans,
             "--sweep-steps", 9, "--out", folder], f"{folder}.log")
        sweep = result_of(folder)
        sweep_rows(name, sweep)
        errors += [abs(deviation_percent(p)) for p in sweep["sweep"]["plans"]]
    if errors:
        row(f"median error over {len(errors)} plans", "<= 10 %", f"{statistics.median(errors):.1f} %")


if __name__ == "__main__":
    main()
