"""What the platform measures, as whole programs: a real Prometheus scrapes controller and agent over TLS, alerts reach an HTTPS
receiver and a mail server that begins TLS, and the dashboards ask for what is there."""
import base64
import getpass
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

import lab_case

DASHBOARDS = pathlib.Path(__file__).parents[2] / "dashboards"
SECRET = "webhook-secret"
PASSWORD = "mail-password"


def wait_until(look, limit=20.0):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {limit} s")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Receiver:
    """An HTTPS server that refuses the first request with 503 and keeps the others."""

    def __init__(self, certificate, key):
        self.requests = []
        self.refused = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if outer.refused == 0:
                    outer.refused += 1
                    self.send_response(503)
                else:
                    outer.requests.append((dict(self.headers), body))
                    self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"https://127.0.0.1:{self.server.server_address[1]}/hook"


class MailServer:
    """Speaks enough of SMTP (RFC 5321) with STARTTLS (RFC 3207): takes no mail and no password without TLS."""

    def __init__(self, certificate, key):
        self.mails = []
        self.port = free_port()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        ready = threading.Event()
        threading.Thread(target=self.run, args=(ready,), daemon=True).start()
        ready.wait(5)

    def run(self, ready):
        listener = socket.create_server(("127.0.0.1", self.port))
        ready.set()
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        is_safe, login, mail = False, "", []
        stream = connection.makefile("rwb")

        def say(text):
            stream.write(text.encode() + b"\r\n")
            stream.flush()

        say("220 test")
        while line := stream.readline().decode().strip():
            verb = line.upper().split(" ")[0]
            if verb == "EHLO":
                say("250-test")
                say("250 AUTH PLAIN" if is_safe else "250 STARTTLS")
            elif verb == "STARTTLS":
                say("220 go ahead")
                stream = self.context.wrap_socket(connection, server_side=True).makefile("rwb")
                is_safe = True
            elif verb == "AUTH" and is_safe:
                login = line.split(" ")[2] if line.count(" ") == 2 else (say("334 "), stream.readline().decode().strip())[1]
                say("235 welcome")
            elif verb in ("MAIL", "RCPT") and is_safe:
                mail.append(line)
                say("250 ok")
            elif verb == "DATA" and is_safe:
                say("354 go on")
                while (text := stream.readline().decode()) != ".\r\n":
                    mail.append(text.rstrip("\r\n"))
                self.mails.append((login, mail))
                mail = []
                say("250 taken")
            elif verb == "QUIT":
                say("221 bye")
                return
            else:
                say("530 begin TLS first")


