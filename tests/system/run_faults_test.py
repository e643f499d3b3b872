"""A run that is broken in its midst ends within 10 s, names the culprit, exits with 1 and leaves nothing behind."""
import os
import signal
import unittest

import lab_case


class RunFaults(lab_case.LabCase):
    def fault(self, kind, target):
        done = lab_case.regatta("lab", "fault", kind, target, "--lab", self.name)
        self.assertEqual(done.returncode, 0, done.stderr)

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


if __name__ == "__main__":
    unittest.main(verbosity=2)
