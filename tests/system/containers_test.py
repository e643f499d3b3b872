"""Containers as tenants of a shared GPU: the CDI device, the OCI hook, and membership by cgroup, with runc and containerd."""
import copy
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

from oci_case import BIN, REGATTA, TENANT, OciCase, SpecError, check_cdi


class Cdi(OciCase):
    """Needs no runtime."""

    def test_the_device_is_as_the_specification_wants_it(self):
        for words in ([], ["--name", "small", "--memory", "4GiB", "--compute", "30", "--weight", "2", "--priority", "normal"],
                      ["--preload", "env"]):
            self.cdi(*words)

    def test_the_check_of_the_specification_finds_what_is_wrong(self):
        def change(edit):
            spec = copy.deepcopy(good)
            edit(spec, spec["devices"][0]["containerEdits"])
            return spec
        good = self.cdi()
        for edit in (lambda spec, edits: spec.pop("cdiVersion"),
                     lambda spec, edits: spec.update(kind="gpu"),
                     lambda spec, edits: spec.update(devices=[]),
                     lambda spec, edits: spec["devices"].append(spec["devices"][0]),
                     lambda spec, edits: spec["devices"][0].update(name="-x"),
                     lambda spec, edits: edits["mounts"][0].pop("containerPath"),
                     lambda spec, edits: edits["mounts"][0].update(options="ro"),
                     lambda spec, edits: edits["hooks"][0].update(path="regatta"),
                     lambda spec, edits: edits["hooks"][0].update(hookName="before"),
                     lambda spec, edits: edits["hooks"][0].update(timeout=0),
                     lambda spec, edits: edits.update(devices=[])):
            with self.assertRaises(SpecError):
                check_cdi(change(edit))

    def test_a_device_that_could_not_work_is_refused_in_a_sentence(self):
        (self.folder / "other").mkdir()
        (self.folder / "other/ld.so.preload").write_text("/lib/x.so\n")
        for name, mode in (("with blank", 0o644), ("secret", 0o600)):
            (self.folder / name).write_text("")
            (self.folder / name).chmod(mode)
        (self.folder / "other/close").write_text(f"{self.library}.bak\n")
        cases = [(("--library", self.folder / "none.so"), "no such file; give the path of libregatta_gpu.so"),
                 (("--library", BIN / "regatta"), "write it with: echo"),
                 (("--library", self.library, "--preload", self.folder / "other/ld.so.preload"), "does not name the library"),
                 (("--library", self.library, "--preload", self.folder / "other/close"), "does not name the library"),
                 (("--library", self.folder / "with blank", "--preload", "env"), "no path with blanks"),
                 (("--library", self.folder / "secret", "--preload", "env"), "other users cannot read it"),
                 (("--library", self.library, "--name", "a/b"), "a device's name has letters"),
                 (("--library", self.library, "--memory", "4"), "--memory"),
                 (("--library", self.library, "--compute", "0"), "--compute: '0' is no percentage")]
        for words, sentence in cases:
            done = self.gpu("cdi", *words)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), (words, done.stderr))
            self.assertIn(sentence, done.stderr)
        for socket, sentence in (("/run/regatta.sock", "a socket that is called socket"),
                                 (str(self.folder / "socket"), "containers would see")):
            done = subprocess.run([REGATTA, "gpu", "cdi", "--socket", socket, "--library", self.library], capture_output=True,
                                  text=True, timeout=30)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(sentence, done.stderr)

    def test_a_hook_that_was_given_nonsense_says_so(self):
        bundle = self.folder / "bundle"
        bundle.mkdir()
        (bundle / "config.json").write_text(json.dumps({"annotations": {"regatta.gpu.memroy": "1GiB"}}))
        state = {"ociVersion": "1.0.2", "id": "c1", "status": "creating", "pid": 1, "bundle": str(bundle)}
        cases = [((), "", "writes the state of the container to it"),
                 ((), json.dumps({**state, "bundle": "/nowhere"}), "check the bundle"),
                 ((), json.dumps(state), "did you mean regatta.gpu.memory?"),
                 (("--memory", "x"), json.dumps(state), "--memory")]
        for words, given, sentence in cases:
            done = self.gpu("oci-hook", *words, input=given)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), (given, done.stderr))
            self.assertIn(sentence, done.stderr)
        done = self.gpu("oci-hook", "--leave", input=json.dumps({**state, "pid": 0}))  # of a container that was never enrolled
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Runc(OciCase):
    reason = None  # why there are no containers here

    @classmethod
    def setUpClass(cls):
        if cls.reason is None:
            cls.reason = cls.find_reason()
        if cls.reason:
            raise unittest.SkipTest(cls.reason)

    @classmethod
    def find_reason(cls):
        if os.geteuid() != 0:
            return "needs root, to make containers"
        if shutil.which("runc") is None:
            return "runc is not installed; it is a package of Debian"
        probe = cls("runTest")
        probe.setUp()
        try:
            done = probe.run_container(["true"], {})
            return "" if done.returncode == 0 else f"runc makes no containers here: {done.stderr.strip()}"
        finally:
            probe.doCleanups()

    def runTest(self):
        pass

    def runc(self, *words):
        return ["runc", "--root", str(self.folder / "runc"), *map(str, words)]

    def call_runc(self, *words):
        # Files, and no pipes: what a container leaves running would keep a pipe open.
        with open(self.folder / "out", "w+", encoding="utf-8") as out, open(self.folder / "err", "w+", encoding="utf-8") as err:
            done = subprocess.run(self.runc(*words), stdin=subprocess.DEVNULL, stdout=out, stderr=err, timeout=60)
            out.seek(0)
            err.seek(0)
            done.stdout, done.stderr = out.read(), err.read()
        return done

    def end(self, name):
        subprocess.run(self.runc("delete", "--force", name), capture_output=True, timeout=60)

    def run_container(self, args, annotations, spec=None, user=0):
        name, folder = self.bundle(args, annotations, spec, user)
        self.addCleanup(self.end, name)
        return self.call_runc("run", "--bundle", folder, name)

    def start_container(self, annotations, spec):
        """One that sleeps, for `runc exec`."""
        name, folder = self.bundle(["sleep", "120"], annotations, spec)
        self.addCleanup(self.end, name)
        done = self.call_runc("run", "--detach", "--bundle", folder, name)
        self.assertEqual(done.returncode, 0, done.stderr)
        return name

    def execute(self, name, *args):
        return self.call_runc("exec", name, *args)

    def test_a_container_gets_what_its_annotations_say_whatever_its_environment(self):
        spec = self.cdi()
        for args, user in (([TENANT], 0), (["env", "-i", TENANT], 0), (["setsid", "-w", TENANT], 65534),
                           (["env", "-i", "REGATTA_GPU_SOCKET=/x", "CUDA_DEVICE_MEMORY_LIMIT=80g", TENANT], 65534)):
            done = self.run_container(args, {"regatta.gpu.memory": "60MiB", "regatta.gpu.compute": "10"}, spec, user)
            self.assertEqual((done.returncode, done.stderr), (60, ""))
        self.wait_for(lambda: not self.tenants())

    def test_containers_do_not_touch_each_others_memory(self):
        spec = self.cdi("--memory", "100MiB", "--compute", "10", "--on-fault", "open")
        first = self.start_container({}, spec)
        self.assertEqual(self.tenants()[first]["on_fault"], "open")
        second = self.start_container({"regatta.gpu.memory": "30MiB"}, spec)
        self.assertEqual(sorted(self.tenants()), sorted([first, second]))
        self.assertEqual(self.tenants()[first]["cgroups"][0]["container"], first)
        self.assertEqual(self.execute(first, TENANT).returncode, 100)
        self.assertEqual(self.execute(second, "env", "-i", TENANT).returncode, 30)
        self.end(first)
        self.wait_for(lambda: sorted(self.tenants()) == [second])
        self.assertEqual(self.execute(second, TENANT).returncode, 30)

    def test_a_daemon_that_was_killed_finds_its_containers_again(self):
        name = self.start_container({}, self.cdi("--memory", "50MiB", "--compute", "10"))
        self.kill_daemon()
        self.start_daemon()
        self.assertEqual(self.execute(name, TENANT).returncode, 50)
        self.kill_daemon()
        started = time.monotonic()
        waiting = subprocess.Popen(self.runc("exec", name, TENANT), stderr=subprocess.DEVNULL)
        self.addCleanup(waiting.kill)
        time.sleep(0.5)
        self.start_daemon()  # a client that came in between has waited
        self.assertEqual(waiting.wait(timeout=30), 50)
        self.assertLess(time.monotonic() - started, 20)

    def test_a_container_with_wrong_limits_does_not_start(self):
        allowed = self.cdi("--memory", "100MiB", "--compute", "10")
        cases = [(self.cdi(), {}, "annotate it with regatta.gpu.memory"),
                 (self.cdi(), {"regatta.gpu.memory": "4GX"}, "annotation regatta.gpu.memory"),
                 (self.cdi(), {"regatta.gpu.memroy": "4GiB"}, "did you mean regatta.gpu.memory?"),
                 (self.cdi(), {"regatta.gpu.memory": "2GiB", "regatta.gpu.compute": "1"}, "1 GiB left"),
                 (self.cdi(), {"regatta.gpu.name": "none"}, "there is none of this name"),
                 (allowed, {"regatta.gpu.memory": "101MiB"}, "more than this machine's operator allows"),
                 (allowed, {"regatta.gpu.weight": "2"}, "weight is more than this machine's operator allows"),
                 (allowed, {"regatta.gpu.priority": "high"}, "priority is more than this machine's operator allows")]
        for spec, annotations, sentence in cases:
            done = self.run_container(["touch", "/out/started"], annotations, spec)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(sentence, done.stderr)
            self.assertEqual(list(self.folder.glob("regatta-test-*/rootfs/out/started")), [])
            self.assertEqual(self.tenants(), {})
        self.kill_daemon()
        done = self.run_container(["touch", "/out/started"], {}, allowed)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("start it with regatta gpu daemon", done.stderr)
        self.start_daemon()

    def test_a_container_that_is_no_tenant_gets_nothing(self):
        spec = self.cdi()
        del spec["devices"][0]["containerEdits"]["hooks"]
        done = self.run_container([TENANT], {}, spec)
        self.assertEqual(done.returncode, 255)
        self.assertIn("its cgroup belongs to no tenant", done.stderr)

    def test_a_container_gives_no_orders(self):
        spec = self.cdi("--memory", "50MiB", "--compute", "10")
        for order in (["set", "a", "--memory", "1GiB"], ["ps"], ["drain"], ["enroll", "a", "--cgroup", "/", "--memory", "1GiB"]):
            done = self.run_container([REGATTA, "gpu", order[0], "--socket", "/run/regatta-gpu/socket", *order[1:]], {}, spec)
            self.assertEqual(done.returncode, 2)
            self.assertIn("is in a container", done.stderr)

    def test_the_library_is_loaded_into_every_program(self):
        for words, args in ((("--memory", "2MiB", "--compute", "1"), ["env", "-i", "cat", "/proc/self/maps"]),
                            (("--memory", "2MiB", "--compute", "1", "--preload", "env"), ["cat", "/proc/self/maps"])):
            done = self.run_container(args, {}, self.cdi(*words))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(str(self.library), done.stdout)

    def test_a_container_joins_a_tenant_that_it_names(self):
        first = self.start_container({"regatta.gpu.name": "team", "regatta.gpu.memory": "50MiB", "regatta.gpu.compute": "10"},
                                     self.cdi())
        self.assertEqual(self.run_container([TENANT], {"regatta.gpu.name": "team"}, self.cdi()).returncode, 50)
        done = self.run_container([TENANT], {"regatta.gpu.name": "team", "regatta.gpu.compute": "20"}, self.cdi())
        self.assertIn("tenant team is there and has 10 %", done.stderr)
        self.assertEqual([group["container"] for group in self.tenants()["team"]["cgroups"]], [first])
        self.end(first)
        self.wait_for(lambda: not self.tenants())

    def test_a_drained_gpu_takes_no_container_and_is_waited_for(self):
        spec = self.cdi("--memory", "50MiB", "--compute", "10")
        name = self.start_container({}, spec)
        done = self.gpu("drain", "--wait", "1")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"after 1 s there is still GPU 0: {name}; end them or wait longer", done.stderr)
        done = self.run_container(["true"], {}, spec)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("GPU 0: is drained", done.stderr)
        waiting = subprocess.Popen([REGATTA, "gpu", "drain", "--socket", self.socket, "--wait", "30"], stdout=subprocess.PIPE,
                                   text=True)
        self.addCleanup(waiting.wait)
        self.addCleanup(waiting.kill)
        self.end(name)
        self.assertEqual(waiting.communicate(timeout=30)[0], "GPU 0: drained, no tenant is left\n")
        self.assertEqual(waiting.returncode, 0)
        self.assertEqual(self.gpu("drain", "--device", "0", "--undo").stdout, "GPU 0: accepts tenants\n")
        self.assertEqual(self.run_container([TENANT], {}, spec).returncode, 50)


