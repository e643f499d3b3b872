"""A controller and its agents as processes that a proof kills, cuts off and starts again, and a client of their API."""
import getpass
import hashlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import threading
import time

BIN = pathlib.Path(os.environ.get("REGATTA_BIN", pathlib.Path(__file__).parents[2] / "build/dev/bin"))
OVER = {"succeeded", "failed", "cancelled"}
NO_ANSWER = (OSError, http.client.HTTPException, ssl.SSLError)


def wait_until(look, limit, what):
    """The first true answer of `look`; fails after `limit` seconds."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"not within {limit} s: {what}")


class Client:
    """A kept connection. Any failure of it raises one of NO_ANSWER, and the next request connects anew."""

    def __init__(self, platform, timeout=10.0):
        self.platform = platform
        self.timeout = timeout
        self.connection = None

    def ask(self, method, path, body=None, headers=None):
        """Status and JSON of the answer."""
        if self.connection is None:
            self.connection = http.client.HTTPSConnection(self.platform.host, self.platform.port, timeout=self.timeout,
                                                          context=self.platform.tls())
        try:
            self.connection.request(method, path, json.dumps(body) if body is not None else None,
                                    {"Authorization": f"Bearer {self.platform.token()}", **(headers or {})})
            answer = self.connection.getresponse()
            text = answer.read()
        except NO_ANSWER:
            self.close()
            raise
        return answer.status, json.loads(text) if text else None

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def insist(self, method, path, body=None, headers=None, limit=60.0):
        """Asks until there is an answer; for requests that may come twice."""
        end = time.monotonic() + limit
        while True:
            try:
                status, answer = self.ask(method, path, body, headers)
                if status not in (429, 503, 504):
                    return status, answer
            except NO_ANSWER:
                pass
            assert time.monotonic() < end, f"{method} {path}: no answer within {limit} s"
            time.sleep(0.01)


class Platform:
    """Programs below a folder. `wrap` of a start stands before the command, such as ["ip", "netns", "exec", NAME]."""

    def __init__(self, folder, agents, devices=8, binaries=BIN):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.binaries = pathlib.Path(binaries)
        self.devices = devices
        self.agents = agents
        self.host, self.port = "127.0.0.1", 0
        self.ports = {}  # of agents that reach the controller through another one
        self.address = "127.0.0.1"
        self.processes = {}  # by name
        self.wraps = {}
        self.environments = {}
        self.options = {}
        self.joined = set()
        self.lock = threading.Lock()
        self.context = None

    def tls(self):
        if self.context is None:
            self.context = ssl.create_default_context(cafile=self.folder / "controller/ca.pem")
            self.context.check_hostname = False
        return self.context

    def authority_hash(self):
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert((self.folder / "controller/ca.pem").read_text())).hexdigest()

    def token(self):
        return (self.folder / "controller/admin.token").read_text().strip()

    def start(self, name, command, environment=None):
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(self.wraps.get(name, []) + list(map(str, command)) + self.options.get(name, []),
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0,
                                       env={**os.environ, **self.environments.get(name, {}), **(environment or {})})
        with self.lock:
            self.processes[name] = process
        return process

    def start_controller(self, limit=30.0):
        """Returns when it serves; None when it ended before."""
        ready = self.folder / "ready"
        ready.unlink(missing_ok=True)
        process = self.start("controller", [self.binaries / "regatta-controller", "--state", self.folder / "controller", "--port", self.port,
                                            "--address", self.address, "--host", self.address, "--admin", getpass.getuser(), "--ready-file", ready])
        end = time.monotonic() + limit
        while not ready.exists():
            if process.poll() is not None:
                return None
            assert time.monotonic() < end, f"{self.folder}/controller.log: it does not serve"
            time.sleep(0.002)
        self.port = int(ready.read_text().strip().rsplit(":", 1)[1])
        return process

    def start_agent(self, name):
        environment = {}
        if name not in self.joined:
            status, answer = Client(self).insist("POST", "/v1/tokens", {"name": name, "use": "join", "uses": 1, "lifetime": "1h"})
            assert status < 300, answer
            environment["REGATTA_JOIN_TOKEN"] = f"rg1.{self.authority_hash()}.{answer['token']['id']}.{answer['secret']}"
            self.joined.add(name)
        return self.start(name, [self.binaries / "regatta-node-agent", "--controller", f"https://{self.host}:{self.ports.get(name, self.port)}", "--name", name,
                                 "--state", self.folder / name, "--address", "127.0.0.1", "--devices", self.devices,
                                 "--device-type", "emulated", "--grace", 2], environment)

    def names(self):
        return [f"{self.folder.name}-{i}" for i in range(self.agents)]

    def start_all(self):
        assert self.start_controller(), f"{self.folder}/controller.log: it ended"
        for name in self.names():
            self.start_agent(name)
        self.wait_connected(30)

    def wait_connected(self, limit):
        client = Client(self)

        def connected():
            try:
                nodes = client.ask("GET", "/v1/nodes")[1]["items"]
            except (*NO_ANSWER, KeyError):
                return False
            return len([node for node in nodes if node["status"]["connected"] and not node["status"]["silent"]]) == self.agents
        wait_until(connected, limit, "all agents are connected")

    def kill(self, name, number=signal.SIGKILL):
        with self.lock:
            process = self.processes.pop(name)
        os.kill(process.pid, number)
        process.wait()

    def restart(self, name):
        return self.start_controller() if name == "controller" else self.start_agent(name)

    def left_processes(self):
        """Of supervisors and ranks of this platform: (pid, command line)."""
        mark = str(self.folder).encode() + b"/"
        own = {process.pid for process in self.processes.values()} | {os.getpid()}
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) in own:
                continue
            try:
                command, variables = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"REGATTA_RUN=" + mark in variables or (b"regatta-supervisor" in command and mark in command):
                found.append((int(entry.name), command.replace(b"\0", b" ").decode(errors="replace")))
        return found

    def left_cgroups(self):
        return [str(path) for name in self.names() for path in pathlib.Path("/sys/fs/cgroup").glob(f"**/regatta-{name}/*.*.*") if path.is_dir()]

    def run_folders(self, name):
        return [path.name for path in (self.folder / name / "runs").glob("*")]

    def stop(self, remove=True):
        """Ends everything, whatever state it is in."""
        with self.lock:
            processes, self.processes = list(self.processes.values()), {}
        for process in processes:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGCONT)
                process.kill()
            process.wait()
        for pid, _ in self.left_processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.05)
        for folder in [path for name in self.names() for path in pathlib.Path("/sys/fs/cgroup").glob(f"**/regatta-{name}")]:
            for group in [*folder.iterdir(), folder]:
                try:
                    group.rmdir()
                except OSError:
                    pass
        if remove:
            shutil.rmtree(self.folder, ignore_errors=True)
