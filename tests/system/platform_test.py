"""The platform as whole programs: up, jobs, killed controllers and agents, wrong inputs, and down, which leaves nothing."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import lab_case

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
OVER = {"succeeded", "failed", "cancelled"}


def wait_until(look, limit=8.0):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {limit} s")


class Platform(unittest.TestCase):
    """One platform of two nodes for all tests, which use jobs of their own."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-platform-"))
        cls.environment = {**os.environ, "XDG_STATE_HOME": str(cls.folder / "state"), "XDG_CONFIG_HOME": str(cls.folder / "config")}
        cls.state = cls.folder / "here"
        started = cls.regatta("up", "--nodes", 2, "--devices", 2, "--state", cls.state)
        assert started.returncode == 0, started.stderr
        cls.first_words = started.stdout

    @classmethod
    def tearDownClass(cls):
        cls.regatta("down", "--state", cls.state)
        shutil.rmtree(cls.folder)

    @classmethod
    def regatta(cls, *arguments, **options):
        return lab_case.regatta(*arguments, env=cls.environment, **options)

    def done(self, *arguments):
        done = self.regatta(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refused(self, status, *arguments):
        done = self.regatta(*arguments)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr.removeprefix("regatta: ").strip()

    def job_file(self, name, script, more=""):
        path = self.folder / f"{name}.yaml"
        path.write_text(f"name: {name}\ncommand: [sh, -c, '{script}']\nroles: [{{cpus: 0.5}}]\nqueue: default\n{more}")
        return path

    def submit(self, name, script, more=""):
        return self.done("submit", self.job_file(name, script, more)).strip()

    def job(self, handle):
        return json.loads(self.done("job", handle, "--json"))

    def phase(self, handle):
        return self.job(handle)["status"]["phase"]

    def pid_of(self, name):
        record = json.loads((self.state / "processes.json").read_text())
        return next(process["pid"] for process in record["processes"] if process["name"] == name)

    def agents(self):
        record = json.loads((self.state / "processes.json").read_text())
        return [process["name"] for process in record["processes"] if process["name"] != "controller"]

    def kill(self, name):
        pid = self.pid_of(name)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: lab_case.command_of(pid) == "")

    def up(self):
        return self.done("up", "--state", self.state)

    def test_runs_the_example_on_both_nodes_and_shows_its_output(self):
        done = self.regatta("submit", EXAMPLES / "submitted_job.yaml", "--wait")
        self.assertEqual(done.returncode, 0, done.stderr)
        handle = done.stdout.strip()
        self.assertRegex(handle, r"^hello-\d+$")
        self.assertIn(f"{handle}: succeeded", done.stderr)
        self.assertRegex(self.done("logs", handle, "--replica", 1), r"^rank 1 of 2 on node-")
        self.assertIn("succeeded", self.done("jobs", "--mine", "--limit", 5))
        self.assertEqual(sorted(self.connected()), sorted(self.agents()))

    def test_exits_with_the_status_of_the_job(self):
        done = self.regatta("submit", self.job_file("seven", "exit 7"), "--wait")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("failed", done.stderr)

    def test_follows_output_until_the_end_of_the_job(self):
        handle = self.submit("count", "for i in 1 2 3; do echo $i; sleep 0.2; done")
        self.assertEqual(self.done("logs", handle, "-f"), "1\n2\n3\n")

    def test_cancels_a_job_that_runs(self):
        handle = self.submit("long", "sleep 600")
        wait_until(lambda: self.phase(handle) == "running")
        self.done("cancel", handle)
        wait_until(lambda: self.phase(handle) == "cancelled")

    def test_starts_a_job_that_was_held_when_it_is_released(self):
        handle = self.submit("held", "true", "hold: true\n")
        self.assertIn("held", self.done("jobs", "--phase", "pending"))
        self.done("release", handle)
        wait_until(lambda: self.phase(handle) == "succeeded")
        waiting = self.submit("waiting", "true", "hold: true\n")
        self.done("hold", waiting)
        self.assertEqual(self.phase(waiting), "pending")
        self.done("cancel", waiting)

    def test_says_why_a_job_waits_and_what_would_happen(self):
        held = self.submit("kept", "true", "hold: true\n")
        self.assertIn("regatta release", self.done("why", held))
        self.done("cancel", held)
        large = self.folder / "large.yaml"
        large.write_text("name: large\ncommand: [sleep]\nroles: [{devices: 3}]\nqueue: default\n")
        tried = self.regatta("submit", large, "--dry-run")
        self.assertEqual(tried.returncode, 1, tried.stderr)
        handle = self.done("submit", large).strip()
        why = json.loads(self.done("why", handle, "--json"))
        self.assertFalse(why["fits"] or why["start"]["known"], why)
        self.assertEqual(why["position"], 1)
        self.done("cancel", handle)
        self.assertIn("starts now", self.done("submit", self.job_file("tried", "true"), "--dry-run"))
        self.assertEqual([job for job in json.loads(self.done("jobs", "--json")) if job["name"] == "tried"], [])

    def test_keeps_attempts_and_events(self):
        handle = self.submit("twice", "echo attempt $REGATTA_ATTEMPT; exit 3", "restart: {rule: on_failure, failures: 1, pause: 0.1s}\n")
        wait_until(lambda: self.phase(handle) == "failed")
        attempts = [line.split()[0] for line in self.done("job", handle).splitlines() if " ended " in line and "status 3" in line and "replica" not in line]
        self.assertEqual(attempts, ["1", "2"])
        self.assertEqual(self.done("logs", handle, "--attempt", 1), "attempt 1\n")
        self.assertEqual(json.loads(self.done("logs", handle, "--json"))["text"], "attempt 2")
        self.assertIn("no attempt 9", self.refused(1, "logs", handle, "--attempt", 9))
        events = [json.loads(line) for line in self.done("events", "--object", handle, "--since", "1h", "--json").splitlines()]
        self.assertEqual([events[0]["reason"], events[-1]["reason"]], ["submitted", "failed"])

    def test_backs_up_and_restores(self):
        handle = self.submit("saved", "true", "hold: true\n")
        self.addCleanup(self.done, "cancel", handle)
        self.done("backup", self.folder / "saved.db")
        self.assertIn("is there already", self.refused(2, "backup", self.folder / "saved.db"))
        self.assertIn("restored", self.done("restore", self.folder / "saved.db", "--state", self.folder / "restored"))
        self.assertTrue((self.folder / "restored" / "regatta.db").exists())

    def test_completes_commands_and_handles_in_bash(self):
        handle = self.submit("completed", "true")
        script = f"""source <({lab_case.BIN}/regatta completion bash)
            complete_line() {{ COMP_WORDS=({lab_case.BIN}/regatta "$@"); COMP_CWORD=$#; _regatta; echo "${{COMPREPLY[@]}}"; }}
            complete_line canc; complete_line logs complet; complete_line drain node-; complete_line jobs --phase runn; complete_line jobs --que"""
        done = subprocess.run(["bash", "-c", script], env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.stdout.splitlines(), ["cancel", handle, " ".join(sorted(self.agents())), "running", "--queue"], done.stderr)

    def test_uses_no_node_that_is_cordoned(self):
        first, second = self.agents()
        self.addCleanup(self.done, "resume", first)
        self.assertIn("cordoned", self.done("cordon", first))
        handle = self.submit("placed", "echo $REGATTA_NODE")
        wait_until(lambda: self.phase(handle) == "succeeded")
        self.assertEqual(self.done("logs", handle), second + "\n")
        self.assertIn("draining", self.done("drain", first))
        self.assertNotIn("draining", self.done("resume", first))

    # Its name is the last: from then on a job has to name its queue, which the example does not.
    def test_yields_to_quotas_and_makes_tokens(self):
        queues = self.folder / "queues.yaml"
        queues.write_text("queues:\n  - {name: default, guaranteed: {cpus: 1}}\n  - {name: other}\n")
        self.assertIn("other", self.done("queues", "--set", queues))
        self.assertRegex(self.done("token", "--name", "ci"), r"^rgt_\S{43}\n$")
        self.assertRegex(self.done("token", "--join", "--uses", 2), r"^rg1\.[0-9a-f]{64}\.[0-9a-f]{16}\.\S{43}\n$")
        self.assertIn("ci", self.done("tokens"))
        self.assertIn("there is none", self.refused(1, "token", "--user", "ada"))
        self.assertRegex(self.done("users", "--set", "ada", "--role", "viewer"), r"ada +viewer")
        secret = self.folder / "ada.token"
        secret.write_text(self.done("token", "--user", "ada"))
        self.assertIn("it needs user", self.refused(2, "submit", EXAMPLES / "submitted_job.yaml", "--token-file", secret))
        self.assertEqual(self.done("jobs", "--mine", "--token-file", secret), "no jobs\n")

    def test_lets_a_server_join_and_leave(self):
        url = json.loads((self.state / "processes.json").read_text())["url"]
        other = self.folder / "other.json"
        self.done("login", "--server", url, "--ca", self.state / "controller/ca.pem", "--token-file", self.state / "controller/admin.token", "--context", other)
        token = self.done("token", "--join", "--context", other).strip()
        state, name = self.folder / "joined", f"joined-{os.getpid()}"
        wrong = self.refused(1, "join", token[:-1] + ("a" if token[-1] != "a" else "b"), "--server", url, "--name", name, "--state", state)
        self.assertIn("token", wrong)
        self.assertIn(name, self.done("join", token, "--server", url, "--name", name, "--state", state))
        wait_until(lambda: name in self.connected())
        self.done("drain", name)  # else jobs go there until it counts as silent
        self.assertIn("1 agent", self.done("down", "--state", state))
        wait_until(lambda: name not in self.connected())

    def connected(self):
        return [node["name"] for node in json.loads(self.done("nodes", "--json")) if node["status"]["connected"]]

    def test_prints_events_as_lines(self):
        watch = subprocess.Popen([lab_case.BIN / "regatta", "events", "--kinds", "job", "--json"], stdout=subprocess.PIPE, text=True, env=self.environment)
        self.addCleanup(watch.stdout.close)
        self.addCleanup(watch.wait, 5)
        self.addCleanup(watch.kill)
        time.sleep(0.3)
        handle = self.submit("seen", "true")
        wait_until(lambda: self.phase(handle) == "succeeded")
        for line in watch.stdout:
            event = json.loads(line)
            self.assertEqual(event["kind"], "job")
            if (event["object"]["handle"], event["object"]["status"]["phase"]) == (handle, "succeeded"):
                break

    def test_a_job_ends_once_though_the_controller_and_its_agent_are_killed(self):
        marks = self.folder / "marks"
        handle = self.submit("kept", f"echo begin >> {marks}; sleep 2.5; echo end >> {marks}")
        wait_until(lambda: self.phase(handle) == "running")
        node = self.job(handle)["status"]["attempt"]["replicas"][0]["node"]
        self.kill("controller")
        self.kill(node)
        self.assertIn("the platform runs:", self.up())
        self.assertIn("runs already", self.up())
        wait_until(lambda: self.phase(handle) in OVER)
        job = self.job(handle)
        self.assertEqual((job["status"]["phase"], job["status"]["attempts"]), ("succeeded", 1))
        self.assertEqual(marks.read_text(), "begin\nend\n")

    def test_says_what_is_wrong_with_the_input(self):
        self.assertIn("examples/submitted_training.yaml", self.refused(2, "submit", EXAMPLES / "job.yaml"))
        bad = self.folder / "bad.yaml"
        bad.write_text("name: x\ncommand: [true]\nroles: [{cpus: 1}]\nrestrt: {}\n")
        self.assertRegex(self.refused(2, "submit", bad), r"bad\.yaml:4: .*restart")
        self.assertIn("no-such", self.refused(2, "submit", self.folder / "no-such.yaml"))
        self.assertIn("list them with regatta jobs", self.refused(1, "job", "none-999999"))
        self.assertIn("list them with regatta nodes", self.refused(1, "drain", "none"))
        self.assertIn("job,node,queues".split(",")[1], self.refused(2, "events", "--kinds", "jobs"))
        self.assertIn("regatta down", self.refused(1, "up", "--nodes", 3, "--state", self.state))
        (self.folder / "token").write_text("rgt_wrong\n")
        self.assertIn("token", self.refused(2, "jobs", "--token-file", self.folder / "token"))
        self.assertIn("regatta login", self.refused(2, "jobs", "--context", self.folder / "none.json"))
        self.assertIn("refused", self.refused(1, "nodes", "--server", "https://127.0.0.1:1").lower())


