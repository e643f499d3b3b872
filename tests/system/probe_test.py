"""`regatta probe` in a lab: faults that are injected while it runs are named, and nobody else is; nothing is left of it."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import lab_case

CLUSTER = """\
name: {name}
server_types:
  server:
    devices: {{count: 1, type: cpu, cpu_share: 5%}}
    intra: {{kind: shm}}
    nics: {{count: 1, rate: 100Mbps}}
fabric:
  tiers: [leaf, spine]
  servers_per_leaf: 2
  spines: 2
  uplink: 100Mbps
servers: {{count: 6, type: server}}
"""


class Probe:
    """`regatta probe` in the background; what it says is kept with the time at which it came."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([lab_case.BIN / "regatta", "probe", *map(str, arguments), "--json"], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.events = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.events.append((time.monotonic(), json.loads(line)))

    def verdicts(self):
        return [(when, event) for when, event in list(self.events)
                if event["event"] == "begun" and event["is_fault"]]

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        self.process.wait(20)
        self.reader.join(5)
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode


class ProbeCommand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-system-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.name = f"test-{os.getpid()}-probe"
        cls.cluster = cls.folder / "cluster.yaml"
        cls.cluster.write_text(CLUSTER.format(name=cls.name))
        up = lab_case.regatta("lab", "up", cls.cluster)
        if up.returncode == 2:
            raise unittest.SkipTest(f"no lab can be built here: {up.stderr.strip()}")
        assert up.returncode == 0, up.stderr
        cls.addClassCleanup(lab_case.regatta, "lab", "down", cls.name)
        if not pathlib.Path("/proc/sys/net/ipv4/fib_multipath_hash_seed").exists():
            raise unittest.SkipTest("this kernel has no hash seed per namespace: ways are not known")

    def probers(self):
        return [pid for pid in lab_case.processes()
                if "regatta-prober" in lab_case.command_of(pid) and f"/{self.name}/" in lab_case.command_of(pid)]

    def start(self):
        probe = Probe(self.cluster)
        self.addCleanup(lambda: probe.process.poll() is None and probe.process.kill())
        self.assertTrue(lab_case.wait_until(lambda: len(self.probers()) == 6, 10))
        time.sleep(2.5)
        return probe

    def fault(self, *arguments):
        done = lab_case.regatta("lab", "fault", *arguments, "--lab", self.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(lab_case.regatta, "lab", "fault", "clear", "--lab", self.name)

    def names(self, culprit, *fault):
        """The fault is named, and nothing else; says how soon."""
        probe = self.start()
        self.assertEqual(probe.verdicts(), [], "nothing is broken yet")
        self.fault(*fault)
        begin = time.monotonic()
        lab_case.wait_until(probe.verdicts, 6)
        time.sleep(1)
        self.assertEqual(probe.end(), 0)
        found = [event["culprit"] for _, event in probe.verdicts()]
        self.assertEqual(found, [culprit])
        after = probe.verdicts()[0][0] - begin
        print(f"  {' '.join(fault)}: {culprit} after {after:.2f} s")
        # What the machine is busy with beside this comes on top of the 2 s.
        self.assertLess(after, 4)
        self.assertEqual(self.probers(), [])

    def test_names_a_link_that_loses_everything(self):
        self.names("link leaf0-spine1, both ways", "drop", "leaf0-spine1", "100%")

    def test_names_a_link_that_loses_a_little(self):
        self.names("link leaf1-spine0, both ways", "drop", "leaf1-spine0", "5%")

    def test_names_a_lossy_nic(self):
        self.names("nic s3.nic0", "drop", "s3.nic0-leaf1", "5%")

    def test_names_a_link_without_carrier(self):
        self.names("link leaf2-spine0, both ways", "down", "leaf2-spine0")

    def test_names_a_server_that_hangs(self):
        self.names("server s4", "stop", "s4")

    def test_proves_what_it_covers_and_blames_nobody_where_nothing_is_broken(self):
        done = lab_case.regatta("probe", self.cluster, "--duration", "4s", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        coverage = events[0]
        self.assertEqual(coverage["event"], "coverage")
        self.assertEqual(coverage["missing"], [])
        self.assertEqual(len(coverage["ways"]), 24)
        self.assertGreaterEqual(min(len(ways) for ways in coverage["ways"].values()), 3)
        self.assertEqual([event for event in events if event.get("is_fault")], [])
        self.assertEqual(events[-1]["event"], "pairs")
        self.assertEqual(sum(pair["lost"] for pair in events[-1]["pairs"]), 0)
        self.assertTrue(all(pair["mean_us"] > 0 for pair in events[-1]["pairs"]))
        self.assertEqual(self.probers(), [])

    def test_leaves_no_prober_when_it_is_killed(self):
        probe = self.start()
        probe.end(signal.SIGKILL)
        self.assertTrue(lab_case.wait_until(lambda: not self.probers(), 5))


if __name__ == "__main__":
    unittest.main()
