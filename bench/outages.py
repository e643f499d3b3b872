#!/usr/bin/env python3
"""Measures for how long traffic stands still when parts of a fabric break, and prints it as Markdown rows.

  bench/outages.py [--build build/dev] [--trials 100] [--cluster bench/clusters/heal-2x4.yaml] [--healer own|frr|bfd|none]
                   [--verdicts small|probe] [--keep FILE] [FAULT...]

FAULT: upstream (a leaf's end of its uplink goes off), far-end (the spine's end of it does), downstream (a spine's end of its
link down does), silent (a link drops all in one direction), black-hole (a spine forwards nothing, its control plane goes on).
Without one all of them. A trial is 16 flows of 1,000 packets/s; its outage is the longest silence, beyond the period, of any flow that
meets the damage, by the kernel's times of arrival. Beside it a control flow over a loopback, from the same sender: a trial in
which it was silent for more than 2 ms is counted, but also left out in the second row. "With loss": silences in which a packet was
lost; a sender that came late is none. "Kernel": how long the kernel took to break it (it switches an interface off before it tells
anybody, and waits for its other processors in between); "beyond": the silence with loss less that, which is the healer's part. What gives no sign is found by a small prober of the harness, or, with --verdicts probe, by
`regatta probe --heal`. frr and bfd: FRR in the switches'
namespaces instead of `regatta heal` (bench/peers/frr.py). Run it as root on an otherwise idle machine.
"""
import argparse
import json
import math
import pathlib
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench" / "peers"))
FAULTS = ["upstream", "far-end", "downstream", "silent", "black-hole"]
NEEDS_PROBES = {"silent", "black-hole"}
LATE_MS = 2.0


def percentile(values, share):
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def row(name, fault, trials):
    if not trials:
        return f"| {name} | {fault} | 0 |" + " - |" * 10
    outages = [one["outage_ms"] for one in trials]
    return (f"| {name} | {fault} | {len(trials)} | {percentile(outages, 0.5):.2f} | {percentile(outages, 0.99):.2f} | "
            f"{max(outages):.2f} | {percentile([one['with_loss_ms'] for one in trials], 0.99):.2f} | "
            f"{percentile([one['against_ms'] for one in trials], 0.99):.2f} | {max(one['lost_in_a_row'] for one in trials)} | {sum(one['healthy_moved'] for one in trials)} | "
            f"{max(one['control_ms'] for one in trials):.2f} | {percentile([one['kernel_ms'] for one in trials], 0.99):.2f} | "
            f"{percentile([max(0, one['with_loss_ms'] - one['kernel_ms']) for one in trials], 0.99):.2f} |")


class Own:
    """`regatta heal`, in real time priority as a switch's control plane has its own processor."""

    def __init__(self, program, lab, keep):
        self.process = subprocess.Popen(["chrt", "-r", "20", program, "heal", "--lab", lab, "--clean", "600ms", "--clean-max",
                                         "600ms", "--json"], stdout=open(keep + ".heal" if keep else "/dev/null", "w"))
        time.sleep(0.5)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(10)


class Probe:
    """`regatta probe --heal` and its probers: they have a processor of their own on real servers too."""

    def __init__(self, program, cluster, keep):
        self.kept = open(keep + ".probe" if keep else "/dev/null", "w")
        self.process = subprocess.Popen([program, "probe", cluster, "--heal", "--json"], text=True, stdout=subprocess.PIPE)
        self.found = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        time.sleep(3)
        if self.process.poll() is not None:
            raise SystemExit("regatta probe did not start")
        children = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True).stdout.split()
        for pid in [str(self.process.pid), *children]:
            # The probers are in a control group of the lab, where the kernel may allow no real time.
            if subprocess.run(["chrt", "-a", "-r", "-p", "20", pid], capture_output=True).returncode != 0:
                subprocess.run(["renice", "-n", "-20", "-p", pid], capture_output=True)

    def read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "begun":
                self.found.append(event)
                self.kept.write(json.dumps({"heard_s": time.monotonic(), **event}) + "\n")
                self.kept.flush()

    def tell(self):
        names = [f"{one['culprit']} ({one['symptom']})" for one in self.found]
        self.found = []
        return ", ".join(f"{names.count(name)} x {name}" for name in sorted(set(names)))

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(10)


class Nobody:
    def end(self):
        pass

    def tell(self):
        return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--cluster", default=str(ROOT / "bench" / "clusters" / "heal-2x4.yaml"))
    parser.add_argument("--healer", choices=["own", "frr", "bfd", "none"], default="own")
    parser.add_argument("--verdicts", choices=["small", "probe"], default="small")
    parser.add_argument("--keep", help="file for one line of JSON a trial; FILE.heal gets what the healer did, FILE.probe what was found")
    parser.add_argument("faults", nargs="*", metavar="FAULT")
    options = parser.parse_args()
    for fault in options.faults:
        if fault not in FAULTS:
            parser.error(f"there is no fault {fault}; choose one of {', '.join(FAULTS)}")
    programs = ROOT / options.build / "bin"
    lab = json.loads(subprocess.run([programs / "regatta", "lab", "up", options.cluster, "--json"], check=True,
                                    capture_output=True, text=True).stdout)
    name = lab["name"]
    healer = Nobody()
    probe = Nobody()
    try:
        if options.healer == "own":
            healer = Own(programs / "regatta", name, options.keep)
        elif options.healer in ("frr", "bfd"):
            import frr
            healer = frr.Frr(programs / "regatta", lab, with_bfd=options.healer == "bfd")
        print("| healer | fault | trials | outage p50 ms | p99 | max | with loss p99 | other direction p99 | lost in a row | healthy moved | control max | kernel p99 | beyond p99 |")
        print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
        for fault in options.faults or FAULTS:
            command = [programs / "regatta-outages", name, fault, str(options.trials), "--rest", "0.8"]
            if options.healer == "own" and fault in NEEDS_PROBES and options.verdicts == "small":
                command += ["--report", lab["folder"] + "/heal.sock"]
            if options.healer == "own" and options.verdicts == "probe":
                # The locator calls a fault over after a second without a loss; then the healer's clean period begins.
                command[-2:] = ["--rest", "3"]
                if isinstance(probe, Nobody):
                    probe = Probe(programs / "regatta", options.cluster, options.keep)
            if options.healer in ("frr", "bfd"):
                # Long enough for a hold timer to end, and for sessions to come back.
                command[-2:] = ["--hold", "6" if fault in NEEDS_PROBES else "1", "--rest", "6", "--reorder", "yes"]
            done = subprocess.run(command, capture_output=True, text=True)
            trials = [json.loads(line) for line in done.stdout.splitlines()]
            if options.keep:
                with open(options.keep, "a") as file:
                    file.writelines(json.dumps({"healer": options.healer, **one}) + "\n" for one in trials)
            print(row(options.healer, fault, trials))
            if verdicts := probe.tell():
                print(f"<!-- {fault}: {verdicts} -->")
            quiet = [one for one in trials if one["control_ms"] <= LATE_MS]
            print(row(options.healer, f"{fault}, control on time", quiet), flush=True)
            if done.returncode != 0:
                print(done.stderr.strip(), file=sys.stderr)
    finally:
        probe.end()
        healer.end()
        subprocess.run([programs / "regatta", "lab", "down", name], capture_output=True)


if __name__ == "__main__":
    main()