class Containerd(OciCase):
    """The same hook and device under containerd, driven by its own client."""

    def setUp(self):
        for program in ("containerd", "ctr", "runc"):
            if shutil.which(program) is None:
                self.skipTest(f"{program} is not installed; it is a package of Debian")
        if os.geteuid() != 0:
            self.skipTest("needs root, to make containers")
        super().setUp()
        config = self.folder / "containerd.toml"
        config.write_text('version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]\n')
        self.address = self.folder / "containerd.sock"
        with open(self.folder / "containerd.log", "w", encoding="utf-8") as log:
            self.containerd = subprocess.Popen(["containerd", "--config", config, "--root", self.folder / "containerd",
                                                "--state", self.folder / "containerd-state", "--address", self.address],
                                               stdout=log, stderr=log)
        self.addCleanup(self.stop_containerd)
        deadline = time.monotonic() + 20
        while self.ctr("version").returncode != 0:
            if self.containerd.poll() is not None or time.monotonic() > deadline:
                log = (self.folder / "containerd.log").read_text().strip().split("\n")
                self.skipTest(f"containerd does not run here: {log[-1]}")
            time.sleep(0.1)
        done = self.run_container(["true"], {})
        if done.returncode != 0:
            self.skipTest(f"containerd makes no containers here: {done.stderr.strip()}")

    def stop_containerd(self):
        self.containerd.send_signal(signal.SIGTERM)
        try:
            self.containerd.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.containerd.kill()
            self.containerd.wait(timeout=10)

    def ctr(self, *words):
        return subprocess.run(["ctr", "--address", self.address, *map(str, words)], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL)

    def run_container(self, args, annotations, spec=None):
        name, folder = self.bundle(args, annotations, spec)
        self.addCleanup(self.ctr, "container", "rm", name)
        self.addCleanup(self.ctr, "task", "rm", "--force", name)
        return self.ctr("run", "--rm", "--config", folder / "config.json", name)

    def test_a_container_of_containerd_is_a_tenant(self):
        spec = self.cdi("--memory", "80MiB", "--compute", "10")
        self.assertEqual(self.run_container(["env", "-i", TENANT], {}, spec).returncode, 80)
        self.assertEqual(self.run_container([TENANT], {"regatta.gpu.memory": "20MiB"}, spec).returncode, 20)
        self.wait_for(lambda: not self.tenants())
        done = self.run_container(["true"], {"regatta.gpu.memory": "81MiB"}, spec)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("more than this machine's operator allows", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
