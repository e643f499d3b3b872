#!/usr/bin/env python3
"""How soon a killed `regatta heal` goes on: in a lab, with two faults held, the process that heals is killed again and again.

  bench/healer_restart.py [--build build/dev] [--trials 20]

It prints, over all kills, the time until the next process holds the same withdrawals, and until a fault that is reported right after the kill is out of
the routes. Fails when a route or a held fault was lost.
"""
import argparse
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import small_lab


def status(regatta, name):
    return json.loads(subprocess.run([regatta, "lab", "status", name, "--json"], capture_output=True, text=True, check=True).stdout)["labs"][0]


def process_that_heals(name):
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if b"heal" in words and f"--lab={name}".encode() in words:
            return int(entry.name)
    raise SystemExit("no process heals")


def next_hops(regatta, name, switches):
    """Of each route of these switches; how many flows each takes depends on what was broken before."""
    hops = []
    for switch in switches:
        done = subprocess.run([regatta, "lab", "exec", "--lab", name, switch, "--", "ip", "-j", "route"], capture_output=True, text=True, check=True)
        hops.append({route["dst"]: sorted({hop["dev"] for hop in route.get("nexthops", [])}) for route in json.loads(done.stdout)})
    return hops


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.lines = self.socket.makefile("r")

    def report(self, **broken):
        self.socket.sendall(json.dumps({"broken": broken, "why": "bench"}).encode() + b"\n")

    def close(self):
        self.lines.close()
        self.socket.close()


HELD = ("leaf0-spine0", "leaf1-spine1")


def renew(path, is_over):
    """Reports the two faults again and again, as a locator does."""
    client = Client(path)
    while not is_over.wait(0.3):
        try:
            for link in HELD:
                client.report(link=link)
        except OSError:
            client.close()
            client = Client(path)
    client.close()


def await_event(healer, kind):
    for line in healer.stdout:
        event = json.loads(line)
        if event["event"] == kind:
            return time.monotonic(), event
    raise SystemExit(f"no event {kind}")


def trial(regatta, name, path, healer, number):
    """The times in ms from the kill: held again, and a new fault withdrawn."""
    link, of_link = ("leaf0-spine2", "leaf1-spine2") if number % 2 else ("leaf0-spine3", "leaf1-spine3")
    pid = process_that_heals(name)
    begin = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    client = Client(path)
    client.report(link=link)
    held_at, event = await_event(healer, "restarted")
    assert event["count"] == number, event
    withdrawn_at, _ = await_event(healer, "withdrawn")
    greeting = json.loads(client.lines.readline())
    links = {fault["link"] for fault in greeting["faults"]}
    assert set(HELD) <= links, greeting
    client.close()
    return 1e3 * (held_at - begin), 1e3 * (withdrawn_at - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--trials", type=int, default=20)
    options = parser.parse_args()
    regatta = pathlib.Path(options.build).absolute() / "bin" / "regatta"
    name = f"restart-{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder:
        cluster = pathlib.Path(folder) / "cluster.yaml"
        cluster.write_text(small_lab.cluster_text(name, 4, small_lab.two_tiers(2, 4)))
        with small_lab.lab(regatta, cluster, name):
            healer = subprocess.Popen([regatta, "heal", "--lab", name, "--json", "--clean", "1500ms", "--clean-max", "1500ms"],
                                      text=True, stdout=subprocess.PIPE)
            path = status(regatta, name)["folder"] + "/heal.sock"
            while not os.path.exists(path):
                time.sleep(0.01)
            times = []
            is_over = threading.Event()
            renewer = threading.Thread(target=renew, args=(path, is_over), daemon=True)
            renewer.start()
            await_event(healer, "withdrawn")
            for number in range(1, options.trials + 1):
                time.sleep(1)
                before = next_hops(regatta, name, ("leaf0", "leaf1"))
                times.append(trial(regatta, name, path, healer, number))
                await_event(healer, "returned")
                after = next_hops(regatta, name, ("leaf0", "leaf1"))
                if before != after:
                    raise SystemExit(f"routes differ after kill {number}: {before} {after}")
            is_over.set()
            renewer.join()
            healer.send_signal(signal.SIGINT)
            ended = healer.wait()
    for what, values in zip(("held again", "a new fault withdrawn"), zip(*times)):
        print(f"{what}: median {statistics.median(values):.1f} ms, worst {max(values):.1f} ms of {len(values)} kills")
    return ended


if __name__ == "__main__":
    sys.exit(main())
