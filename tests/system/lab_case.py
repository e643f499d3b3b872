"""What the system tests share: a small cluster and job, a run in the background, and proof that nothing is left of it."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

BIN = pathlib.Path(os.environ.get("REGATTA_BIN", pathlib.Path(__file__).parents[2] / "build/dev/bin"))

CLUSTER = """\
name: {name}
server_types:
  cpu-1:
    devices: {{count: 1, type: cpu, cpu_share: 15%}}
    intra: {{kind: shm}}
    nics: {{count: 1, rate: 200Mbps}}
fabric: {{{fabric}}}
servers: {{count: 3, type: cpu-1}}
"""

JOB = """\
name: tiny
model: {{kind: gpt, layers: 3, hidden: 64, heads: 4, ffn_hidden: 256, seq: 32, vocab: 256}}
data: {{text: {data}}}
global_batch: 6
optimizer: {{kind: adam, lr: 1e-3}}
steps: {steps}
strategy: {{dp: 3, tp: 1, pp: 1}}
"""


def regatta(*arguments, **options):
    """Runs `regatta ARGUMENTS` to its end."""
    return subprocess.run([BIN / "regatta", *map(str, arguments)], capture_output=True, text=True,
                          timeout=options.pop("timeout", 60), **options)


def network_namespace(pid):
    """The network namespace of a process, or None when it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return None


def processes():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def wait_until(condition, limit_s):
    """True as soon as `condition` holds, False when it does not within the limit."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def bring_up_lab(case, suffix, text):
    """Brings up a lab for all tests of the class `case`, which gets its `folder`, `name` and `cluster`; skips them where none can be built,
    or where the hashes of its switches are not known. `text`: the cluster file, with {name}."""
    case.folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-system-"))
    case.addClassCleanup(shutil.rmtree, case.folder)
    case.name = f"test-{os.getpid()}-{suffix}"
    case.cluster = case.folder / "cluster.yaml"
    case.cluster.write_text(text.format(name=case.name))
    up = regatta("lab", "up", case.cluster)
    if up.returncode == 2:
        raise unittest.SkipTest(f"no lab can be built here: {up.stderr.strip()}")
    assert up.returncode == 0, up.stderr
    case.addClassCleanup(regatta, "lab", "down", case.name)
    if not pathlib.Path("/proc/sys/net/ipv4/fib_multipath_hash_seed").exists():
        raise unittest.SkipTest("this kernel has no hash seed per namespace: paths are not known")


class Run:
    """`regatta run` in the background; its output is kept."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([BIN / "regatta", "run", *map(str, arguments)], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def text(self):
        return "\n".join(self.lines)

    def wait_for_steps(self, limit_s=40):
        return wait_until(lambda: re.search(r": step \d+/", self.text()) or self.process.poll() is not None,
                          limit_s) and self.process.poll() is None

    def wait(self, limit_s):
        """The exit status; the process is killed, and None returned, when it takes longer."""
        try:
            self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
        finally:
            self.reader.join(5)
        return self.process.returncode


