#!/usr/bin/env python3
"""What guest.py promises: output, exit status, a time limit, nothing left behind.

  guest_test.py KERNEL_FOLDER
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

GUEST = pathlib.Path(__file__).with_name("guest.py")
SKIPPED, TIMED_OUT, NO_STATUS = 77, 124, 125
kernel = sys.argv.pop(1)


def run(*arguments, kernel_folder=None, env=None):
    return subprocess.run([sys.executable, str(GUEST), "--kernel", kernel_folder or kernel, *arguments],
                          capture_output=True, text=True, check=False, env=env)


class GuestTest(unittest.TestCase):
    # A folder of its own: other guests run at the same time.
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def tearDown(self):
        self.assertEqual(os.listdir(self.folder.name), [], "left behind")

    def run_guest(self, *arguments, kernel_folder=None):
        return run(*arguments, kernel_folder=kernel_folder, env=os.environ | {"TMPDIR": self.folder.name})

    def test_gives_output_and_status_of_a_command_that_uses_what_it_was_given(self):
        done = self.run_guest("--module", "veth", "--program", "/usr/bin/env", "--file", str(GUEST), "--limit", "100",
                   f"lsmod | grep -c veth; /bin/env A=7 sh -c 'echo $A'; wc -c <{GUEST}; printf end; exit 3")
        self.assertEqual(done.stdout, f"1\n7\n{GUEST.stat().st_size}\nend", done.stderr)
        self.assertEqual(done.returncode, 3)

    def test_ends_at_its_limit(self):
        done = self.run_guest("--limit", "2", "sleep 1000")
        self.assertEqual(done.returncode, TIMED_OUT)
        self.assertIn("the guest did not end within 2.0 s", done.stderr)

    def test_says_when_the_guest_dies(self):
        done = self.run_guest("--limit", "100", "echo c >/proc/sysrq-trigger; sleep 1000")
        self.assertEqual(done.returncode, NO_STATUS)
        self.assertIn("ended without an exit status", done.stderr)

    def test_is_skipped_with_a_reason_where_something_is_missing(self):
        done = self.run_guest("true", kernel_folder="/nonexistent")
        self.assertEqual(done.returncode, SKIPPED)
        self.assertIn("skipped: there is no kernel in /nonexistent: run scripts/guest-kernel.sh", done.stdout)
        done = self.run_guest("--module", "no_such_module", "true")
        self.assertEqual(done.returncode, SKIPPED)
        self.assertIn("has no module no_such_module", done.stdout)


if __name__ == "__main__":
    probe = run("--limit", "1", "true")
    if probe.returncode == SKIPPED:
        print(probe.stdout)
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
