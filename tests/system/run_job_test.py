"""`regatta run` from the files to the report: what it prints and writes, and bad input."""
import fcntl
import json
import math
import os
import pty
import struct
import subprocess
import termios
import unittest

import lab_case

PHASES = ("forward_s", "backward_s", "recompute_s", "tp_comm_s", "pp_comm_s", "bubble_s", "dp_comm_s", "optimizer_s",
          "other_s")


class RunJob(lab_case.LabCase):
    steps = 8

    def run_job(self, *arguments):
        done = lab_case.regatta("run", self.job, "--cluster", self.cluster, "--out", self.folder / "out", *arguments)
        return done

    def check_plan_run(self, run):
        self.assertGreater(run["measured"]["step_time_s"], 0)
        self.assertGreater(run["predicted"]["step_time_s"], 0)
        for side in ("predicted", "measured"):
            phases = run[side]["phases"]
            self.assertEqual(set(phases), set(PHASES))
            self.assertTrue(math.isclose(sum(phases.values()), run[side]["step_time_s"], rel_tol=1e-6), run[side])

    def test_trains_compares_and_sweeps(self):
        self.job.write_text(self.job.read_text().replace("strategy: {dp: 3, tp: 1, pp: 1}", "strategy: {recompute: none}"))
        done = self.run_job("--json", "--compare", "pure-dp", "--sweep", "3", "--sweep-steps", "4")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(result, json.loads((self.folder / "out/result.json").read_text()))
        self.assertEqual(len(result["plan"]["placement"]), 3)
        strategy = result["plan"]["strategy"]
        self.assertEqual(strategy["tp"] * strategy["pp"] * strategy["dp"], 3)
        self.check_plan_run(result)
        self.assertEqual(len(result["measured"]["steps"]), 8)
        losses = [step["loss"] for step in result["measured"]["steps"]]
        self.assertLess(losses[-1], losses[0])
        self.assertGreater(sum(link["bytes"] for link in result["measured"]["traffic"]), 0)
        self.assertEqual(result["compare"]["plan"]["strategy"]["dp"], 3)
        self.check_plan_run(result["compare"])
        self.assertTrue(math.isclose(result["compare"]["speedup"], result["compare"]["measured"]["step_time_s"] /
                                     result["measured"]["step_time_s"], rel_tol=1e-6))
        self.assertEqual(len(result["sweep"]["plans"]), 3)
        self.assertEqual(len({json.dumps(plan["strategy"]) for plan in result["sweep"]["plans"]}), 3)
        self.assertTrue(-1 <= result["sweep"]["spearman"] <= 1)
        trace = json.loads((self.folder / "out/trace.json").read_text())
        self.assertTrue(any(event["ph"] == "X" and event["pid"] == 2 for event in trace["traceEvents"]))
        self.assertIn("<html", (self.folder / "out/report.html").read_text()[:1000])
        self.assertEqual(self.leftovers_after_end(), [])

    def test_prints_prediction_beside_measurement(self):
        done = self.run_job("--strategy", "{dp: 1, pp: 3}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"chosen +tp1 pp3 dp1")
        self.assertRegex(done.stdout, r"phase +predicted +measured")
        self.assertIn("step 8/8", done.stdout)

    def test_keeps_its_changing_line_within_the_terminal(self):
        columns = 40
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        run = subprocess.Popen([lab_case.BIN / "regatta", "run", self.job, "--cluster", self.cluster, "--no-report"],
                               stdout=theirs, stderr=subprocess.DEVNULL)
        os.close(theirs)
        text = b""
        while True:
            try:
                text += os.read(ours, 65536)
            except OSError:  # how the end of a terminal reads
                break
        os.close(ours)
        self.assertEqual(run.wait(60), 0)
        lines = [line for line in text.decode().split("\r\x1b[K") if line.startswith("tiny: step")]
        self.assertGreaterEqual(len(lines), 8)
        self.assertLess(max(map(len, lines)), columns)

    def test_goes_on_from_a_checkpoint(self):
        checkpoint = self.folder / "checkpoints"
        self.job.write_text(self.job.read_text() + f"checkpoint: {{folder: {checkpoint}}}\n")
        whole = self.run_job("--json", "--steps", "6")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        for folder in sorted(checkpoint.iterdir()):
            self.assertEqual(folder.name, "step-00000006")
        resumed = self.run_job("--json", "--steps", "9", "--resume")
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        steps = [step["step"] for step in json.loads(resumed.stdout)["measured"]["steps"]]
        self.assertEqual(steps, [6, 7, 8])

    def test_ends_when_the_loss_is_not_finite(self):
        self.job.write_text(self.job.read_text().replace("lr: 1e-3", "lr: 1000, weight_decay: 1"))
        done = self.run_job("--steps", "100")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"regatta: rank \d \(s\d/0\): step \d+/100: the (loss|gradient norm) is not "
                                      r"finite \((nan|inf)\); lower optimizer\.lr\n$")
        self.assertEqual(self.leftovers_after_end(), [])

    def test_refuses_bad_input_in_one_sentence(self):
        cases = [(["--strategy", "{tp: 5}"], "tp"), (["--resume"], "checkpoint"), (["--compare", "magic"], "pure-dp"),
                 (["--steps", "0"], "steps")]
        for arguments, word in cases:
            done = self.run_job(*arguments)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            lines = [line for line in done.stderr.splitlines() if "warning" not in line]
            self.assertEqual(len(lines), 1, done.stderr)
            self.assertTrue(lines[0].startswith("regatta: "), done.stderr)
            self.assertIn(word, lines[0])

    def test_names_the_file_that_is_missing(self):
        self.job.unlink()
        done = self.run_job()
        self.assertEqual(done.returncode, 2)
        self.assertIn("job.yaml", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
