#!/usr/bin/env python3
"""Cuts the rate of random cables of a lab and lets `regatta rates probe` name them, as a JSON line a trial and a summary.

  bench/slow_links.py [--build build/dev] [--trials 20] [--seed 1] [--slow 1] [--learn-paths] [--servers 4] [--rate 100Mbps]

A trial cuts --slow cables to 20 to 60 % of their rate (0: none). It is right when exactly these cables are named, both
directions. `share`: the busiest direction of a cable, from the counters of the kernel before and after, over its rate
and the time between them. Run it as root on an otherwise idle machine.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

import small_lab

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Lab:
    def __init__(self, options, folder):
        self.binary = ROOT / options.build / "bin/regatta"
        self.name = f"slow-{os.getpid()}"
        cluster = folder / "cluster.yaml"
        text = small_lab.cluster_text(self.name, options.servers, "tiers: [leaf, spine], servers_per_leaf: 2, spines: 2, uplink: " + options.rate)
        cluster.write_text(text.replace("rate: 1Gbps", f"rate: {options.rate}"))
        self.regatta("lab", "up", cluster)

    def regatta(self, *arguments, statuses=(0,)):
        done = subprocess.run([self.binary, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode not in statuses:
            raise SystemExit(f"regatta {' '.join(map(str, arguments))}: {done.stderr}")
        return done.stdout

    def links(self):
        """(name, bits per second, bytes sent by its two ends) of each cable."""
        status = json.loads(self.regatta("lab", "status", "--lab", self.name, "--json"))
        return [(one["name"], 8 * one["rate_Bps"], one["sent_by_a_bytes"], one["sent_by_b_bytes"]) for one in status["labs"][0]["links"]]


def trial(lab, chance, options):
    before = lab.links()
    rates = {name: rate for name, rate, _, _ in before}
    cut = {name: round(rates[name] * chance.uniform(0.2, 0.6)) for name in chance.sample(sorted(rates), options.slow)}
    for name, rate in cut.items():
        lab.regatta("lab", "fault", "slow", name, f"{rate}bps", "--lab", lab.name)
    begin = time.monotonic()
    learns = ["--learn-paths"] if options.learn_paths else []
    events = [json.loads(line) for line in
              lab.regatta("rates", "probe", "--lab", lab.name, "--json", *learns, statuses=(0, 1)).splitlines()]
    seconds = time.monotonic() - begin
    slow = [event for event in events if event["event"] == "slow"]
    summary = events[-1]
    measuring = summary["seconds"] + sum(event["seconds"] for event in events if event["event"] == "learned")
    moved = [(after[i] - was[i]) * 8 / (rates[was[0]] * measuring) for was, after in zip(before, lab.links()) for i in (2, 3)]
    lab.regatta("lab", "fault", "clear", "--lab", lab.name)
    named = sorted(event["cable"] for event in slow)
    healthy = [abs(link["at_least_bps"] / link["described_bps"] - 1) for event in events if event["event"] == "rates"
               for link in event["links"] if link["is_measured"] and not any(link["link"].startswith(name + " ") for name in cut)]
    return {"right": named == sorted(list(cut) * 2), "cut": cut, "named": named, "seconds": round(seconds, 2),
            "errors": [round(event["measured_bps"] / cut[event["cable"]] - 1, 4) for event in slow if event["cable"] in cut],
            "healthy_error": round(max(healthy), 4), "share": round(max(moved), 4)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slow", type=int, default=1)
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--rate", default="100Mbps")
    parser.add_argument("--learn-paths", action="store_true")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(options, pathlib.Path(folder))
        try:
            trials = []
            for _ in range(options.trials):
                trials.append(trial(lab, chance, options))
                print(json.dumps(trials[-1]), flush=True)
        finally:
            lab.regatta("lab", "down", lab.name)
    errors = [abs(error) for one in trials for error in one["errors"]]
    print(json.dumps({
        "right": sum(one["right"] for one in trials), "of": len(trials),
        "seconds_median": statistics.median(one["seconds"] for one in trials), "seconds_most": max(one["seconds"] for one in trials),
        "error_median": statistics.median(errors) if errors else None, "error_most": max(errors) if errors else None,
        "healthy_error_most": max(one["healthy_error"] for one in trials), "share_most": max(one["share"] for one in trials)}))


if __name__ == "__main__":
    main()
