"""What `regatta coll inspect` shows of a running job from outside, and of the files that a failed one leaves."""
import contextlib
import itertools
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import lab_case


class CollInspect(unittest.TestCase):
    jobs = itertools.count()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        # Ranks of the test before are seen until they are gone, so each test has a job of its own.
        self.job = f"inspect-{os.getpid()}-{next(self.jobs)}"
        environment = dict(os.environ, REGATTA_JOB_NAME=self.job, REGATTA_FLIGHT_DIR=self.folder.name)
        self.bench = subprocess.Popen(
            [lab_case.BIN / "regatta", "bench", "coll", "all_reduce", "--ranks", "2", "--sizes", "64M",
             "--batches", "1000"],  # so that the ranks do not end in order meanwhile
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end)

    def end(self):
        if self.bench.poll() is None:
            for rank in self.look()["ranks"]:
                with contextlib.suppress(ProcessLookupError):  # it may have ended since
                    os.kill(rank["pid"], signal.SIGCONT)
            self.bench.terminate()
            self.bench.wait()

    def look(self):
        done = lab_case.regatta("coll", "inspect", self.job, "--json")
        return json.loads(done.stdout) if done.returncode == 0 else {"ranks": [], "verdicts": []}

    def wait_for(self, condition, seconds=10):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self.look()
            if condition(found):
                return found
            time.sleep(0.05)
        self.fail(f"not seen within {seconds} s: {self.look()}")

    def two_ranks(self):
        def reduces(rank):
            groups = rank["communicators"]
            return groups and groups[0].get("collective", {}).get("operation", "").startswith("all_reduce of 64 MiB")
        return self.wait_for(lambda found: len(found["ranks"]) == 2 and all(map(reduces, found["ranks"])))

    def test_shows_the_ranks_of_a_job_and_of_a_process(self):
        found = self.two_ranks()
        self.assertEqual([rank["rank"] for rank in found["ranks"]], [0, 1])
        text = lab_case.regatta("coll", "inspect", found["ranks"][1]["pid"])
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertIn(f"job {self.job}: 1 of 2 ranks", text.stdout)
        self.assertRegex(text.stdout, r"world +[0-9]+ +(all_reduce|barrier)")

    def test_names_the_rank_that_is_stopped(self):
        found = self.two_ranks()
        os.kill(found["ranks"][1]["pid"], signal.SIGSTOP)
        self.wait_for(lambda found: any("rank 1" in line and "is stopped" in line for line in found["verdicts"]), 3)
        text = lab_case.regatta("coll", "inspect", self.job).stdout
        self.assertIn("stopped", text)

    def test_reads_the_files_of_a_job_that_failed(self):
        found = self.two_ranks()
        os.kill(found["ranks"][1]["pid"], signal.SIGKILL)
        self.assertNotEqual(self.bench.wait(30), 0, "rank 0 ends when it has written its file")
        file = pathlib.Path(self.folder.name, f"regatta-flight-{self.job}-rank0.json")
        done = lab_case.regatta("coll", "inspect", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("rank 1 at here left no flight file", done.stdout)
        self.assertIn("failed: rank 1 at here: connection lost", done.stdout)

    def test_says_what_it_does_not_find(self):
        for target, sentence in [
                ("99999999", "process 99999999: there is none"),
                (str(os.getpid()), "it is no rank of a regatta job"),
                ("no-such-job", "job no-such-job: no process on this machine"),
                ("no/such/file.json", "no/such/file.json: no such file"),
                (lab_case.__file__, "not JSON")]:
            done = lab_case.regatta("coll", "inspect", target)
            self.assertEqual((done.returncode, done.stdout), (2, ""), target)
            self.assertIn(sentence, done.stderr)


if __name__ == "__main__":
    unittest.main()
