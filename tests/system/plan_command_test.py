"""The command line of `regatta plan`: every option does what it says, or is refused in one sentence."""
import json
import pathlib
import tempfile
import unittest

import lab_case

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
CPU_PLAN = ["plan", EXAMPLES / "job.yaml", "--cluster", EXAMPLES / "cluster.yaml"]
JOB, CLUSTER = EXAMPLES / "gpt3-175b.yaml", EXAMPLES / "a100-1024.yaml"
PLAN = ["plan", JOB, "--cluster", CLUSTER]


class PlanCommand(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def done(self, *arguments, **options):
        done = lab_case.regatta(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def check(self, arguments, sentence):
        with self.subTest(arguments=arguments):
            done = lab_case.regatta(*arguments)
            self.assertEqual((done.returncode, done.stderr, done.stdout), (2, f"regatta: {sentence}\n", ""))

    def test_refuses_what_a_cluster_of_cpus_cannot_have(self):
        for option in (["--launch", "megatron"], ["--html", self.folder / "x.html"], ["--trace", self.folder / "x.json"],
                       ["--stack", "nemo"], ["--frontier"], ["--exhaustive"], ["--every-form"], ["--servers", "2"],
                       ["--without", "s1"], ["--sizes"]):
            self.check(CPU_PLAN + option, f"{option[0]}: {EXAMPLES / 'cluster.yaml'} has no GPUs; give a cluster of GPUs, "
                                          "or plan without it")
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
