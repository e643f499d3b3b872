"""`regatta probe --listen`: probers that report by TCP over a network for management, as on real servers. Servers of a lab play them;
each has a second cable to the head, a namespace of its own where the collector runs."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time
import unittest

import lab_case
from probe_test import CLUSTER

SERVERS = 6
PORT = 27899


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)


class Program:
    """A program in the namespace of process `inside`; what it prints is kept, a line of JSON as what it says."""

    def __init__(self, inside, *command):
        self.process = subprocess.Popen(["nsenter", "-t", str(inside), "-n", *map(str, command)], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line) if line.startswith("{") else line.rstrip())

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(20)
        self.reader.join(5)
        self.process.stdout.close()
        return self.process.returncode

    def is_running(self):
        return self.process.poll() is None

    def events(self, name):
        return [line for line in list(self.lines) if isinstance(line, dict) and line["event"] == name]

    def faults(self):
        return [event["culprit"] for event in self.events("begun") if event["is_fault"]]

    def symptoms(self, culprit):
        return [event["symptom"] for event in self.events("begun") + self.events("changed") if event["culprit"] == culprit]

    def says(self, text):
        return any(text in line for line in list(self.lines) if isinstance(line, str))


class ProbeOfServers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("only root can lay cables between namespaces")
        if not shutil.which("nsenter") or not shutil.which("ip"):
            raise unittest.SkipTest("there is no nsenter or no ip: install util-linux and iproute2")
        lab_case.bring_up_lab(cls, "servers", CLUSTER)
        cls.head = cls.sleeper("unshare", "--net", "sleep", "600").pid
        assert lab_case.wait_until(lambda: lab_case.network_namespace(cls.head) != lab_case.network_namespace(os.getpid()), 10)
        cls.inside = [cls.namespace_of(f"s{i}") for i in range(SERVERS)]
        for i, pid in enumerate(cls.inside):
            run("nsenter", "-t", cls.head, "-n", "ip", "link", "add", f"m{i}", "type", "veth", "peer", "name", "mgmt", "netns", pid)
            for where, device, last in ((cls.head, f"m{i}", 1), (pid, "mgmt", 2)):
                run("nsenter", "-t", where, "-n", "ip", "addr", "add", f"172.31.{i}.{last}/30", "dev", device)
                run("nsenter", "-t", where, "-n", "ip", "link", "set", device, "up")

    @classmethod
    def sleeper(cls, *command):
        process = subprocess.Popen([str(word) for word in command])
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)
        return process

    @classmethod
    def namespace_of(cls, server):
        """A process in the namespace of a server of the lab."""
        shell = cls.sleeper(lab_case.BIN / "regatta", "lab", "exec", "--lab", cls.name, server, "--", "sleep", "600").pid

        def sleeps():
            children = [pid for task in pathlib.Path(f"/proc/{shell}/task").iterdir() for pid in (task / "children").read_text().split()]
            return [int(pid) for pid in children if lab_case.command_of(pid) == "sleep 600"]

        assert lab_case.wait_until(sleeps, 10)
        return sleeps()[0]

    def start(self, inside, *command):
        program = Program(inside, *command)
        self.addCleanup(program.end, signal.SIGKILL)
        return program

    def prober(self, i, *more):
        return self.start(self.inside[i], lab_case.BIN / "regatta-prober", self.cluster, "--server", f"s{i}",
                          "--collector", f"172.31.{i}.1:{PORT}", *more)

    def collector(self, *more):
        return self.start(self.head, lab_case.BIN / "regatta", "probe", self.cluster, "--listen", f"0.0.0.0:{PORT}", "--json", *more)

    def wait(self, condition, limit_s=15):
        self.assertTrue(lab_case.wait_until(condition, limit_s))

    def reports(self, collector, count):
        return lab_case.wait_until(
            lambda: any(event["reporting"] == count for event in collector.events("reporting")), 15)

    def fault(self, *arguments):
        done = lab_case.regatta("lab", "fault", *arguments, "--lab", self.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(lab_case.regatta, "lab", "fault", "clear", "--lab", self.name)

    def test_names_faults_and_silent_servers_and_survives_the_death_of_either_side(self):
        probers = [self.prober(i) for i in range(SERVERS)]
        self.wait(lambda: all(prober.says("nobody answers there") for prober in probers))
        first = self.collector()
        self.assertTrue(self.reports(first, SERVERS))
        time.sleep(1.5)
        self.assertEqual(first.faults(), [])

        self.fault("drop", "leaf0-spine1", "100%")
        self.wait(first.faults)
        self.assertEqual(first.faults(), ["link leaf0-spine1, both ways"])
        lab_case.regatta("lab", "fault", "clear", "--lab", self.name)
        self.wait(lambda: first.events("over"))

        # Nobody but its own prober can see the carrier of a server's NIC.
        self.fault("down", "s2.nic0-leaf1")
        self.wait(lambda: len(first.faults()) > 1)
        self.assertEqual(first.faults()[1:], ["nic s2.nic0"])
        # The kernel reports lost carriers at most once a second, so losses may be seen first.
        self.wait(lambda: "no carrier" in first.symptoms("nic s2.nic0"))
        lab_case.regatta("lab", "fault", "clear", "--lab", self.name)
        self.wait(lambda: len(first.events("over")) > 1)

        begin = time.monotonic()
        probers[4].end(signal.SIGKILL)
        self.wait(lambda: first.events("silent"))
        print(f"  a killed prober: silent after {time.monotonic() - begin:.2f} s")
        self.wait(lambda: len(first.faults()) > 2)
        self.assertEqual(first.faults()[2:], ["server s4"])
        self.assertEqual([(event["server"], event["reporting"]) for event in first.events("silent")], [("s4", SERVERS - 1)])
        probers[4] = self.prober(4)
        self.wait(lambda: first.events("heard"))
        self.wait(lambda: len(first.events("over")) > 2)

        first.end(signal.SIGKILL)
        self.wait(lambda: all(prober.says("is gone; this goes on without it") for prober in probers))
        begin = time.monotonic()
        second = self.collector("--duration", "3s")
        self.assertTrue(self.reports(second, SERVERS))
        print(f"  a new collector: all report after {time.monotonic() - begin:.2f} s")
        self.assertTrue(all(prober.is_running() for prober in probers))
        self.assertEqual(second.process.wait(20), 0)
        second.reader.join(5)
        self.assertEqual(second.faults(), [])
        pairs = second.events("pairs")[0]["pairs"]
        self.assertEqual(sum(pair["lost"] for pair in pairs), 0)
        self.assertEqual({pair["from"] for pair in pairs}, {f"s{i}" for i in range(SERVERS)})
        self.assertEqual([prober.end() for prober in probers], [0] * SERVERS)

    def test_goes_on_without_a_server_that_does_not_report_and_takes_it_in_later(self):
        probers = [self.prober(i) for i in range(SERVERS - 1)]
        collector = self.collector("--wait", "2s")
        self.wait(lambda: any(event["missing"] == ["s5"] for event in collector.events("reporting")))
        # It answers nobody, so it is dead for all that can be seen.
        self.wait(collector.faults)
        self.assertEqual(collector.faults(), ["server s5"])
        other = self.prober(SERVERS - 1, "--period", "20ms")
        self.wait(lambda: collector.events("refused"))
        self.assertIn("server s5 probes each 20 ms, the others each 10 ms", collector.events("refused")[0]["why"])
        self.wait(lambda: other.says("probes each 20 ms"))
        other.end()
        probers.append(self.prober(SERVERS - 1))
        self.wait(lambda: [event["server"] for event in collector.events("heard")] == ["s5"])
        self.wait(lambda: collector.events("over"))
        self.assertEqual(collector.end(signal.SIGINT), 0)

    def test_names_swapped_cables_that_switches_hear(self):
        """No lab says here what its ports hear; a collector of LLDP does. Before, spine0 was blamed."""
        for i in range(SERVERS):
            self.prober(i)
        counters = self.folder / "neighbors.csv"
        counters.touch()
        collector = self.collector("--counters", counters)
        self.assertTrue(self.reports(collector, SERVERS))
        time.sleep(1.5)

        def hear(*ports):
            with open(counters, "a", encoding="utf-8") as file:
                for leaf, cable in ports:
                    file.write(f"neighbor,1,{leaf},{leaf}-spine0,spine0,{cable}\nneighbor,1,spine0,{cable},{leaf},{leaf}-spine0\n")

        def standing():
            return set(collector.faults()) - {event["culprit"] for event in collector.events("over")}

        self.fault("swap", "leaf0-spine0", "leaf1-spine0")
        hear(("leaf0", "leaf1-spine0"), ("leaf1", "leaf0-spine0"))
        self.wait(lambda: standing() == {"cables leaf0-spine0 and leaf1-spine0"})
        time.sleep(3)
        self.assertEqual(standing(), {"cables leaf0-spine0 and leaf1-spine0"}, "and it stays")
        print(f"  {collector.faults()}")
        lab_case.regatta("lab", "fault", "clear", "--lab", self.name)
        hear(("leaf0", "leaf0-spine0"), ("leaf1", "leaf1-spine0"))
        self.wait(lambda: not standing())
        time.sleep(3)
        self.assertEqual(standing(), set())
        self.assertEqual(collector.end(signal.SIGINT), 0)

    def test_refuses_a_prober_that_is_started_on_another_server(self):
        done = self.start(self.inside[0], lab_case.BIN / "regatta-prober", self.cluster, "--server", "s1", "--collector",
                          f"172.31.0.1:{PORT}")
        self.wait(lambda: not done.is_running())
        self.assertEqual(done.end(), 2)
        self.assertTrue(done.says("server s1: its address 10.64.0.2 is none of this machine's"), done.lines)

    def test_tells_the_healer(self):
        for i in range(SERVERS):
            self.prober(i)
        healer = self.start(os.getpid(), lab_case.BIN / "regatta", "heal", "--lab", self.name, "--json")
        socket = pathlib.Path(f"/run/regatta/{self.name}/heal.sock")
        self.wait(socket.exists)
        collector = self.collector("--heal-socket", socket)
        self.assertTrue(self.reports(collector, SERVERS))
        time.sleep(1)
        self.fault("drop", "leaf1-spine0", "100%")
        self.wait(lambda: healer.events("withdrawn"))
        self.assertEqual(collector.faults(), ["link leaf1-spine0, both ways"])
        # One that is started again hears of what goes on.
        self.assertEqual(healer.end(signal.SIGINT), 0)
        self.wait(lambda: collector.says("the healer is gone"))
        healer = self.start(os.getpid(), lab_case.BIN / "regatta", "heal", "--lab", self.name, "--json")
        self.wait(lambda: healer.events("noted"))
        self.assertTrue(collector.says("the healer is back"))
        self.assertEqual(collector.end(signal.SIGINT), 0)
        self.assertEqual(healer.end(signal.SIGINT), 0)


if __name__ == "__main__":
    unittest.main()
