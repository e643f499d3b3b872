"""Kinds of jobs on the platform: trainings, metrics, sizes that change, arrays, containers, torch.distributed. One platform for all."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

import lab_case

OVER = {"succeeded", "failed", "cancelled"}


class JobKinds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-kinds-"))
        cls.environment = {**os.environ, "XDG_STATE_HOME": str(cls.folder / "state"), "XDG_CONFIG_HOME": str(cls.folder / "config")}
        started = cls.regatta("up", "--nodes", 2, "--devices", 2, "--state", cls.folder / "here")
        assert started.returncode == 0, started.stderr

    @classmethod
    def tearDownClass(cls):
        cls.regatta("down", "--state", cls.folder / "here")
        shutil.rmtree(cls.folder)

    @classmethod
    def regatta(cls, *arguments, **options):
        return lab_case.regatta(*arguments, env=cls.environment, **options)

    def done(self, *arguments):
        done = self.regatta(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def submit(self, text, *flags):
        path = self.folder / "job.yaml"
        path.write_text(text)
        return self.done("submit", path, *flags).strip()

    def job(self, handle):
        return json.loads(self.done("job", handle, "--json"))

    def wait_for(self, look, limit=20.0):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            found = look()
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"not within {limit} s")

    def ended(self, handle):
        self.wait_for(lambda: self.job(handle)["status"]["phase"] in OVER)
        return self.job(handle)["status"]

    def output(self, handle, replica=0):
        return self.done("logs", handle, "--replica", replica)

    @unittest.skipUnless((lab_case.BIN / "regatta-worker").exists(), "the tree is built without libtorch")
    def test_a_training_is_planned_and_its_steps_are_metrics(self):
        handle = self.submit("""
name: gpt
roles: [{replicas: 2, cpus: 0.5}]
train:
  model: {kind: gpt, layers: 2, hidden: 32, heads: 2, seq: 16, vocab: 256}
  data: {text: /usr/share/common-licenses}
  global_batch: 4
  steps: 4
""")
        status = self.ended(handle)
        self.assertEqual(status["phase"], "succeeded", self.output(handle) + self.output(handle, 1))
        shown = {line.split()[0]: line.split() for line in self.done("job", handle).splitlines() if line}
        self.assertEqual(shown["loss"][1], "3")
        self.assertGreater(float(shown["step_time_s"][-1]), 0, "predicted beside measured")
        self.assertIn("predicted: a step of", self.output(handle))

    def test_a_job_changes_its_size_and_saves_before_it(self):
        saved = self.folder / "saved"
        saved.mkdir()
        script = 'trap "echo $WORLD_SIZE > $REGATTA_CHECKPOINT_FOLDER/$REGATTA_ATTEMPT.$RANK; exit 0" USR1; while :; do sleep 0.05; done'
        other = self.submit("name: other\ncommand: [sleep, 600]\nroles: [{replicas: 3, devices: 1}]\n")
        self.wait_for(lambda: self.job(other)["status"]["phase"] == "running")
        handle = self.submit(f"""
name: elastic
command: [sh, -c, '{script}']
roles: [{{replicas: 1, replicas_max: 3, devices: 1}}]
checkpoint: {{interval: 1s}}
checkpoint_folder: {saved}
stop: {{signal: USR1, grace: 5s}}
""")
        def running_on(devices):
            status = self.job(handle)["status"]
            return status["phase"] == "running" and status["devices"] == devices
        self.wait_for(lambda: running_on(1))
        self.done("cancel", other)
        self.wait_for(lambda: running_on(3))
        self.assertEqual((saved / "1.0").read_text(), "1\n", "it saved before it grew")
        self.done("cancel", handle)
        self.assertEqual(self.ended(handle)["phase"], "cancelled")
        self.assertEqual((saved / "2.2").read_text(), "3\n")

    def test_an_array_is_one_submission(self):
        handle = self.submit("name: sweep\ncommand: [sh, -c, 'echo index $REGATTA_ARRAY_INDEX; exec sleep 0.2']\n"
                             "roles: [{cpus: 0.1}]\narray: 5-9:2%2\n")
        self.assertRegex(handle, r"^sweep-\d+$")
        for index in (5, 7, 9):
            self.assertEqual(self.ended(f"{handle}[{index}]")["phase"], "succeeded")
            self.assertEqual(self.output(f"{handle}[{index}]"), f"index {index}\n")
        held = self.submit("name: held\ncommand: [sleep, 600]\nroles: [{cpus: 0.1}]\narray: 0-3\nhold: true\n")
        self.done("cancel", held)
        self.assertEqual({self.job(f"{held}[{index}]")["status"]["phase"] for index in range(4)}, {"cancelled"})

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("runc"), "needs root and runc")
    def test_ranks_run_in_containers_of_a_root_folder_and_of_a_layout(self):
        root = self.folder / "root"
        for name in ("usr", "proc", "dev", "etc", "tmp"):
            (root / name).mkdir(parents=True)
        for name in ("bin", "lib", "lib64"):
            (root / name).symlink_to("usr/" + name)
        (root / "etc/image").write_text("of the image\n")
        layout = self.layout_of(root)
        for number, image in enumerate((root, layout)):
            handle = self.submit(f"""
