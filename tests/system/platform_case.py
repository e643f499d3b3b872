"""Controllers and agents of the platform as processes of a test, and requests to them."""
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
import tempfile
import time
import unittest
import urllib.parse

import lab_case


def wait_until(look, limit=10.0):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {limit} s")


class Controller:
    """A regatta-controller with a state folder of its own."""

    def __init__(self, folder, *arguments, port=0, environment=None):
        self.state = pathlib.Path(folder)
        self.arguments = arguments
        self.environment = {**os.environ, **(environment or {})}
        self.port = port
        self.process = None

    def start(self):
        ready = self.state / "url"
        ready.parent.mkdir(parents=True, exist_ok=True)
        ready.unlink(missing_ok=True)
        log = open(self.state / "controller.log", "ab")
        self.process = subprocess.Popen(
            [lab_case.BIN / "regatta-controller", "--state", self.state, "--port", str(self.port), "--ready-file", ready,
             "--admin", getpass.getuser(), *self.arguments],
            stdout=log, stderr=log, env=self.environment)
        log.close()
        wait_until(lambda: ready.exists() and ready.read_text().endswith("\n"))
        self.url = ready.read_text().strip()
        self.port = urllib.parse.urlsplit(self.url).port
        return self

    def end(self, number=signal.SIGTERM):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(number)
        self.process.wait(10)
        self.process = None


class Api:
    """Requests with the first user's token. They are not sent on to other controllers."""

    def __init__(self, state):
        self.context = ssl.create_default_context(cafile=state / "ca.pem")
        self.token = (state / "admin.token").read_text().strip()
        self.connections = {}  # by port
        self.authority = hashlib.sha256(ssl.PEM_cert_to_DER_cert((state / "ca.pem").read_text())).hexdigest()

    def join_token(self, port):
        status, text = self.ask(port, "POST", "/v1/tokens", {"use": "join"})
        assert status == 201, text
        made = json.loads(text)
        return f"rg1.{self.authority}.{made['token']['id']}.{made['secret']}"

    def close(self):
        for connection in self.connections.values():
            connection.close()
        self.connections.clear()

    def ask(self, port, method, path, body=None, limit=1.0, **headers):
        """The status and the text of the answer; (0, reason) without one."""
        kept = self.connections.pop(port, None)
        connection = kept or http.client.HTTPSConnection("127.0.0.1", port, timeout=limit, context=self.context)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Authorization": f"Bearer {self.token}", **{name.replace("_", "-"): value for name, value in headers.items()}})
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return 0, str(error)
        self.connections[port] = connection
        return answer.status, text

    def get(self, port, path):
        status, text = self.ask(port, "GET", path)
        return json.loads(text) if status == 200 else None


class PlatformCase(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-platform-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.agents = {}

    def start_agent(self, name, urls, token, environment=None):
        log = open(self.folder / f"{name}.log", "ab")
        self.agents[name] = subprocess.Popen(
            [lab_case.BIN / "regatta-node-agent", "--controller", urls, "--state", self.folder / name, "--name", name, "--devices", "2",
             "--device-type", "cpu", "--grace", "1"],
            stdout=log, stderr=log, env={**os.environ, "REGATTA_JOIN_TOKEN": token, **(environment or {})})
        log.close()
        self.addCleanup(self.end_server, name)

    def processes_of(self, name):
        """The agent of a server, its supervisors, and their ranks: by the paths and variables that name its state folder."""
        mark = str(self.folder / name).encode()
        found = []
        for pid in lab_case.processes():
            try:
                entry = pathlib.Path(f"/proc/{pid}")
                if mark + b"\0" in entry.joinpath("cmdline").read_bytes() or mark + b"/" in entry.joinpath("cmdline").read_bytes() \
                        or mark + b"/" in entry.joinpath("environ").read_bytes():
                    found.append(pid)
            except OSError:
                pass
        return found

    def end_server(self, name, number=signal.SIGKILL):
        """As the loss of its power: nothing on it runs on."""
        agent = self.agents.get(name)
        for _ in range(3):
            for pid in self.processes_of(name):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
        if agent is not None and number == signal.SIGKILL:
            agent.wait(10)
            self.agents[name] = None


def new_job(name, script, **more):
    return {"name": name, "command": ["sh", "-c", script], "roles": [{"devices": 1}], **more}
