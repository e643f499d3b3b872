"""Logins at an OpenID provider: a small one, but with real HTTPS and signatures, and a real controller that it tries to deceive."""
import base64
import hashlib
import hmac
import http.client
import http.server
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

import lab_case


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*arguments, data=None):
    return subprocess.run(["openssl", *map(str, arguments)], input=data, check=True, capture_output=True, timeout=30).stdout


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def der_halves(der):
    """The numbers r and s of an ECDSA signature, 32 bytes each (RFC 7518, section 3.4)."""
    halves, at = b"", 2
    for _ in range(2):
        size = der[at + 1]
        halves += der[at + 2:at + 2 + size].lstrip(b"\0").rjust(32, b"\0")
        at += 2 + size
    return halves


class Provider:
    """An OpenID provider whose user is always logged in. `spoil` changes claims, `sign` how tokens are signed."""

    def __init__(self, folder):
        self.folder = folder
        self.codes = {}
        self.sign = "RS256"
        self.spoil = {}
        self.secret = "s3cret/with:signs"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 1, "-subj", "/CN=provider",
                "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "tls.key", "-out", folder / "tls.pem")
        openssl("genrsa", "-out", folder / "rsa.key", "2048")
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", folder / "curve.key")
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                provider.get(self)

            def do_POST(self):
                provider.post(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(folder / "tls.pem", folder / "tls.key")
        self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.issuer = f"https://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def reply(self, request, value, status=200, location=None):
        body = json.dumps(value).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        if location:
            request.send_header("Location", location)
        request.end_headers()
        request.wfile.write(body)

    def keys(self):
        modulus = openssl("rsa", "-in", self.folder / "rsa.key", "-noout", "-modulus").decode().split("=")[1].strip()
        point = openssl("ec", "-in", self.folder / "curve.key", "-pubout", "-outform", "DER")[-64:]
        return [{"kty": "RSA", "kid": "r", "use": "sig", "n": encoded(bytes.fromhex(modulus)), "e": "AQAB"},
                {"kty": "EC", "kid": "c", "crv": "P-256", "x": encoded(point[:32]), "y": encoded(point[32:])}]

    def get(self, request):
        url = urllib.parse.urlparse(request.path)
        if url.path == "/.well-known/openid-configuration":
            return self.reply(request, {"issuer": self.issuer, "authorization_endpoint": self.issuer + "/authorize",
                                        "token_endpoint": self.issuer + "/token", "jwks_uri": self.issuer + "/keys"})
        if url.path == "/keys":
            return self.reply(request, {"keys": self.keys()})
        wanted = dict(urllib.parse.parse_qsl(url.query))
        assert wanted["response_type"] == "code" and wanted["code_challenge_method"] == "S256", wanted
        code = os.urandom(8).hex()
        self.codes[code] = wanted
        query = urllib.parse.urlencode({"code": code, "state": wanted["state"], "iss": self.issuer})
        return self.reply(request, {}, 302, wanted["redirect_uri"] + "?" + query)

    def post(self, request):
        form = dict(urllib.parse.parse_qsl(request.rfile.read(int(request.headers["Content-Length"])).decode()))
        known = base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")).decode()
        wanted = self.codes.pop(form["code"], None)
        good = (known == f"regatta:{urllib.parse.quote(self.secret, safe='')}" and wanted and wanted["redirect_uri"] == form["redirect_uri"]
                and encoded(hashlib.sha256(form["code_verifier"].encode()).digest()) == wanted["code_challenge"])
        if not good:
            return self.reply(request, {"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {"iss": self.issuer, "sub": "17", "aud": "regatta", "exp": now + 300, "iat": now, "nonce": wanted["nonce"],
                  "preferred_username": "grace", "groups": ["staff", "researchers"], **self.spoil}
        return self.reply(request, {"access_token": "x", "token_type": "Bearer", "id_token": self.token(claims)})

    def token(self, claims):
        header = {"alg": self.sign, "kid": {"RS256": "r", "ES256": "c"}.get(self.sign, "r")}
        text = encoded(json.dumps(header).encode()) + "." + encoded(json.dumps(claims).encode())
        if self.sign == "RS256":
            signature = openssl("dgst", "-sha256", "-sign", self.folder / "rsa.key", data=text.encode())
        elif self.sign == "ES256":
            signature = der_halves(openssl("dgst", "-sha256", "-sign", self.folder / "curve.key", data=text.encode()))
        elif self.sign == "HS256":
            public = openssl("rsa", "-in", self.folder / "rsa.key", "-pubout")
            signature = hmac.new(public, text.encode(), hashlib.sha256).digest()
        else:
            signature = b""
        return text + "." + encoded(signature)


class OidcTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-oidc-"))
        cls.provider = Provider(cls.folder)
        cls.port = free_port()
        cls.address = f"https://127.0.0.1:{cls.port}"
        (cls.folder / "secret").write_text(cls.provider.secret + "\n")
        settings = cls.folder / "oidc.yaml"
        settings.write_text(f"issuer: {cls.provider.issuer}\nclient_id: regatta\nclient_secret_file: {cls.folder}/secret\n"
                            f"ca_file: {cls.folder}/tls.pem\naddress: {cls.address}\nroles: {{researchers: user, chiefs: operator}}\n")
        cls.log = open(cls.folder / "log", "w")
        cls.controller = subprocess.Popen(
            [lab_case.BIN / "regatta-controller", "--state", cls.folder / "state", "--port", str(cls.port), "--ready-file", cls.folder / "ready", "--oidc", settings],
            stdout=cls.log, stderr=cls.log)
        end = time.monotonic() + 15
        while not (cls.folder / "ready").exists() and time.monotonic() < end:
            time.sleep(0.02)
        cls.tls = ssl.create_default_context(cafile=cls.folder / "state/ca.pem")
        cls.provider_tls = ssl.create_default_context(cafile=cls.folder / "tls.pem")

    @classmethod
    def tearDownClass(cls):
        cls.controller.terminate()
        cls.controller.wait(20)
        cls.log.close()
        cls.provider.close()
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.provider.sign, self.provider.spoil = "RS256", {}

    def get(self, url, headers=None):
        """Status, location, cookies and body of a GET that follows nothing."""
        parts = urllib.parse.urlparse(url)
        tls = self.tls if parts.port == self.port else self.provider_tls
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=tls, timeout=20)
        self.addCleanup(connection.close)
        connection.request("GET", parts.path + ("?" + parts.query if parts.query else ""), None, headers or {})
        reply = connection.getresponse()
        cookies = dict(line.split(";")[0].split("=", 1) for line in reply.headers.get_all("Set-Cookie") or [])
        return reply.status, reply.headers.get("Location", ""), cookies, reply.read().decode()

    def begin(self):
        """The address to which the provider sends the browser back, and the browser's cookie."""
        status, location, cookies, text = self.get(self.address + "/v1/login/oidc")
        self.assertEqual(status, 302, text)
        cookie = "__Host-regatta-login=" + cookies["__Host-regatta-login"]
        status, back, _, text = self.get(location)
        self.assertEqual(status, 302, text)
        return back, {"Cookie": cookie, "Sec-Fetch-Site": "cross-site"}

    def log_in(self):
        back, headers = self.begin()
        return self.get(back, headers)

    def refused(self, status, reason):
        got, _, cookies, text = self.log_in()
        self.assertEqual(got, status, text)
        self.assertNotIn("__Host-regatta", cookies)
        self.assertIn(reason, json.loads(text)["detail"])

    def test_a_user_of_the_provider_gets_in_with_its_role(self):
        for sign in ("RS256", "ES256"):
            self.provider.sign = sign
            status, location, cookies, text = self.log_in()
            self.assertEqual((status, location), (302, "/"), text)
            session = json.loads(self.get(self.address + "/v1/session", {"Cookie": "__Host-regatta=" + cookies["__Host-regatta"]})[3])
            self.assertEqual((session["user"], session["role"]), ("grace", "user"))

    def test_a_token_that_is_wrong_lets_nobody_in(self):
        now = int(time.time())
        for spoil, reason in [({"aud": "other"}, "another program"), ({"iss": "https://evil.example"}, "another issuer"),
                              ({"exp": now - 120}, "expired"), ({"nonce": "other"}, "another login"), ({"iat": now + 600}, "future")]:
            with self.subTest(spoil=spoil):
                self.provider.spoil = spoil
                self.refused(401, reason)

    def test_a_token_without_a_signature_or_with_a_shared_secret_lets_nobody_in(self):
        for sign in ("none", "HS256"):
            with self.subTest(sign=sign):
                self.provider.sign = sign
                self.refused(401, f"{sign} is not taken")

    def test_users_without_a_role_or_with_the_name_of_another_do_not_get_in(self):
        self.provider.spoil = {"groups": ["staff"], "preferred_username": "eve", "sub": "18"}
        self.refused(403, "no role")
        self.provider.spoil = {"groups": ["chiefs"], "preferred_username": "admin", "sub": "19"}
        self.refused(403, "belongs to another user")

    def test_an_answer_comes_back_once_and_to_its_own_browser(self):
        back, headers = self.begin()
        self.assertEqual(self.get(back)[0], 401, "without the cookie")
        other, other_headers = self.begin()
        self.assertEqual(self.get(back, other_headers)[0], 401, "with the cookie of another login")
        self.assertEqual(self.get(back, headers)[0], 302)
        self.assertEqual(self.get(back, headers)[0], 401, "a second time")
        # Its code in another login: the provider gives nothing for it, and PKCE would not fit.
        code = urllib.parse.parse_qs(urllib.parse.urlparse(back).query)["code"][0]
        state = urllib.parse.parse_qs(urllib.parse.urlparse(other).query)["state"][0]
        callback = self.address + "/v1/login/oidc/callback?"
        self.assertEqual(self.get(callback + urllib.parse.urlencode({"code": code, "state": state}), other_headers)[0], 503)
        self.assertEqual(self.get(callback + "code=x&state=wrong", other_headers)[0], 401)
        evil, evil_headers = self.begin()
        self.assertEqual(self.get(evil.replace(urllib.parse.quote(self.provider.issuer, safe=""), "https%3A%2F%2Fevil.example"), evil_headers)[0], 401)

    def test_neither_log_nor_audit_has_a_secret(self):
        back, headers = self.begin()
        cookies = self.get(back, headers)[2]
        text = (self.folder / "log").read_text() + "".join(path.read_text() for path in (self.folder / "state/audit").iterdir())
        self.assertIn("/v1/login/oidc/callback", text)
        code = urllib.parse.parse_qs(urllib.parse.urlparse(back).query)["code"][0]
        for secret in (self.provider.secret, code, cookies["__Host-regatta"]):
            self.assertNotIn(secret, text)


if __name__ == "__main__":
    unittest.main()
