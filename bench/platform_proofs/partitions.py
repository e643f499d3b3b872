#!/usr/bin/env python3
"""Cuts agents off from the controller in network namespaces, stops processes and steps clocks, while jobs write heartbeats: two attempts of a
job never live at a time, nothing is decided by the calendar's clock, and all agents are back within 5 s. A line for each trouble; exit status 1
with what is wrong, 77 where no network namespace can be made."""
import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from cutting_proxy import LateProxy
from platform_case import BIN, Client, Platform, wait_until

HEAL_LIMIT = 5.0
NOBODY = "02:00:00:00:00:99"  # the hardware address of no machine
FAKETIME = pathlib.Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
# The first number of /proc/uptime is CLOCK_BOOTTIME.
BEATS = r"""
exec 9> $NOTES/lock.$REGATTA_JOB
flock -n 9 || echo $REGATTA_JOB.$REGATTA_ATTEMPT >> $NOTES/overlap
while read up rest < /proc/uptime; do echo "$REGATTA_ATTEMPT $up" >> $NOTES/beats.$REGATTA_JOB; sleep 0.05; done
"""


def run(*command):
    subprocess.run(list(map(str, command)), check=True, capture_output=True)


class Network:
    """The calling process is in a namespace of its own, with a bridge; each agent is in one of its own, behind a link to it."""

    def __init__(self, count):
        self.names = [f"proof{os.getpid()}n{i}" for i in range(count)]
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "br0", "type", "bridge")
        run("ip", "addr", "add", "10.77.0.1/24", "dev", "br0")
        run("ip", "link", "set", "br0", "up")
        for i, name in enumerate(self.names):
            run("ip", "netns", "add", name)
            run("ip", "link", "add", f"port{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", f"port{i}", "master", "br0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "addr", "add", f"10.77.0.{10 + i}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")

    def wrap(self, i):
        return ["nsenter", f"--net=/run/netns/{self.names[i]}"]

    def cut(self, i, ways):
        """Packets of a way go to a hardware address that nobody has."""
        if "to" in ways:
            run("ip", "-n", self.names[i], "neigh", "replace", "10.77.0.1", "lladdr", NOBODY, "dev", "eth0", "nud", "permanent")
        if "from" in ways:
            run("ip", "neigh", "replace", f"10.77.0.{10 + i}", "lladdr", NOBODY, "dev", "br0", "nud", "permanent")

    def mend(self, i):
        for command in (["ip", "-n", self.names[i], "neigh", "del", "10.77.0.1", "dev", "eth0"],
                        ["ip", "neigh", "del", f"10.77.0.{10 + i}", "dev", "br0"]):
            subprocess.run(command, capture_output=True)

    def delay(self, i, words):
        """Whether the kernel can."""
        return subprocess.run(["tc", "-n", self.names[i], "qdisc", "replace", "dev", "eth0", "root", "netem", *words],
                              capture_output=True).returncode == 0

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


class Partitions:
    def __init__(self, folder, options):
        self.folder = pathlib.Path(folder)
        self.network = Network(2)
        self.platform = Platform(f"{folder}/cut", 2)
        self.platform.host = self.platform.address = "10.77.0.1"
        self.clock = self.folder / "clock"
        self.lease = 30.0
        self.set_clocks(0)
        for i, name in enumerate(self.platform.names()):
            self.platform.wraps[name] = self.network.wrap(i)
        if FAKETIME.exists():
            for name in ("controller", *self.platform.names()):
                self.platform.environments[name] = {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(self.clock),
                                                    "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        if options.lease:
            self.lease = options.lease
            self.platform.options["controller"] = ["--lease", str(options.lease)]
        self.notes = self.folder / "notes"
        self.notes.mkdir()
        self.said, self.jobs = [], []
        self.client = Client(self.platform, timeout=2)

    def set_clocks(self, seconds):
        new = self.clock.with_suffix(".new")
        new.write_text(f"{seconds:+d}s\n" if seconds else "+0\n")
        new.rename(self.clock)

    def start(self):
        self.platform.start_all()
        for _ in range(4):
            status, job = self.client.insist("POST", "/v1/jobs", {
                "name": "beats", "command": ["/bin/sh", "-c", BEATS], "environment": {"NOTES": str(self.notes)},
                "roles": [{"devices": 4, "cpus": 0.01, "memory": "1MiB"}]})
            assert status == 201, job
            self.jobs.append(int(job["id"]))
        self.wait_running(20)

    def states(self):
        return [self.client.insist("GET", f"/v1/jobs/{number}")[1]["status"] for number in self.jobs]

    def attempts(self):
        return sum(state["attempts"] for state in self.states())

    def wait_running(self, limit):
        wait_until(lambda: all(state["phase"] == "running" for state in self.states()), limit, "all jobs run")

    def overlaps(self):
        """Attempts that lived while another one of the same job did, by the stamps of the jobs."""
        said = [f"two attempts at once by the lock: {line}" for line in (self.notes / "overlap").read_text().split()] if (
            self.notes / "overlap").exists() else []
        for path in self.notes.glob("beats.*"):
            spans = {}
            for line in path.read_text().splitlines():
                attempt, stamp = line.split()
                first, last = spans.get(int(attempt), (float(stamp), float(stamp)))
                spans[int(attempt)] = min(first, float(stamp)), max(last, float(stamp))
            ordered = sorted(spans.items())
            said += [f"{path.name}: attempt {before} lived until {span[1]}, and {after} from {next_span[0]}"
                     for (before, span), (after, next_span) in zip(ordered, ordered[1:]) if next_span[0] <= span[1]]
        return said

    def trouble(self, name, begin, lasts, end, moves):
        """`moves`: whether jobs must get a new attempt (True), must not (False), or may (None)."""
        before = self.attempts()
        begin()
        time.sleep(lasts)
        end()
        mended = time.monotonic()
        self.platform.wait_connected(60)
        taken = time.monotonic() - mended
        if moves:  # the controller may not know yet what the agent has ended
            try:
                wait_until(lambda: self.attempts() > before, HEAL_LIMIT, "a job has a new attempt")
            except AssertionError:
                pass
        self.wait_running(30)
        running = time.monotonic() - mended
        more = self.attempts() - before
        said = self.overlaps()
        if taken > HEAL_LIMIT:
            said.append(f"all agents were connected after {taken:.1f} s")
        if moves is False and more:
            said.append(f"{more} new attempts of jobs that nobody had to touch")
        if moves and not more:
            said.append("no job has a new attempt")
        print(f"{name}, {lasts:.1f} s: {more} new attempts; all agents connected {taken:.2f} s after it, all jobs running {running:.2f} s: "
              f"{len(said)} problems", flush=True)
        self.said += [f"{name}: {sentence}" for sentence in said]

    def cut(self, name, ways, lasts, moves):
        self.trouble(name, lambda: self.network.cut(0, ways), lasts, lambda: self.network.mend(0), moves)

    def flap(self, rounds):
        for _ in range(rounds):
            self.network.cut(0, ["to", "from"])
            time.sleep(0.4)
            self.network.mend(0)
            time.sleep(0.4)

    def stop(self, name, lasts, moves):
        process = self.platform.processes[name]
        self.trouble(f"{'controller' if name == 'controller' else 'agent'} stopped", lambda: process.send_signal(signal.SIGSTOP), lasts,
                     lambda: process.send_signal(signal.SIGCONT), moves)

    def expect_clock(self, hours):
        """The controller shows people the stepped time: else nothing was stepped."""
        job = self.client.insist("POST", "/v1/jobs", {"name": "clock", "command": ["true"], "roles": [{"cpus": 0.01}], "hold": True})[1]
        step = job["status"]["submitted_ms"] / 1000 - time.time()
        if abs(step - 3600 * hours) > 60:
            self.said.append(f"clocks stepped to {hours:+d} h: the controller's clock is {step:.0f} s ahead")

    def run(self, seconds):
        """`seconds`: of the long troubles, more than 1.25 leases."""
        both, short, agent = ["to", "from"], min(0.3 * self.lease, 5), self.platform.names()[0]
        self.cut("cut both ways", both, short, False)
        self.cut("cut both ways", both, seconds, True)
        self.cut("cut to the controller", ["to"], seconds, True)
        self.cut("cut from the controller", ["from"], seconds, True)
        self.trouble("flapping", lambda: None, 0, lambda: self.flap(15), False if self.lease > 5 else None)
        self.stop(agent, seconds, True)
        self.stop("controller", short, False)
        self.stop("controller", seconds, True)
        if FAKETIME.exists():
            for hours in (1, 0, -1, 0):
                self.trouble(f"clocks stepped to {hours:+d} h", lambda: self.set_clocks(3600 * hours), min(self.lease, 10), lambda: None, False)
                self.expect_clock(hours)
        else:
            print("clocks: not stepped, libfaketime is not installed")
        self.late(min(self.lease, 20))

    def late(self, lasts):
        name = "delay 200 ms, 50 ms more or less, loss 5 %"
        if self.network.delay(0, ["delay", "200ms", "50ms", "loss", "5%"]):
            self.trouble(name, lambda: None, lasts, lambda: None, False)
            return
        # The kernel has no netem: the pieces of agent 0 pass a proxy, and one in 20 comes a second late.
        proxy, agent = LateProxy(self.platform.host, self.platform.port, 0.2, 0.05, 20), self.platform.names()[0]

        def begin():
            self.platform.ports[agent] = proxy.port
            self.platform.kill(agent, signal.SIGTERM)
            self.platform.restart(agent)
            self.platform.wait_connected(20)

        def end():
            del self.platform.ports[agent]
            self.platform.kill(agent, signal.SIGTERM)
            self.platform.restart(agent)
        # The agent starts anew for it: with a lease as short as its way to the controller it may lose replicas.
        self.trouble(f"{name} (by a proxy)", begin, lasts, end, False if self.lease > 5 else None)
        proxy.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lease", type=float, help="of the controller, where its program has the option (30)")
    parser.add_argument("--seconds", type=float, help="of the long troubles (1.25 leases and 1 s)")
    parser.add_argument("--short", action="store_true", help="with a lease of 2 s, and less of everything; skips where there is no --lease")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    has_lease = "--lease" in subprocess.run([BIN / "regatta-controller", "--help"], capture_output=True, text=True).stdout
    if (options.short or options.lease) and not has_lease:
        print("the controller has no option --lease: no short form")
        return 77
    if options.short:
        options.lease = 2.0
    if not options.inside:
        if subprocess.run(["unshare", "-n", "ip", "link", "add", "br0", "type", "bridge"], capture_output=True).returncode != 0:
            print("no network namespace with a bridge can be made here")
            return 77
        return subprocess.run(["unshare", "-n", sys.executable, *sys.argv, "--inside"]).returncode
    folder = tempfile.mkdtemp(prefix="regatta-proof-")
    proof = Partitions(folder, options)
    try:
        proof.start()
        proof.run(options.seconds or 1.25 * proof.lease + 1)
    finally:
        proof.platform.stop(remove=False)
        proof.network.remove()
    for sentence in proof.said[:20]:
        print(sentence)
    if proof.said:
        print(f"the logs are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
