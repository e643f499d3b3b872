#!/usr/bin/env python3
"""Measures what looking at the connections of a server each 10 ms costs, as Markdown rows.

  bench/traffic_cost.py [--build build/dev] [--seconds 8] [--servers 3] [--connections 68] [CASE...]

CASE: still (nothing is sent), steps (all connections send at once, 64 KiB each 100 ms, as a training job does), moving (all send all the
time, 1 KiB each 10 ms). Without one all three. The connections of each server go to all others of a lab alike. The cost is the processor
time of `regatta traffic`, which looks at all servers of the lab one after the other, by the number of servers. Run it as root on an otherwise
idle machine.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import small_lab

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = {"still": (0, 0.1), "steps": (65536, 0.1), "moving": (1024, 0.01)}

# The program of one server: it accepts connections from the servers before it, connects to those after it, sends and reads.
SENDER = """
import selectors, socket, sys, time
before, each, size, pause = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
server = socket.create_server(("", 5000), backlog=1024)
print("listens", flush=True)
sys.stdin.readline()
all = [socket.create_connection((address, 5000)) for address in sys.argv[5:] for _ in range(each)]
all += [server.accept()[0] for _ in range(before * each)]
print("connected", flush=True)
ready = selectors.DefaultSelector()
for one in all:
    one.setblocking(False)
    ready.register(one, selectors.EVENT_READ)
due = time.monotonic()
while True:
    for key, _ in ready.select(max(0, due - time.monotonic())):
        try:
            if not key.fileobj.recv(1 << 20): sys.exit()
        except OSError: sys.exit()
    if time.monotonic() < due: continue
    due += pause
    for one in all if size else ():
        try: one.send(b"x" * size)
        except BlockingIOError: pass
        except OSError: sys.exit()
"""


def start(options, name, case, senders):
    size, pause = CASES[case]
    each = options.connections // (options.servers - 1)
    # Cables stand in the order of servers, two addresses each (topo/addresses.h).
    addresses = [f"10.64.0.{2 * server}" for server in range(options.servers)]
    for server in range(options.servers):
        arguments = [server, each, size, pause, *addresses[server + 1:]]
        senders.append(subprocess.Popen([options.build / "bin/regatta", "lab", "exec", "--lab", name, f"s{server}", "--", sys.executable, "-c",
                                         SENDER, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    for said in ("listens", "connected"):
        for one in senders:
            if one.stdout.readline().strip() != said:
                sys.exit("bench/traffic_cost.py: a sender has ended")
        for one in senders if said == "listens" else ():
            one.stdin.write("\n")
            one.stdin.flush()


def row(options, name, case):
    senders = []
    try:
        start(options, name, case, senders)
        time.sleep(1)
        done = subprocess.run([options.build / "bin/regatta", "traffic", "--lab", name, "--duration", f"{options.seconds:g}s", "--json"],
                              capture_output=True, text=True, check=True)
        view = json.loads(done.stdout.splitlines()[-1])
        print(f"| {case} | {options.servers} | {view['connections'] // options.servers} | {100 * view['cost'] / options.servers:.2f} % |",
              flush=True)
    finally:
        for one in senders:
            one.terminate()
        for one in senders:
            one.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--connections", type=int, default=68)
    parser.add_argument("cases", metavar="CASE", nargs="*", default=[])
    options = parser.parse_args()
    options.build = options.build.absolute()
    if set(options.cases) - set(CASES):
        parser.error(f"{options.cases[0]}: is not {', '.join(CASES)}")
    if os.geteuid() != 0:
        sys.exit("bench/traffic_cost.py: a lab needs root")
    name = f"traffic-cost-{os.getpid()}"
    print("| case | servers | connections of each | of a core for each server |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        cluster = pathlib.Path(folder) / "cluster.yaml"
        cluster.write_text(small_lab.cluster_text(name, options.servers, small_lab.two_tiers(3, 2)))
        with small_lab.lab(options.build / "bin/regatta", cluster, name):
            for case in options.cases or CASES:
                row(options, name, case)


if __name__ == "__main__":
    main()