class LabCase(unittest.TestCase):
    """Each test has its own lab name and folder; skipped, with the reason, where no lab can be built."""

    steps = 100000
    fabric = "tiers: [leaf], servers_per_leaf: 3"

    @classmethod
    def setUpClass(cls):
        if not (BIN / "regatta-worker").exists():
            raise unittest.SkipTest("regatta-worker is not built: libtorch was not found")
        folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-system-"))
        try:
            name = f"probe-{os.getpid()}"
            (folder / "cluster.yaml").write_text(CLUSTER.format(name=name, fabric=cls.fabric))
            up = regatta("lab", "up", folder / "cluster.yaml")
            if up.returncode == 2:
                raise unittest.SkipTest(f"no lab can be built here: {up.stderr.strip()}")
            assert up.returncode == 0, up.stderr
            regatta("lab", "down", name)
        finally:
            shutil.rmtree(folder)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-system-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.name = f"test-{os.getpid()}-{self._testMethodName[-12:].replace('_', '-')}"
        self.cluster = self.folder / "cluster.yaml"
        self.cluster.write_text(CLUSTER.format(name=self.name, fabric=self.fabric))
        data = self.folder / "data.txt"
        data.write_text("the quick brown fox jumps over the lazy dog\n" * 400)
        self.job = self.folder / "job.yaml"
        self.job.write_text(JOB.format(data=data, steps=self.steps))
        self.shared_memory = set(os.listdir("/dev/shm"))
        self.home = network_namespace(os.getpid())

    def start(self, *arguments):
        """A run in the midst of its steps; ended by the test's clean-up if the test does not."""
        run = Run(self.job, "--cluster", self.cluster, "--no-report", *arguments)
        self.addCleanup(self.end, run)
        self.assertTrue(run.wait_for_steps(), run.text())
        self.remember()
        # The search for what is left is worth nothing if it finds nothing now.
        found = "; ".join(self.leftovers())
        kinds = ["process", "namespace", "folder", "the lab is up"]
        if os.geteuid() == 0:
            kinds.append("cgroup")
        for kind in kinds:
            self.assertIn(kind, found)
        return run

    def end(self, run):
        if run.process.poll() is None:
            run.process.kill()
        run.process.stdout.close()
        regatta("lab", "down", self.name)

    def fault(self, kind, target):
        done = regatta("lab", "fault", kind, target, "--lab", self.name)
        self.assertEqual(done.returncode, 0, done.stderr)

    def remember(self):
        """Notes the processes and namespaces of the lab, to look for them afterwards."""
        self.namespaces, self.members, self.workers = set(), set(), {}
        for pid in processes():
            command = command_of(pid)
            space = network_namespace(pid)
            if space and space != self.home and "regatta" in command and self.belongs(pid):
                self.namespaces.add(space)
                self.members.add(pid)
            if command.startswith("regatta-lab " + self.name):
                self.members.add(pid)
        servers = [f"s{i}" for i in range(3)]
        for server in servers:
            agent = [pid for pid in self.members if f"{self.name}/{server}." in command_of(pid)]
            self.assertEqual(len(agent), 1, f"one agent on {server}")
            space = network_namespace(agent[0])
            worker = [pid for pid in self.members if network_namespace(pid) == space and pid != agent[0]]
            self.assertEqual(len(worker), 1, f"one worker on {server}")
            self.workers[server] = worker[0]

    def belongs(self, pid):
        """An agent of this lab has its name in its socket; a worker is the child of such an agent."""
        for _ in range(3):
            if f"/{self.name}/" in command_of(pid):
                return True
            try:
                stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
            except OSError:
                return False
            pid = int(stat.rpartition(")")[2].split()[1])
        return False

    def leftovers(self):
        """What is still there of the lab, as sentences."""
        found = []
        for pid in processes():
            if pid in self.members and "regatta" in command_of(pid):
                found.append(f"process {pid}: {command_of(pid)}")
            if network_namespace(pid) in self.namespaces:
                found.append(f"process {pid} in a namespace of the lab")
        found += [f"cgroup {path}" for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/cpu")
                  for path in pathlib.Path(root).glob(f"**/*{self.name}*") if path.is_dir()]
        found += [f"folder {path}" for root in ("/run/regatta", "/tmp", os.environ.get("XDG_RUNTIME_DIR", "/run/regatta"))
                  for path in pathlib.Path(root).glob(f"**/{self.name}*")]
        found += [f"shared memory {name}" for name in set(os.listdir("/dev/shm")) - self.shared_memory
                  if "regatta" in name]
        if self.name in regatta("lab", "status").stdout:
            found.append("the lab is up")
        return found

    def leftovers_after_end(self):
        """The same for a lab that ended before anyone could look at its processes."""
        self.namespaces, self.members = set(), set()
        return self.leftovers()

    def assert_ends(self, run, sentence, limit_s=10):
        """The run ends in time with status 1 and the sentence, and leaves nothing."""
        begin = time.monotonic()
        status = run.wait(limit_s)
        took = time.monotonic() - begin
        self.assertEqual(status, 1, f"after {took:.1f} s: {run.text()[-2000:]}")
        self.assertRegex(run.lines[-1], sentence)
        print(f"  ended after {took:.1f} s: {run.lines[-1]}")
        self.assertEqual(self.leftovers(), [])

    @staticmethod
    def send(pid, number=signal.SIGKILL):
        os.kill(pid, number)