name: boxed
command: [sh, -c, 'cat /etc/image; echo "rank $RANK in $PWD"; echo "{{\\"name\\":\\"x\\",\\"step\\":1,\\"value\\":{number}}}" >> $REGATTA_METRICS_FILE; echo new > /made; exit 3']
roles: [{{cpus: 0.1}}]
image: {image}
mounts: [/usr]
""")
            status = self.ended(handle)
            text = self.output(handle)
            self.assertEqual((status["phase"], status["exit_status"]), ("failed", 3), text)
            self.assertRegex(text, "^of the image\nrank 0 in /.*/work\n$")
            self.assertFalse((root / "made").exists(), "the image is as it was")
            self.assertRegex(self.done("job", handle), rf"x +1 +{number}")
        bad = self.submit(f"name: bad\ncommand: [a]\nroles: [{{cpus: 0.1}}]\nimage: {self.folder}\n")
        self.assertEqual(self.ended(bad)["exit_status"], 125)
        self.assertRegex(self.output(bad), "^regatta: image .*: neither an OCI layout nor a root file system; .*\n$")
        stuck = self.submit(f"name: stuck\ncommand: [sleep, 600]\nroles: [{{cpus: 0.1}}]\nimage: {root}\nmounts: [/usr]\nstop: {{grace: 0s}}\n")
        self.wait_for(lambda: self.job(stuck)["status"]["phase"] == "running")
        self.done("cancel", stuck)
        self.assertEqual(self.ended(stuck)["phase"], "cancelled")
        self.wait_for(lambda: not list(pathlib.Path("/sys/fs/cgroup").glob("*/regatta-*-*.*.0-0")))

    def layout_of(self, root):
        """An OCI layout of two layers, of which the second takes a file of the first away."""
        import hashlib
        layout = self.folder / "layout"
        blobs = layout / "blobs/sha256"
        blobs.mkdir(parents=True)
        def put(data):
            digest = hashlib.sha256(data).hexdigest()
            (blobs / digest).write_bytes(data)
            return {"digest": f"sha256:{digest}", "size": len(data)}
        (root / "etc/gone").write_text("")
        first = subprocess.run(["tar", "-C", root, "-cz", "."], capture_output=True, check=True).stdout
        upper = self.folder / "upper"
        (upper / "etc").mkdir(parents=True)
        (upper / "etc/.wh.gone").write_text("")
        second = subprocess.run(["tar", "-C", upper, "-c", "."], capture_output=True, check=True).stdout
        kind = "application/vnd.oci.image.layer.v1.tar"
        manifest = {"schemaVersion": 2, "config": put(json.dumps({"config": {"Env": ["PATH=/usr/bin:/bin"]}}).encode()),
                    "layers": [{"mediaType": kind + "+gzip", **put(first)}, {"mediaType": kind, **put(second)}]}
        index = {"schemaVersion": 2, "manifests": [put(json.dumps(manifest).encode())]}
        (layout / "index.json").write_text(json.dumps(index))
        (layout / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        return layout

    @unittest.skipUnless(subprocess.run(["/usr/bin/python3", "-c", "import torch.distributed as d; exit(not d.is_available())"],
                                        capture_output=True).returncode == 0, "needs torch for Python")
    def test_torch_distributed_finds_its_gang(self):
        script = ("import torch, torch.distributed as d; d.init_process_group(\\\"gloo\\\"); x = torch.ones(4) * (d.get_rank() + 1); "
                  "d.all_reduce(x); print(int(x[0]), d.get_world_size(), flush=True)")
        handle = self.submit(f'name: torch\ncommand: [/usr/bin/python3, -c, "{script}"]\nroles: [{{replicas: 2, cpus: 0.5}}]\n')
        status = self.ended(handle)
        self.assertEqual(status["phase"], "succeeded", self.output(handle))
        self.assertEqual(self.output(handle, 1), "3 2\n")


if __name__ == "__main__":
    unittest.main()
