"""A run that is broken in its midst ends within 10 s, names the culprit, exits with 1 and leaves nothing behind."""
import signal
import time
import unittest

import lab_case


class RunFaults(lab_case.LabCase):
    def test_names_a_killed_rank(self):
        run = self.start()
        self.send(self.workers["s1"])
        self.assert_ends(run, r"^regatta: rank \d \(s1/0\): killed by signal 9 \(Killed\)$")

    def test_names_a_stopped_rank(self):
        run = self.start()
        self.send(self.workers["s2"], signal.SIGSTOP)
        self.assert_ends(run, r"^regatta: rank \d \(s2/0\): stopped by signal 19")

    def test_names_a_stopped_server(self):
        run = self.start()
        self.fault("stop", "s1")
        self.assert_ends(run, r"^regatta: server s1: no heartbeat for 4 s")

    def test_names_a_killed_server(self):
        run = self.start()
        self.fault("kill", "s2")
        self.assert_ends(run, r"^regatta: server s2: its agent was ended by signal 9 \(Killed\)")

    def test_names_a_cut_link(self):
        run = self.start()
        self.fault("down", "s1.nic0-leaf0")
        self.assert_ends(run, r"^regatta: link s1\.nic0-leaf0: carrier lost")

    def test_ends_on_control_c(self):
        run = self.start()
        self.send(run.process.pid, signal.SIGINT)
        self.assert_ends(run, r"^regatta: stopped on request", limit_s=5)

    def test_leaves_nothing_when_it_is_killed_itself(self):
        run = self.start()
        run.process.kill()
        run.wait(5)
        self.assertTrue(lab_case.wait_until(lambda: not self.leftovers(), 10), self.leftovers())

    def test_keeps_a_lab_that_was_up_before(self):
        self.assertEqual(lab_case.regatta("lab", "up", self.cluster).returncode, 0)
        run = self.start()
        self.send(run.process.pid, signal.SIGTERM)
        self.assertEqual(run.wait(5), 1, run.text())
        self.assertIn(self.name, lab_case.regatta("lab", "status").stdout)
        gone = lambda: not any(pid in self.workers.values() for pid in lab_case.processes())
        self.assertTrue(lab_case.wait_until(gone, 2))
        self.assertEqual(lab_case.regatta("lab", "down", self.name).returncode, 0)
        self.assertEqual(self.leftovers(), [])


class UplinkFaults(lab_case.LabCase):
    """The same for a cable between switches, which no server sees."""

    fabric = "tiers: [leaf, spine], servers_per_leaf: 2, spines: 1, uplink: 100Mbps"

    def test_names_the_only_uplink(self):
        run = self.start()
        self.fault("down", "leaf1-spine0")
        self.assert_ends(run, r"^regatta: link leaf1-spine0: carrier lost")


class SpareUplink(lab_case.LabCase):
    fabric = "tiers: [leaf, spine], servers_per_leaf: 2, spines: 2, uplink: 100Mbps"

    def test_goes_on_over_the_other_spine(self):
        run = self.start()
        self.fault("down", "leaf1-spine0")
        time.sleep(6)  # longer than a rank waits for an unreachable peer
        self.assertIsNone(run.process.poll(), run.text())
        steps = len(run.lines)
        self.assertTrue(lab_case.wait_until(lambda: len(run.lines) > steps, 10), run.text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
