"""The check of a GPU, on one that stands in for it: each part runs or says why not, and a failure is told."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import attacks
import gpu_check

BUILD = pathlib.Path(os.environ["REGATTA_BIN"]).resolve().parent
CHECK = pathlib.Path(__file__).resolve().parent / "gpu_check.py"


def check(*words, **environment):
    return subprocess.run([sys.executable, CHECK, BUILD, "--seconds", "1.5", *words], capture_output=True, text=True,
                          timeout=280, env=dict(os.environ, **environment))


# How well time is divided tests/gpu_time says; a machine with other work to do proves nothing of it. Here they have to
# measure something.
OF_TIME = {"overhead alone": r"% fewer kernels", "two tenants 30/70": r"% for 30 %, [0-9.]+ % for 70 %",
           "graphs at 30 %": r"% for 30 %", "inference beside batch": r"p99 [0-9]+ us beside batch",
           "attacks on time": "".join(f"(?=.*{attack.what}:? [0-9.]+ %)" for attack in attacks.TIME)}


class WithoutHook(gpu_check.Machine):
    """Its tenants' programs find the driver and not the hook."""

    def tenant(self, ask, name, compute, words, *limits, **options):
        path = self.environment["LD_LIBRARY_PATH"]
        words = ["env", "-u", "LD_PRELOAD", f"LD_LIBRARY_PATH={path}", *words]
        return super().tenant(ask, name, compute, words, *limits, **options)


class GpuCheck(unittest.TestCase):
    def test_its_parts_pass_on_the_stand_in_or_say_why_they_cannot_run(self):
        done = check("--stand-in")
        rows = {line.split(": ")[0]: line.split(": ", 2)[1:] for line in done.stdout.strip().split("\n")}
        self.assertEqual(list(rows), list(gpu_check.PARTS), done.stdout + done.stderr)
        for name, seen in OF_TIME.items():
            self.assertRegex(rows[name][1], seen)
        for name in ("conformance", "collectives", "quota", "SIGKILL storm", "checkpoint", "CUDA runtime under the hook",
                     "attacks on memory"):
            self.assertEqual(rows[name][0], "passed", done.stdout)
        failed = [name for name, (outcome, _) in rows.items() if outcome == "failed"]
        self.assertEqual(set(failed) - set(OF_TIME), set(), done.stdout)
        self.assertEqual(done.returncode, 1 if failed else 0)
        self.assertIn("channel controls: not run: there is no /dev/nvidiactl", done.stdout)

    def test_a_driver_that_fails_is_told(self):
        done = check("--stand-in", "--only", "quota", REGATTA_STANDIN_FAULTS="cuMemAlloc_v2:1+=999")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("quota: failed: of 512 MiB it got: 0, then 999", done.stdout)

    def test_attacks_on_tenants_without_limits_are_told(self):
        names = ("cuMemAlloc", "modules (data)", "eight processes")
        few = [attack for attack in attacks.MEMORY + attacks.TIME if attack.what in names]
        with unittest.mock.patch.multiple(attacks, MEMORY=few[:2], TIME=few[2:]):
            machine = WithoutHook(BUILD, True, 1.0)
            with machine.stack:
                (_, memory, held), (_, of_time, had) = gpu_check.run_parts(machine, ["attacks on memory", "attacks on time"])
        self.assertEqual((memory, of_time), ("failed", "failed"))
        self.assertRegex(held, r"cuMemAlloc: 1552 \(0\), for a moment 1552, of 144 MiB")
        self.assertRegex(held, r"modules \(data\): 1552 \(0\)")
        self.assertRegex(had, r"eight processes: 1[0-9.]+ %; 15 points are allowed")

    def test_without_a_gpu_nothing_is_claimed(self):
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder) / "results.md"
            done = check("--results", results, LD_LIBRARY_PATH=folder)
            if done.returncode != 77:
                self.skipTest("this machine has a GPU")
            self.assertIn("not run: no CUDA driver with a device", done.stdout)
            self.assertFalse(results.exists())

    def test_the_stand_in_writes_no_results(self):
        done = check("--stand-in", "--results", "results.md")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--results: only of a real GPU", done.stderr)

    def test_results_are_a_table_of_what_was_seen(self):
        page = gpu_check.render([("swap", "not run", "a | b c")], "2026-01-01, a GPU.")
        self.assertIn("2026-01-01, a GPU.", page)
        self.assertIn("| swap | not run | a / b c |", page)


if __name__ == "__main__":
    unittest.main()
