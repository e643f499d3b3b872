"""A cluster of one server with NICs and without a fabric: the lab, a run and a measurement over shared memory."""
import json
import os
import pathlib
import shutil
import tempfile

import lab_case

CLUSTER = """\
name: {name}
server_types:
  cpu-2:
    devices: {{count: 2, type: cpu, cpu_share: 15%}}
    intra: {{kind: shm}}
    nics: {{count: 1, rate: 200Mbps}}
servers: {{count: 1, type: cpu-2}}
"""


class OneServerWithoutFabric(lab_case.unittest.TestCase):
    def setUp(self):
        if not (lab_case.BIN / "regatta-worker").exists():
            self.skipTest("regatta-worker is not built: libtorch was not found")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-system-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.name = f"one-{os.getpid()}"
        self.cluster = self.folder / "cluster.yaml"
        self.cluster.write_text(CLUSTER.format(name=self.name))

    def regatta(self, *arguments):
        done = lab_case.regatta(*arguments, timeout=120)
        if done.returncode == 2 and "namespace" in done.stderr:
            self.skipTest(f"no lab can be built here: {done.stderr.strip()}")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_lab_comes_up_with_one_namespace(self):
        up = self.regatta("lab", "up", self.cluster)
        self.addCleanup(lab_case.regatta, "lab", "down", self.name)
        self.assertRegex(up, rf"^lab {self.name}: up in [\d.]+ m?s, 1 server\b")
        (lab,) = json.loads(self.regatta("lab", "status", self.name, "--json"))["labs"]
        self.assertEqual(lab["links"], [])
        interfaces = json.loads(self.regatta("lab", "exec", "--lab", self.name, "s0", "--", "ip", "-j", "link"))
        self.assertEqual([interface["ifname"] for interface in interfaces], ["lo"])

    def test_run_trains_over_shared_memory(self):
        data = self.folder / "data.txt"
        data.write_text("the quick brown fox jumps over the lazy dog\n" * 400)
        job = self.folder / "job.yaml"
        job.write_text(lab_case.JOB.replace("dp: 3", "dp: 2").format(data=data, steps=4))
        out = self.folder / "out"
        result = json.loads(self.regatta("run", job, "--cluster", self.cluster, "--json", "--out", out))
        self.assertEqual(len(result["measured"]["steps"]), 4)

    def test_measure_saves_the_rates_inside_the_server(self):
        rates = json.loads(self.regatta("measure", self.cluster, "--quick", "--json"))
        self.assertEqual([path["path"] for path in rates["paths"]], ["same_server"])


if __name__ == "__main__":
    lab_case.unittest.main(verbosity=2)
