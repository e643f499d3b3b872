"""The commands of `regatta gpu`: a daemon, tenants under it, limits that change, and a daemon that is killed."""
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest

BIN = pathlib.Path(os.environ["REGATTA_BIN"]).resolve()
STANDIN = BIN.parent / "tests" / "standin"  # a libcuda.so.1 without a GPU
CUDA_PROGRAM = BIN / "regatta-test-cuda"  # knows nothing of tenants
TENANT = BIN / "regatta-test-tenant"  # its exit status: how many MiB it got


class GpuSharing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.socket = folder.name + "/socket"
        self.state = folder.name + "/state"
        self.daemon = None
        self.start_daemon()
        self.addCleanup(self.kill_daemon)

    def start_daemon(self):
        self.daemon = subprocess.Popen([BIN / "regatta", "gpu", "daemon", "--state", self.state, "--socket", self.socket,
                                        "--gpu", "1GiB", "--gpu", "2GiB"], stderr=subprocess.PIPE, text=True)
        self.wait_for(lambda: self.gpu("policy").returncode == 0)

    def kill_daemon(self, number=signal.SIGKILL):
        self.daemon.send_signal(number)
        self.daemon.communicate(timeout=10)
        return self.daemon.returncode

    def wait_for(self, condition, seconds=10):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def gpu(self, *words):
        return subprocess.run([BIN / "regatta", "gpu", words[0], "--socket", self.socket, *words[1:]],
                              capture_output=True, text=True, timeout=30)

    def ps(self):
        return json.loads(self.gpu("ps", "--json").stdout)

    def device(self, memory):
        """The environment in which programs have a GPU with so much memory."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        socket = folder.name + "/device"
        device = subprocess.Popen([BIN / "regatta-standin-device", "--socket", socket, "--memory", memory])
        self.addCleanup(device.wait)
        self.addCleanup(device.kill)
        self.wait_for(lambda: os.path.exists(socket))
        return dict(os.environ, REGATTA_STANDIN=socket, LD_LIBRARY_PATH=str(STANDIN))

    def run_words(self, *words):
        return [BIN / "regatta", "gpu", "run", "--socket", self.socket, "--name", "a", "--compute", "30", *words]

    def start(self, *words):
        """A tenant `a` of 100 MiB that runs the words."""
        process = subprocess.Popen([BIN / "regatta", "gpu", "run", "--socket", self.socket, "--name", "a", "--memory",
                                    "100MiB", "--compute", "30", "--", *words])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for(lambda: self.ps()["tenants"])
        return process

    def test_top_shows_each_tenant_and_ends_at_the_count(self):
        self.start("sleep", "30")
        done = self.gpu("top", "--count", "2", "--interval", "0.1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("policy fixed"), 2)
        self.assertIn("0 B of    100 MiB", done.stdout)
        done = self.gpu("top", "--count", "2", "--interval", "0.1", "--json")
        self.assertEqual([json.loads(line)["tenants"][0]["name"] for line in done.stdout.splitlines()], ["a", "a"])

    def test_top_in_a_terminal_ends_at_q_and_leaves_it_as_it_was(self):
        shown, own = pty.openpty()
        before = termios.tcgetattr(own)
        top = subprocess.Popen([BIN / "regatta", "gpu", "top", "--socket", self.socket, "--interval", "0.1"], stdin=own, stdout=own)
        self.addCleanup(top.kill)
        seen = b""
        while seen.count(b"policy fixed") < 3:
            self.assertTrue(select.select([shown], [], [], 10)[0], seen)
            seen += os.read(shown, 4096)
        self.assertNotEqual(termios.tcgetattr(own), before)
        # A daemon that is away is waited for.
        self.kill_daemon()
        while b"no daemon answers" not in seen:
            self.assertTrue(select.select([shown], [], [], 10)[0], seen)
            seen += os.read(shown, 4096)
        self.start_daemon()
        os.write(shown, b"q")
        while not seen.endswith(b"\x1b[?25h\x1b[?1049l"):
            self.assertTrue(select.select([shown], [], [], 10)[0], seen)
            seen += os.read(shown, 4096)
        self.assertEqual(top.wait(10), 0)
        self.assertEqual(termios.tcgetattr(own), before)
        os.close(own)
        os.close(shown)

    def test_a_tenant_gets_its_memory_whatever_its_environment(self):
        done = self.gpu("run", "--name", "a", "--memory", "100MiB", "--compute", "30", "--", "env", "-i", str(TENANT))
        self.assertEqual((done.returncode, done.stderr), (100, ""))
        done = self.gpu("run", "--name", "a", "--memory", "100MiB", "--compute", "30", "--", "sh", "-c",
                        f"{TENANT}; test $? = 100 && exec setsid {TENANT}")  # a child, and a re-execution
        self.assertEqual((done.returncode, done.stderr), (100, ""))

    def test_an_unchanged_program_is_held_to_its_memory(self):
        environment = self.device("1GiB")
        take = ["--", CUDA_PROGRAM, "take", str(2 << 20)]
        done = subprocess.run(self.run_words("--memory", "100MiB", *take), env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=30)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "50, then 2\nstep full\n", ""))
        done = subprocess.run([CUDA_PROGRAM, "take", str(2 << 20)], env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=30)
        self.assertEqual(done.stdout, "512, then 2\nstep full\n")  # without the hook it takes all
        # Libraries that the program preloads itself stay.
        done = subprocess.run(self.run_words("--memory", "2MiB", "--", "sh", "-c", "echo $LD_PRELOAD"), text=True,
                              env=dict(os.environ, LD_PRELOAD="libm.so.6"), capture_output=True, timeout=30)
        self.assertRegex(done.stdout, "/driver-[0-9a-f]{16}/libregatta_gpu.so:libm.so.6\n$")

    def test_programs_that_python_starts_stay_in_their_tenant(self):
        environment = self.device("1GiB")
        # It closes all descriptors of what it starts, that of the tenant's page, too.
        script = f"import subprocess; subprocess.run(['{CUDA_PROGRAM}', 'take', '{2 << 20}'], stdin=subprocess.DEVNULL)"
        for words in ([sys.executable, "-c", script], [sys.executable, "-c", f"import subprocess, sys; "
                                                       f"subprocess.run([sys.executable, '-c', {script!r}])"]):
            done = subprocess.run(self.run_words("--memory", "100MiB", "--", *words), env=environment,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "50, then 2\nstep full\n", ""))

    def test_a_quota_holds_for_all_programs_of_a_tenant_together(self):
        environment = self.device("1GiB")
        words = f"for i in 1 2 3 4; do {CUDA_PROGRAM} take {2 << 20} </dev/fd/9 & done; wait"
        read_end, write_end = os.pipe()
        process = subprocess.Popen(self.run_words("--memory", "100MiB", "--", "bash", "-c", "exec 9<&0; " + words),
                                   env=environment, stdin=read_end, stdout=subprocess.PIPE, text=True)
        os.close(read_end)
        self.addCleanup(process.kill)
        lines = [process.stdout.readline() for _ in range(8)]
        self.assertEqual(sum(int(line.split(",")[0]) for line in lines if "then 2" in line), 50)
        tenant, = self.ps()["tenants"]
        self.assertEqual(tenant["memory"][0]["used_bytes"], 100 << 20)
        os.close(write_end)
        self.assertEqual(process.wait(timeout=30), 0)
        process.stdout.close()

    def test_without_a_daemon_memory_is_refused_or_uncounted_as_the_operator_chose(self):
        environment = self.device("64MiB")
        for choice, expected in (("closed", "0, then 800\n"), ("open", "32, then 2\n")):
            process = subprocess.Popen(
                self.run_words("--memory", "10MiB", "--on-fault", choice, "--", "bash", "-c",
                               f"echo ready; read line; exec {CUDA_PROGRAM} take {2 << 20}"), env=environment,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(process.stdout.readline(), "ready\n")
            self.assertEqual(self.ps()["tenants"][0]["on_fault"], choice)
            self.kill_daemon()
            out, err = process.communicate("go\n", timeout=30)
            self.assertTrue(out.startswith(expected), (choice, out, err))
            self.assertIn("regatta gpu: ", err)
            self.start_daemon()
            self.wait_for(lambda: not self.ps()["tenants"])

    def test_a_program_outside_any_tenant_gets_nothing(self):
        done = subprocess.run([TENANT], capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 255)
        self.assertIn("regatta gpu run", done.stderr)

    def test_limits_are_shown_and_changed_while_the_tenant_runs(self):
        self.start("sleep", "60")
        tenant, = self.ps()["tenants"]
        self.assertEqual((tenant["name"], tenant["compute_percent"], tenant["processes"][0]["name"]), ("a", 30, "sleep"))
        self.assertEqual(tenant["memory"], [{"gpu": 0, "limit_bytes": 100 << 20, "used_bytes": 0, "spare_bytes": 0}])
        done = self.gpu("set", "a", "--memory", "7MiB", "--priority", "high")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("7 MiB on GPU 0", done.stdout)
        self.assertEqual(self.gpu("run", "--name", "a", "--", str(TENANT)).returncode, 7)
        self.assertRegex(self.gpu("ps").stdout, r"a +0 +0 B +- +7 MiB +30 +30 +0 +high")
        self.assertEqual(self.gpu("policy", "equal").stdout, "equal\n")
        self.assertEqual(self.ps()["tenants"][0]["share_percent"], 100)
        self.assertIn('regatta_gpu_memory_limit_bytes{tenant="a",gpu="0"} 7340032\n', self.gpu("metrics").stdout)

    def test_who_joins_a_tenant_asks_for_no_other_limits_than_it_has(self):
        self.start("sleep", "60")
        same = ("--compute", "30%", "--weight", "1", "--priority", "normal", "--on-fault", "closed")
        self.assertEqual(self.gpu("run", "--name", "a", *same, "--", str(TENANT)).returncode, 100)
        self.wait_for(lambda: len(self.ps()["tenants"][0]["processes"]) == 1)
        before = self.ps()
        for limit, has, remedy in ((("--compute", "50"), "30 %", "regatta gpu set a --compute 50"),
                                   (("--weight", "2"), "1", "regatta gpu set a --weight 2"),
                                   (("--priority", "high"), "normal", "regatta gpu set a --priority high"),
                                   (("--on-fault", "open"), "closed", "regatta gpu set a --on-fault open"),
                                   (("--overcommit",), "none", "start a tenant of another name with it"),
                                   (("--overcommit", "--lease", "60s"), "none", "start a tenant of another name with it")):
            done = self.gpu("run", "--name", "a", *limit, "--", "true")
            self.assertEqual(done.returncode, 2)
            said = " ".join(limit[:2] if limit[0] != "--overcommit" else limit[:1])
            self.assertEqual(done.stderr, f"regatta: {said}: tenant a is there and has {has}; leave it out to join, or "
                             + (remedy if "another" in remedy else f"change it with {remedy}") + "\n")
        self.assertEqual(self.ps(), before)

    def test_a_daemon_that_was_killed_goes_on_where_it_was(self):
        process = self.start("sleep", "60")
        self.gpu("policy", "weight")
        before = self.ps()
        self.assertEqual(self.kill_daemon(), -signal.SIGKILL)
        self.start_daemon()
        self.assertEqual(self.ps(), before)
        process.kill()
        process.wait()
        self.wait_for(lambda: not self.ps()["tenants"])
        self.assertEqual(self.kill_daemon(signal.SIGTERM), 0)
        self.assertFalse(os.path.exists(self.socket))

    def cgroup(self):
        """A cgroup of its own, as /proc/PID/cgroup writes it, and its folder."""
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            place = pathlib.Path("/sys/fs/cgroup", *(controllers.replace("name=", "").split(",")[:1] if controllers else ["unified"]))
            name = f"{path.rstrip('/')}/regatta-test-{os.getpid()}"
            folder = pathlib.Path(f"{place}{name}")
            try:
                folder.mkdir()
            except OSError:
                continue
            self.addCleanup(folder.rmdir)
            return (f"{controllers.split(',')[0]}:{name}" if controllers else name), folder
        self.skipTest("this user may make no cgroup")

    def test_a_service_becomes_a_tenant_by_its_cgroup(self):
        cgroup, folder = self.cgroup()
        enroll = ("enroll", "svc", "--cgroup", cgroup, "--memory", "9MiB", "--compute", "10")
        self.assertEqual(self.gpu(*enroll).stderr, "")
        self.assertIn(f"none in {cgroup}", self.gpu("ps").stdout)
        inside = ["sh", "-c", f"echo $$ > {folder}/cgroup.procs && exec env -i {TENANT} {self.socket}"]
        self.assertEqual(subprocess.run(inside, timeout=30).returncode, 9)
        done = self.gpu(*enroll)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
        self.assertIn("is there already", done.stderr)
        self.assertEqual(self.gpu("leave", "svc").returncode, 0)
        self.wait_for(lambda: not self.ps()["tenants"])
        done = subprocess.run(inside, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 255)
        self.assertIn("regatta gpu enroll", done.stderr)

    def test_a_drained_gpu_is_shown_and_takes_nothing_new(self):
        self.assertEqual(self.gpu("drain", "--device", "0").stdout, "GPU 0: drained, no tenant is left\n")
        self.assertIn("GPU 0: drained, accepts no new tenant\n", self.gpu("ps").stdout)
        self.kill_daemon()
        self.start_daemon()
        self.assertEqual([gpu["drained"] for gpu in self.ps()["gpus"]], [True, False])
        run = ("run", "--name", "a", "--memory", "5MiB", "--compute", "30")
        done = self.gpu(*run, "--", str(TENANT))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertIn("GPU 0: is drained", done.stderr)
        self.assertEqual(self.gpu(*run, "--gpu", "1", "--", "true").returncode, 0)
        self.assertEqual(self.gpu("drain", "--undo").stdout, "GPU 0: accepts tenants\nGPU 1: accepts tenants\n")
        self.assertEqual(self.gpu(*run, "--", str(TENANT)).returncode, 5)

    def test_wrong_words_are_refused_in_a_sentence(self):
        cases = [(("set", "b", "--memory", "1GiB"), "none at all"),
                 (("run", "--name", "b", "--memory", "3GiB", "--compute", "1", "--", "true"), "1 GiB left"),
                 (("run", "--name", "b", "--memory", "3GB!", "--compute", "1", "--", "true"), "--memory"),
                 (("run", "--name", "b", "--memory", "1GiB", "--compute", "130", "--", "true"), "--compute"),
                 (("run", "--name", "b", "--memory", "1GiB", "--on-fault", "maybe", "--", "true"), "open"),
                 (("run", "--name", "b", "--memory", "1GiB", "--", "true"), "give --compute"),
                 (("run", "--name", "b", "--memory", "2MiB", "--compute", "1", "--", "no-such-program"), "no-such"),
                 (("policy", "best"), "fixed"),
                 (("drain", "--device", "2"), "the daemon has GPU 0 to 1"),
                 (("leave", "b"), "none at all"),
                 (("enroll", "b", "--cgroup", "x", "--memory", "2MiB", "--compute", "1"), "memory:/a/b"),
                 (("enroll", "b", "--cgroup", "/regatta-none", "--memory", "2MiB", "--compute", "1"), "regatta-none"),
                 (("run", "--name", "b", "--memory", "0MiB", "--compute", "1", "--", "true"), "no memory of any GPU"),
                 (("set", "b"), "give --memory")]
        for words, text in cases:
            done = self.gpu(*words)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), (words, done.stderr))
            self.assertIn(text, done.stderr)
        done = subprocess.run([BIN / "regatta", "gpu", "ps", "--socket", self.socket + "2"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertIn("regatta gpu daemon", done.stderr)

    def test_a_daemon_that_cannot_keep_its_state_says_where_it_could(self):
        folder = pathlib.Path(self.state).parent
        (folder / "file").write_text("")
        (folder / "taken" / "state").mkdir(parents=True)
        for name in ("groups.json", "drained.json"):
            (folder / name[:-5] / name).mkdir(parents=True)
        socket = str(folder / "other")
        own = "give --state a folder of its own"
        cases = [(folder / "file", socket, own), (folder / "file/x", socket, own), (folder / "taken", socket, own),
                 (folder / "groups", socket, "groups.json: is a directory; move it away"),
                 (folder / "drained", socket, "drained.json: is a directory; move it away"),
                 (folder / "new", folder / "file/socket", "give --socket a path"),
                 (folder / "new", folder, "is there and no socket"), ("", socket, "--state: the text is empty")]
        for state, socket, said in cases:
            done = subprocess.run([BIN / "regatta", "gpu", "daemon", "--state", state, "--socket", socket],
                                  capture_output=True, text=True, timeout=30)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(said, done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "root goes everywhere, and only root becomes another user")
    def test_who_may_not_go_to_the_socket_is_told_so(self):
        os.chmod(pathlib.Path(self.socket).parent, 0o700)
        with tempfile.TemporaryDirectory() as folder:  # the build's own may be closed to others
            os.chmod(folder, 0o755)
            program = shutil.copy(BIN / "regatta", folder)
            done = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", program, "gpu", "ps", "--socket", self.socket],
                                  capture_output=True, text=True, timeout=30)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertIn("this user may not go there (permission denied); ask as root", done.stderr)

    def test_a_tenant_gives_no_orders(self):
        inner = [str(BIN / "regatta"), "gpu", "set", "--socket", self.socket, "a", "--memory", "1GiB"]
        done = self.gpu("run", "--name", "a", "--memory", "100MiB", "--compute", "30", "--", *inner)
        self.assertEqual(done.returncode, 2)
        self.assertIn("belongs to tenant a", done.stderr)
        done = self.gpu("run", "--name", "a", "--memory", "100MiB", "--compute", "30", "--", "env", "-i", "sh", "-c",
                        " ".join(inner) + "; exit $?")
        self.assertEqual(done.returncode, 2)
        self.assertIn("belongs to tenant a", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
