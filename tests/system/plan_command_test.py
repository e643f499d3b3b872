"""The command line of `regatta plan`: every option does what it says, or is refused in one sentence."""
import json
import os
import pathlib
import pty
import resource
import signal
import subprocess
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

    def test_writes_the_optimizer_and_the_steps_of_the_job(self):
        job = self.write("job.yaml", "name: j\nmodel: {preset: llama3-8b}\nglobal_batch: 16\nprecision: bf16\nsteps: 500\n"
                                     "optimizer: {lr: 1e-4, weight_decay: 0, beta1: 0.8, clip_norm: 0}\n")
        cluster = self.write("c.yaml", "name: c\nfabric: {tiers: [leaf]}\nservers: {count: 1, type: dgx-h100}\n")
        plan = ["plan", job, "--cluster", cluster, "--strategy", "{dp: 8, zero: %d, micro_batch: 1, recompute: full}"]
        words = {"megatron": (1, ["--lr 0.0001", "--weight-decay 0", "--adam-beta1 0.8", "--clip-grad 0", "--train-iters 500",
                                  "--rotary-base 500000", "--norm-epsilon 1e-05"]),
                 "torchrun": (3, ["--optimizer.lr 0.0001", "--optimizer.weight_decay 0", "--optimizer.beta1 0.8",
                                  "--training.max_norm inf", "--training.steps 500"]),
                 "deepspeed": (3, ['"lr": 0.0001', '"weight_decay": 0.0', "0.8,", '"gradient_clipping": 0.0',
                                   '"total_num_steps": 500'])}
        for launcher, (zero, flags) in words.items():
            script = self.done(*plan[:-1], plan[-1] % zero, "--launch", launcher).stdout
            for flag in flags:
                self.assertIn(flag, script)

    def test_keeps_the_compression_that_is_asked_for(self):
        best = json.loads(self.done(*PLAN, "--strategy", "{tp: 8, compression: bf16}", "--json").stdout)
        self.assertEqual(best["strategy"]["compression"], "bf16")
        self.check(PLAN + ["--strategy", "{tp: 8, compression: int8}", "--launch", "megatron"],
                   "megatron: gradients travel as fp32 or bf16, not as int8; set compression none or bf16")

    def test_reads_no_file_without_an_end(self):
        for arguments in (["plan", "/dev/zero", "--cluster", CLUSTER], ["plan", JOB, "--cluster", "/dev/zero"]):
            self.check(arguments, "/dev/zero: holds more than 268435456 bytes, or has no end; check the path")


if __name__ == "__main__":
    unittest.main(verbosity=2)
