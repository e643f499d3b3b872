"""GPU servers for tests: for each a stand-in device, a daemon that shares it, and `regatta gpu serve`."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["REGATTA_BIN"])
DRIVER = os.environ["REGATTA_STANDIN_CUDA"]
PROGRAM = [sys.executable, str(pathlib.Path(__file__).with_name("program.py"))]
MIB = 1 << 20
LOST = 46  # CUDA_ERROR_DEVICE_UNAVAILABLE


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    def __init__(self, case, folder, memory, driver=DRIVER, words=()):
        self.case, self.folder = case, folder
        os.mkdir(folder)
        os.chmod(folder, 0o755)  # host processes are another user's
        self.device, self.daemon_socket = folder + "/device", folder + "/daemon"
        case.start([BIN / "regatta-standin-device", "--socket", self.device, "--memory", memory])
        self.daemon = case.start([BIN / "regatta", "gpu", "daemon", "--state", folder + "/state", "--socket", self.daemon_socket,
                                  "--gpu", memory])
        case.wait_for(lambda: os.path.exists(self.device) and self.gpu("policy").returncode == 0)
        os.chmod(self.device, 0o666)
        self.address = f"127.0.0.1:{free_port()}"
        self.serve = case.start([BIN / "regatta", "gpu", "serve", "--listen", self.address, "--token-file", case.token,
                                 "--socket", self.daemon_socket, "--driver", driver, *words], REGATTA_STANDIN=self.device)
        host, port = self.address.split(":")

        def answers():
            with socket.socket() as one:
                return one.connect_ex((host, int(port))) == 0
        case.wait_for(answers)

    def gpu(self, *words):
        return subprocess.run([BIN / "regatta", "gpu", words[0], "--socket", self.daemon_socket, *words[1:]],
                              capture_output=True, text=True, timeout=30)

    def tenants(self):
        return json.loads(self.gpu("ps", "--json").stdout)["tenants"]

    def host_processes(self):
        """Of programs; the one that only keeps the tenant is left out."""
        found = []
        for tenant in self.tenants():
            found += sorted(process["pid"] for process in tenant["processes"] if process["name"].startswith("regatta-gpu-hos"))[1:]
        return found

    def free_memory(self):
        """As a program on the server itself sees it."""
        environment = {**os.environ, "REGATTA_STANDIN": self.device, "LD_LIBRARY_PATH": str(pathlib.Path(DRIVER).parent)}
        return int(subprocess.run([*PROGRAM, "show_free"], env=environment, capture_output=True, text=True, timeout=30).stdout)


class RemoteCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.chmod(self.folder, 0o755)
        self.token = self.folder + "/token"
        with open(self.token, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write("a token of the tests\n")

    def start(self, words, stdin=None, stdout=None, **environment):
        process = subprocess.Popen([str(word) for word in words], env={**os.environ, **environment}, stdin=stdin, stdout=stdout,
                                   stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for pipe in (process.stdin, process.stdout):
            if pipe:
                self.addCleanup(pipe.close)
        return process

    def wait_for(self, condition, seconds=15):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def server(self, name="one", memory="256MiB", **options):
        return Server(self, f"{self.folder}/{name}", memory, **options)

    def pool_words(self, servers, *words):
        return [BIN / "regatta", "gpu", "pool", "--servers", ",".join(getattr(one, "address", one) for one in servers),
                "--token-file", self.token, *words]

    def pool(self, servers, *words, **environment):
        return subprocess.run(self.pool_words(servers, *words), capture_output=True, text=True, timeout=90,
                              env={**os.environ, **environment})

    def run_program(self, servers, *words, memory="64MiB", **environment):
        return self.pool(servers, "run", "--memory", memory, "--compute", "10", "--", *PROGRAM, *words, **environment)

    def hold(self, servers, mebibytes=32, program="hold", **options):
        """A program that has memory, and what it says to a line."""
        process = self.start(self.pool_words(servers, "run", "--name", "held", "--memory", "64MiB", "--compute", "10", "--",
                                             *PROGRAM, program, str(mebibytes)),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def ask(self, process):
        process.stdin.write("\n")
        process.stdin.flush()
        return process.stdout.readline().split()

    def expect_lost_soon(self, process):
        self.assertEqual(self.ask(process), [str(LOST), "soon"])
        self.assertEqual(self.ask(process), [str(LOST), "soon"])
        self.assertIsNone(process.poll())


def kill(pid):
    os.kill(pid, signal.SIGKILL)