@unittest.skipUnless(os.geteuid() == 0, "a daemon at the usual socket of a mount namespace needs root")
class PlatformWithGpuDaemon(unittest.TestCase):
    """A GPU daemon, over the stand-in driver, holds a job to its part of a device."""

    def start(self, *words):
        process = subprocess.Popen(list(map(str, words)), stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_holds_a_job_to_its_part_and_leaves_no_tenant(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-slices-"))
        self.addCleanup(shutil.rmtree, folder)
        folder.chmod(0o755)
        programs = lab_case.BIN.resolve()
        standin = programs.parent / "tests/standin"
        device, place = folder / "device", "/run/regatta-gpu"
        self.start(programs / "regatta-standin-device", "--socket", device, "--memory", "1GiB")
        # Programs look for the daemon at one socket alone, which other tests of this machine may use, too.
        holder = self.start("unshare", "--mount", "sh", "-c", f"mount -t tmpfs none /run && mkdir {place} && echo > {folder}/ready && exec sleep 120")
        wait_until(lambda: (folder / "ready").exists())
        inside = ["nsenter", "--mount", f"--target={holder.pid}", f"--wdns={folder}"]
        self.start(*inside, programs / "regatta", "gpu", "daemon", "--state", folder / "gpu-state", "--gpu", "1GiB")
        environment = {**os.environ, "XDG_CONFIG_HOME": str(folder / "config"), "REGATTA_STANDIN": str(device), "LD_LIBRARY_PATH": str(standin)}

        def regatta(*arguments):
            return subprocess.run(list(map(str, [*inside, programs / "regatta", *arguments])), env=environment, capture_output=True, text=True, timeout=60)

        def run(*arguments):
            done = regatta(*arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        wait_until(lambda: regatta("gpu", "policy").returncode == 0)
        state = folder / "here"
        self.addCleanup(regatta, "down", "--state", state)
        run("up", "--devices", 1, "--device-memory", "1GiB", "--gpu-daemon", f"{place}/socket", "--state", state)
        job = folder / "job.yaml"
        job.write_text(f"name: part\ncommand: [sh, -c, '{programs}/regatta-test-cuda take {2 << 20} </dev/null; sleep 1']\n"
                       f"environment: {{REGATTA_STANDIN: {device}, LD_LIBRARY_PATH: {standin}}}\n"
                       "roles: [{cpus: 0.1, devices: 1, share: 30%, device_memory: 100MiB}]\n")
        handle = run("submit", job).strip()
        tenants = wait_until(lambda: json.loads(run("gpu", "ps", "--json"))["tenants"])
        self.assertEqual([(one["name"], one["compute_percent"]) for one in tenants], [("job-1.1.0", 30)])
        wait_until(lambda: "succeeded" in run("job", handle))
        self.assertIn("50, then 2", run("logs", handle))  # blocks of 2 MiB: no more than 100 MiB
        self.assertEqual(json.loads(run("gpu", "ps", "--json"))["tenants"], [])


class PlatformOfOneTest(unittest.TestCase):
    def test_down_leaves_nothing_though_some_were_killed(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-down-"))
        self.addCleanup(shutil.rmtree, folder)
        environment = {**os.environ, "XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder)}
        state = folder / "here"

        def run(*arguments):
            return lab_case.regatta(*arguments, env=environment)

        self.addCleanup(run, "down", "--state", state)
        self.assertEqual(run("up", "--nodes", 2, "--state", state).returncode, 0)
        context = folder / "config/regatta/context.json"
        self.assertEqual(context.stat().st_mode & 0o777, 0o600)
        job = folder / "job.yaml"
        job.write_text("name: forks\ncommand: [sh, -c, 'setsid sleep 300 & sleep 300']\nroles: [{replicas: 2, cpus: 0.5}]\n")
        handle = run("submit", job).stdout.strip()
        wait_until(lambda: "running" in run("jobs").stdout)
        record = json.loads((state / "processes.json").read_text())
        for process in record["processes"][:2]:  # the controller, and one agent
            os.kill(process["pid"], signal.SIGKILL)
        done = run("down", "--state", state)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 agent", done.stdout)
        self.assertIn("2 processes had ended before", done.stdout)
        left = [lab_case.command_of(pid) for pid in lab_case.processes() if str(state) in lab_case.command_of(pid) or self.is_rank(pid, state)]
        self.assertEqual(left, [], handle)
        self.assertEqual([path for path in record["cgroups"] if os.path.exists(path)], [])
        self.assertIn("0 jobs, 0 agents", run("down", "--state", state).stdout)

    @staticmethod
    def is_rank(pid, state):
        try:
            return f"REGATTA_RUN={state}".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False


if __name__ == "__main__":
    unittest.main()
