#!/usr/bin/env python3
"""Holds the prober and the locator to their word where nothing is broken and every core is taken: counts who is blamed.

  bench/saturation.py [--build build/dev] [--minutes 30] [--loops 2 per core] [--servers 6]

Brings a lab up, keeps all cores busy with loops of the same priority as the probers, runs `regatta probe` for so long, and prints a Markdown row:
time, probes, those that were lost, verdicts, hosts told as busy, and how busy the cores were. Exit status 1 when anybody was blamed. Run it as root.
"""
import argparse
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import small_lab

ROOT = pathlib.Path(__file__).resolve().parent.parent


def idle_share_of(before, after):
    """Of two first lines of /proc/stat: idle and waiting for input."""
    spent = [int(b) - int(a) for a, b in zip(before.split()[1:9], after.split()[1:9])]
    return (spent[3] + spent[4]) / sum(spent)


def stat():
    return pathlib.Path("/proc/stat").read_text().splitlines()[0]


def end(process):
    process.send_signal(signal.SIGINT)
    process.communicate()


def watch(options, cluster):
    """What `regatta probe` says, by kind of event."""
    told = collections.Counter()
    lost = sent = 0
    begin, before = time.monotonic(), stat()
    probe = subprocess.Popen([options.build / "bin/regatta", "probe", cluster, "--json", "--duration", f"{options.minutes * 60:g}s"],
                             stdout=subprocess.PIPE, text=True)
    try:
        for line in probe.stdout:
            event = json.loads(line)
            kind = event["event"]
            if kind == "begun":
                kind = "blamed" if event["is_fault"] else "host noise"
            told[kind] += 1
            if kind in ("blamed", "elsewhere", "silent"):
                print(f"{time.monotonic() - begin:9.2f} s  {line.rstrip()}", file=sys.stderr, flush=True)
            if kind == "pairs":
                sent = sum(pair["sent"] for pair in event["pairs"])
                lost = sum(pair["lost"] for pair in event["pairs"])
        if probe.wait() != 0:
            sys.exit(f"regatta probe ended with status {probe.returncode}")
    finally:
        if probe.poll() is None:
            end(probe)
    minutes = (time.monotonic() - begin) / 60
    print(f"| {minutes:.1f} min | {sent} | {lost} | {told['blamed']} | {told['host noise']} | {100 * (1 - idle_share_of(before, stat())):.1f} % |",
          flush=True)
    return told["blamed"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--loops", type=int, default=2, help="for each core")
    parser.add_argument("--servers", type=int, default=6)
    options = parser.parse_args()
    options.build = options.build.resolve()
    name = f"saturated-{os.getpid()}"
    regatta = options.build / "bin/regatta"
    with tempfile.TemporaryDirectory() as folder:
        cluster = pathlib.Path(folder) / "cluster.yaml"
        cluster.write_text(small_lab.cluster_text(name, options.servers, small_lab.two_tiers(2, 2)))
        with small_lab.lab(regatta, cluster, name):
            loops = []
            try:
                loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.loops * os.cpu_count())]
                blamed = watch(options, cluster)
            finally:
                for loop in loops:
                    loop.kill()
                    loop.wait()
    sys.exit(1 if blamed else 0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
