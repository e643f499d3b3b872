#!/usr/bin/env python3
"""Measures what a prober costs, by the processor time that the kernel books on it, as Markdown rows.

  bench/probe_cost.py [--build build/dev] [--seconds 10] [--period 10ms] [--servers 8] [--nics 1] [CASE...]

CASE: alone (one server, nobody to probe: waking up, the control packet and the report), pair (two servers, a cable between
them: what a real server pays, and the kernel's work on what arrives, which on a real server is booked on nobody), lab
(--servers servers under two leaves and four spines, each switch a namespace: its forwarding is booked on whoever sends).
Without one all three. Run it as root on an otherwise idle machine.
"""
import argparse
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import small_lab

ROOT = pathlib.Path(__file__).resolve().parent.parent


def processor_time(pid):
    """Seconds, as exact as the scheduler knows them: the clock of a process (clock_getcpuclockid)."""
    return time.clock_gettime((~pid << 3) | 2)


def rows(case, pids, seconds, probes):
    time.sleep(2)
    before = {pid: (processor_time(pid), time.monotonic()) for pid in pids}
    time.sleep(seconds)
    shares = []
    for pid, (used, at) in before.items():
        shares.append((processor_time(pid) - used) / (time.monotonic() - at) * 100)
    print(f"| {case} | {len(pids)} | {probes} | {statistics.median(shares):.2f} % | {max(shares):.2f} % |", flush=True)


def addresses(servers, nics):
    """Of each server's NICs: cables stand in the order of servers and NICs, two addresses each (topo/addresses.h)."""
    return [[f"10.64.{2 * (server * nics + nic) // 256}.{2 * (server * nics + nic) % 256}" for nic in range(nics)]
            for server in range(servers)]


def run(command):
    subprocess.run(command, check=True)


def in_namespaces(options, case, servers, folder):
    cluster = folder / f"{case}.yaml"
    cluster.write_text(small_lab.cluster_text(f"cost-{os.getpid()}", servers, "tiers: [leaf], servers_per_leaf: 2", options.nics))
    names = [f"cost-{os.getpid()}-{i}" for i in range(servers)]
    probers = []
    try:
        for name in names:
            run(["ip", "netns", "add", name])
            run(["ip", "-n", name, "link", "set", "lo", "up"])
        if servers == 2:
            for nic in range(options.nics):
                run(["ip", "-n", names[0], "link", "add", f"nic{nic}", "type", "veth", "peer", f"nic{nic}", "netns", names[1]])
            for name, own in zip(names, addresses(servers, options.nics)):
                other = addresses(servers, options.nics)[1 - names.index(name)]
                for nic in range(options.nics):
                    run(["ip", "-n", name, "address", "add", f"{own[nic]}/32", "dev", f"nic{nic}"])
                    run(["ip", "-n", name, "link", "set", f"nic{nic}", "up"])
                    run(["ip", "-n", name, "route", "add", f"{other[nic]}/32", "dev", f"nic{nic}", "src", own[nic]])
        with open(folder / "lines", "w") as lines:
            for i, name in enumerate(names):
                probers.append(subprocess.Popen(["ip", "netns", "exec", name, options.build / "bin/regatta-prober", cluster, "--server",
                                                 f"s{i}", "--period", options.period], stdout=lines))
            rows(case, [one.pid for one in probers], options.seconds, "")
    finally:
        for one in probers:
            one.terminate()
            one.wait()
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)


def in_lab(options, folder):
    cluster = folder / "lab.yaml"
    name = f"cost-{os.getpid()}"
    cluster.write_text(small_lab.cluster_text(name, options.servers, small_lab.two_tiers(options.servers // 2, 4), options.nics))
    regatta = options.build / "bin/regatta"
    with small_lab.lab(regatta, cluster, name):
        with open(folder / "said", "w") as said:
            probe = subprocess.Popen([regatta, "probe", cluster], stdout=said)
        try:
            time.sleep(3)
            pids = [int(pid.name) for pid in pathlib.Path("/proc").glob("[0-9]*")
                    if b"regatta-prober" in (line := (pid / "cmdline").read_bytes()) and name.encode() in line]
            rows("lab", pids, options.seconds, (folder / "said").read_text().split(" probes")[0])
            rows("its collector", [probe.pid], options.seconds, "")
        finally:
            probe.send_signal(signal.SIGINT)
            probe.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--period", default="10ms")
    parser.add_argument("--servers", type=int, default=8)
    parser.add_argument("--nics", type=int, default=1)
    parser.add_argument("cases", metavar="CASE", nargs="*", default=[])
    options = parser.parse_args()
    options.build = options.build.absolute()
    cases = options.cases or ["alone", "pair", "lab"]
    if set(cases) - {"alone", "pair", "lab"}:
        parser.error(f"{cases[0]}: is not alone, pair or lab")
    if os.geteuid() != 0:
        sys.exit("bench/probe_cost.py: network namespaces need root")
    print("| case | processes | probes | of a core, median | most |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            if case == "lab":
                in_lab(options, pathlib.Path(folder))
            else:
                in_namespaces(options, case, 1 if case == "alone" else 2, pathlib.Path(folder))


if __name__ == "__main__":
    main()