class Monitoring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-monitoring-"))
        cls.processes = []
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", cls.folder / "key.pem",
                        "-out", cls.folder / "cert.pem"], check=True, capture_output=True)
        cls.receiver = Receiver(cls.folder / "cert.pem", cls.folder / "key.pem")
        cls.mail = MailServer(cls.folder / "cert.pem", cls.folder / "key.pem")
        (cls.folder / "secret").write_text(SECRET + "\n")
        (cls.folder / "password").write_text(PASSWORD + "\n")
        (cls.folder / "alerts.yaml").write_text(
            f"webhooks: [{{url: '{cls.receiver.url}', secret_file: {cls.folder}/secret, ca: {cls.folder}/cert.pem}}]\n"
            f"mails: [{{url: 'smtp://127.0.0.1:{cls.mail.port}', from: regatta@example, to: [ops@example], user: regatta, "
            f"password_file: {cls.folder}/password, ca: {cls.folder}/cert.pem}}]\n")
        cls.state = cls.folder / "controller"
        cls.start_controller(0)
        cls.token = (cls.state / "admin.token").read_text().strip()
        cls.access = ["--server", cls.url, "--ca", cls.state / "ca.pem", "--token-file", cls.state / "admin.token"]
        joined = lab_case.regatta("token", "--join", *cls.access)
        assert joined.returncode == 0, joined.stderr
        (cls.folder / "agent.token").write_text("agent-secret\n")
        cls.agent_port = free_port()
        cls.start("regatta-node-agent", "--controller", cls.url, "--name", "n0", "--state", cls.folder / "node", "--address", "127.0.0.1",
                  "--devices", 2, "--device-type", "h100", "--metrics-port", cls.agent_port, "--metrics-address", "127.0.0.1",
                  "--metrics-token-file", cls.folder / "agent.token",
                  environment={"REGATTA_JOIN_TOKEN": joined.stdout.split()[0]})

    @classmethod
    def tearDownClass(cls):
        for process in reversed(cls.processes):
            process.terminate()
            process.wait(10)
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def start(cls, program, *arguments, environment=None):
        path = pathlib.Path(os.environ["REGATTA_BIN"]) / program if program.startswith("regatta") else program
        with open(cls.folder / f"{program}.log", "ab") as log:
            process = subprocess.Popen([path, *map(str, arguments)], stdout=log, stderr=log, env={**os.environ, **(environment or {})})
        cls.processes.append(process)
        return process

    @classmethod
    def start_controller(cls, port):
        ready = cls.folder / "ready"
        ready.unlink(missing_ok=True)
        cls.controller = cls.start("regatta-controller", "--state", cls.state, "--admin", getpass.getuser(), "--port", port, "--ready-file", ready, "--price", "h100=3600",
                                   "--alerts-to", cls.folder / "alerts.yaml")
        wait_until(ready.exists)
        cls.url = ready.read_text().strip()

    def regatta(self, *arguments):
        done = lab_case.regatta(*arguments, *self.access)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def get(self, target):
        request = urllib.request.Request(self.url + target, headers={"Authorization": f"Bearer {self.token}"})
        context = ssl.create_default_context(cafile=self.state / "ca.pem")
        with urllib.request.urlopen(request, context=context, timeout=10) as answer:
            return answer.read()

    def submit(self, name, script, devices=1):
        path = self.folder / f"{name}.yaml"
        path.write_text(f"name: {name}\ncommand: [sh, -c, '{script}']\nroles: [{{devices: {devices}}}]\n")
        return self.regatta("submit", path).strip()

    def query(self, expression):
        done = subprocess.run(["promtool", "query", "instant", "-o", "json", self.prometheus, expression], capture_output=True, text=True, timeout=20)
        self.assertEqual(done.returncode, 0, f"{expression}: {done.stderr}")
        return json.loads(done.stdout)

    def values(self, expression):
        return [float(sample["value"][1]) for sample in self.query(expression)]

    def start_prometheus(self):
        port = free_port()
        (self.folder / "prometheus.yaml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [
                {"job_name": "controller", "scheme": "https", "authorization": {"credentials_file": str(self.state / "admin.token")},
                 "tls_config": {"ca_file": str(self.state / "ca.pem")}, "static_configs": [{"targets": [self.url.removeprefix("https://")]}]},
                {"job_name": "agent", "scheme": "https", "authorization": {"credentials_file": str(self.folder / "agent.token")},
                 "tls_config": {"ca_file": str(self.state / "ca.pem"), "server_name": "n0.node.regatta.internal"},
                 "static_configs": [{"targets": [f"127.0.0.1:{self.agent_port}"]}]}]}))
        self.start("prometheus", f"--config.file={self.folder}/prometheus.yaml", f"--storage.tsdb.path={self.folder}/prometheus",
                   f"--web.listen-address=127.0.0.1:{port}")
        self.prometheus = f"http://127.0.0.1:{port}"
        wait_until(lambda: subprocess.run(["promtool", "query", "instant", self.prometheus, "up"], capture_output=True).returncode == 0)

    def check_metrics(self, text):
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=20)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))

    def agent_metrics(self):
        context = ssl.create_default_context(cafile=self.state / "ca.pem")
        context.check_hostname = False
        request = urllib.request.Request(f"https://127.0.0.1:{self.agent_port}/metrics", headers={"Authorization": "Bearer agent-secret"})
        with urllib.request.urlopen(request, context=context, timeout=5) as answer:
            return answer.read()

    def test_a_job_shows_its_use_to_the_api_and_to_prometheus(self):
        if shutil.which("prometheus") is None or shutil.which("promtool") is None:
            self.skipTest("prometheus is not installed")
        handle = self.submit("busy", "i=0; while :; do i=$((i+1)); [ $((i % 20000)) -ne 0 ] || sleep 0.2; done")
        used = wait_until(lambda: (lambda job: job if job["used_device_seconds"] > 0 else None)(json.loads(self.get(f"/v1/jobs/{handle}/devices"))))
        self.assertGreater(used["device_seconds"], used["used_device_seconds"])
        self.assertIn(json.loads(self.get("/v1/devices/n0/history"))["source"], ("cgroups", "processes"))
        tenant = json.loads(self.get("/v1/tenants"))["items"][0]
        self.assertEqual((tenant["queue"], tenant["user"], tenant["devices"], tenant["starts"]), ("default", getpass.getuser(), 1, 1))
        self.assertAlmostEqual(tenant["money"], tenant["device_seconds"], delta=1e-3 * tenant["money"])  # 3600 an hour
        self.assertIn(getpass.getuser(), self.regatta("tenants"))
        self.check_metrics(self.get("/metrics"))
        self.check_metrics(wait_until(self.agent_metrics))
        self.start_prometheus()
        wait_until(lambda: self.values("sum(up)") == [2.0])
        wait_until(lambda: self.values('regatta_devices{state="used"}') == [1.0])
        self.assertEqual(self.values("count(regatta_device_use_ratio)"), [2.0])
        wait_until(lambda: self.values("max(regatta_device_use_ratio) > 0"))
        names = {sample["metric"]["__name__"] for sample in self.query('{__name__=~"regatta_.+"}')}
        for path in sorted(DASHBOARDS.glob("*.json")):
            for panel in json.loads(path.read_text())["panels"]:
                for target in panel.get("targets", []):
                    expression = target["expr"].replace("$__rate_interval", "1m")
                    self.query(expression)
                    self.assertLessEqual(set(re.findall(r"regatta_\w+", expression)), names, path.name)
        self.regatta("cancel", handle)

    def test_an_alert_reaches_the_receivers_once_and_survives_a_restart(self):
        rules = self.folder / "rules.yaml"
        rules.write_text("rules: [{name: failed, kind: job_failed}]\n")
        self.assertIn("job_failed", self.regatta("alerts", "--rules", rules))
        self.submit("bad", "exit 3")
        wait_until(lambda: self.receiver.requests and self.mail.mails)
        self.assertEqual(self.receiver.refused, 1)  # and so it was tried again
        headers, body = self.receiver.requests[0]
        self.assertEqual(headers["X-Regatta-Signature"], "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest())
        message = json.loads(body)
        self.assertEqual((message["phase"], message["alert"]["rule"]), ("firing", "failed"))
        self.assertRegex(message["alert"]["text"], r"^job bad-\d+: it failed")
        login, mail = self.mail.mails[0]
        self.assertEqual(base64.b64decode(login).split(b"\0")[1:], [b"regatta", PASSWORD.encode()])
        self.assertIn("RCPT TO:<ops@example>", mail)
        self.assertTrue(any(line.startswith("Subject: [regatta] firing: job bad-") for line in mail), mail)
        wait_until(lambda: b'"firing"' in self.get("/v1/alerts"))
        time.sleep(1.5)  # that it was told is stored
        self.controller.send_signal(signal.SIGKILL)
        self.controller.wait()
        self.processes.remove(self.controller)
        self.start_controller(self.url.rsplit(":", 1)[1])
        self.assertIn(b'"firing"', self.get("/v1/alerts"))
        self.assertIn("firing", self.regatta("alerts"))
        time.sleep(2.5)
        self.assertEqual((len(self.receiver.requests), len(self.mail.mails)), (1, 1))


if __name__ == "__main__":
    unittest.main()
