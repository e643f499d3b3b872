"""Attacks on the API of a running controller: forged certificates, replayed tokens, smuggled requests, slow clients, nested texts, foreign pages, forged lines."""
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.parse

import lab_case

UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


class ApiAttacks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-attacks-"))
        cls.environment = {**os.environ, "XDG_STATE_HOME": str(cls.folder), "XDG_CONFIG_HOME": str(cls.folder / "config")}
        cls.state = cls.folder / "here"
        started = cls.regatta("up", "--nodes", 1, "--devices", 1, "--state", cls.state)
        assert started.returncode == 0, started.stderr
        cls.words = started.stdout
        context = json.loads((cls.folder / "config/regatta/context.json").read_text())
        cls.address = urllib.parse.urlparse(context["server"])
        cls.ca = context["ca"]
        cls.token = context["token"]
        cls.node = json.loads(cls.regatta("nodes", "--json").stdout)[0]["name"]

    @classmethod
    def tearDownClass(cls):
        cls.regatta("down", "--state", cls.state)
        shutil.rmtree(cls.folder)

    @classmethod
    def regatta(cls, *arguments):
        return lab_case.regatta(*arguments, env=cls.environment)

    def connect(self, certificate=None, key=None):
        tls = ssl.create_default_context(cadata=self.ca)
        if certificate:
            tls.load_cert_chain(certificate, key)
        plain = socket.create_connection((self.address.hostname, self.address.port), timeout=15)
        connection = tls.wrap_socket(plain, server_hostname=self.address.hostname)
        self.addCleanup(connection.close)
        return connection

    def answer(self, text, connection=None):
        """All that comes until the server ends the connection."""
        connection = connection or self.connect()
        connection.sendall(text if isinstance(text, bytes) else text.encode())
        parts = []
        try:
            while part := connection.recv(65536):
                parts.append(part)
        except (ConnectionError, ssl.SSLError):
            pass
        return b"".join(parts).decode(errors="replace")

    def request(self, method, path, headers="", body=""):
        """A whole request whose connection ends with its answer."""
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        return self.answer(f"{method} {path} HTTP/1.1\r\nHost: {self.address.netloc}\r\nConnection: close\r\n{headers}{length}\r\n{body}")

    def status(self, answer):
        return int(answer.split(" ", 2)[1])

    def bearer(self):
        return f"Authorization: Bearer {self.token}\r\n"

    def make(self, *command):
        subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True, cwd=self.folder, timeout=30)

    def test_a_certificate_of_another_authority_is_no_node(self):
        self.make("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 1, "-subj", f"/CN={self.node}",
                  "-addext", f"subjectAltName=URI:regatta://cluster/node/{self.node}", "-keyout", "forged.key", "-out", "forged.pem")
        text = f"GET /v1/nodes/connect HTTP/1.1\r\nHost: x\r\n{UPGRADE}\r\n"
        try:
            answer = self.answer(text, self.connect(self.folder / "forged.pem", self.folder / "forged.key"))
        except (ssl.SSLError, ConnectionError):
            answer = ""
        self.assertNotIn("101 Switching", answer)
        self.assertIn("true", json.dumps(json.loads(self.regatta("nodes", "--json").stdout)[0]["status"]["connected"]))

    def test_nobody_is_a_node_without_a_certificate(self):
        head = UPGRADE.replace("Connection: Upgrade", "Connection: Upgrade, close")
        answer = self.answer(f"GET /v1/nodes/connect HTTP/1.1\r\nHost: x\r\n{head}\r\n")
        self.assertNotIn("101 Switching", answer)
        self.assertEqual(self.status(answer), 401)

    def test_a_join_token_is_good_for_its_uses_alone(self):
        self.make("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x", "-keyout", "n.key", "-out", "n.csr")
        token = self.regatta("token", "--join").stdout.strip()
        body = {"token": token, "name": "joined", "csr": (self.folder / "n.csr").read_text()}
        self.assertEqual(self.status(self.request("POST", "/v1/nodes/enroll", "", json.dumps(body))), 200)
        for name in ("joined", "other"):
            self.assertEqual(self.status(self.request("POST", "/v1/nodes/enroll", "", json.dumps({**body, "name": name}))), 401)

    def test_a_login_of_the_printed_address_works_once(self):
        once = self.words.split("#once=")[1].split()[0]
        self.assertNotIn(once, (self.state / "controller.log").read_text())
        first = self.request("POST", "/v1/login", "", json.dumps({"once": once}))
        self.assertEqual(self.status(first), 200)
        self.assertEqual(self.status(self.request("POST", "/v1/login", "", json.dumps({"once": once}))), 401)
        cookie = first.split("Set-Cookie: ")[1].split(";")[0]
        cross = self.request("POST", "/v1/jobs", f"Cookie: {cookie}\r\nOrigin: https://evil.example\r\n", "{}")
        self.assertEqual(self.status(cross), 403)
        own = self.request("POST", "/v1/jobs", f"Cookie: {cookie}\r\nSec-Fetch-Site: same-origin\r\n", "{}")
        self.assertEqual(self.status(own), 400)

    def test_no_request_hides_in_another(self):
        hidden = f"GET /v1/users HTTP/1.1\r\nHost: x\r\n{self.bearer()}\r\n"
        heads = [
            f"Content-Length: {len(hidden)}\r\nTransfer-Encoding: chunked\r\n",
            f"Content-Length: 5\r\nContent-Length: {len(hidden)}\r\n",
            "Transfer-Encoding: chunked, identity\r\n",
            "Transfer-Encoding: \x0bchunked\r\n",
            "Content-Length: +5\r\n",
            "Content-Length : 5\r\n",
        ]
        for head in heads:
            with self.subTest(head=head):
                answer = self.answer(f"POST /v1/logout HTTP/1.1\r\nHost: x\r\n{head}\r\n{hidden}")
                self.assertGreaterEqual(self.status(answer), 400, answer)
                self.assertEqual(answer.count("HTTP/1.1 "), 1, answer)
                self.assertNotIn('"kind":"user"', answer)

    def test_a_header_cannot_be_planted(self):
        answer = self.request("DELETE", "/v1/tokens/x%0d%0aSet-Cookie:%20planted=1", self.bearer())
        self.assertEqual(self.status(answer), 400)
        self.assertNotIn("planted", answer.split("\r\n\r\n")[0])

    def test_nested_texts_are_refused(self):
        for body in ("[" * 200_000, '{"a":' * 100_000, '{"name":"x","command":' + "[" * 5000 + "]" * 5000 + "}"):
            answer = self.request("POST", "/v1/jobs", self.bearer(), body)
            self.assertEqual(self.status(answer), 400)
        self.assertEqual(self.status(self.request("GET", "/healthz")), 200)

    def test_a_body_beyond_the_bound_is_refused_before_it_comes(self):
        answer = self.answer(f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\n{self.bearer()}Content-Length: 999999999\r\n\r\n")
        self.assertEqual(self.status(answer), 413)

    def test_a_slow_client_is_told_so_and_delays_nobody(self):
        slow = self.connect()
        slow.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        begin = time.monotonic()
        self.assertEqual(self.status(self.request("GET", "/healthz")), 200)
        self.assertLess(time.monotonic() - begin, 2)
        slow.settimeout(14)
        self.assertEqual(self.status(slow.recv(65536).decode()), 408)

    def test_names_forge_no_line_of_the_audit(self):
        self.request("DELETE", "/v1/users/" + urllib.parse.quote('x","user":"forged'), self.bearer())
        self.request("DELETE", "/v1/users/%E2%80%A8%1b[2J", self.bearer())
        verified = self.regatta("audit", "verify")
        self.assertEqual(verified.returncode, 0, verified.stderr)
        self.assertRegex(verified.stdout, r"records 1 to \d+ are as they were written")
        records = json.loads(self.regatta("audit", "--json", "--limit", 1000).stdout)
        self.assertNotIn("forged", {record["user"] for record in records})

    def test_a_changed_record_is_named(self):
        shutil.copytree(self.state / "controller/audit", self.folder / "copy")
        path = next((self.folder / "copy").iterdir())
        self.assertEqual(self.regatta("audit", "verify", self.folder / "copy").returncode, 0)
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[:1] + [lines[1].replace('"status":2', '"status":3')] + lines[2:]))
        self.assertIn("record 2: it was changed", self.regatta("audit", "verify", self.folder / "copy").stderr)
        path.write_text("".join(lines[:1] + lines[2:]))
        self.assertIn("record 2 before it was removed", self.regatta("audit", "verify", path).stderr)


if __name__ == "__main__":
    unittest.main()
