"""Every operation of docs/api/openapi.json at a running controller: real replies are as the document says, errors too, and each role may do what it says."""
import http.client
import json
import os
import pathlib
import shutil
import ssl
import tempfile
import time
import unittest
import urllib.parse

import jsonschema
import lab_case

DOCUMENT = json.loads((pathlib.Path(__file__).parents[2] / "docs/api/openapi.json").read_text())
ROLES = ["viewer", "user", "tenant_admin", "operator", "admin"]
# Readers first, so that they see what is there; what removes comes last.
ORDER = {"get": 0, "post": 1, "put": 2, "patch": 3, "delete": 4}


def operations():
    every = [(path, method, operation) for path, methods in DOCUMENT["paths"].items() for method, operation in methods.items()]
    return sorted(every, key=lambda each: ORDER[each[1]])


def closed(schema):
    """The schema without room for keys that it does not name: those would be undocumented."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    if isinstance(made.get("properties"), dict) and "additionalProperties" not in made:
        made["additionalProperties"] = False
    return made


COMPONENTS = closed(DOCUMENT["components"])


def check(schema, value):
    jsonschema.Draft202012Validator({**closed(schema), "components": COMPONENTS}).validate(value)


class OpenapiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-openapi-"))
        cls.environment = {**os.environ, "XDG_STATE_HOME": str(cls.folder), "XDG_CONFIG_HOME": str(cls.folder / "config")}
        cls.state = cls.folder / "here"
        started = lab_case.regatta("up", "--nodes", 1, "--devices", 2, "--state", cls.state, env=cls.environment)
        assert started.returncode == 0, started.stderr
        context = json.loads((cls.folder / "config/regatta/context.json").read_text())
        cls.address = urllib.parse.urlparse(context["server"])
        cls.tls = ssl.create_default_context(cadata=context["ca"])
        cls.token = context["token"]
        cls.connection = http.client.HTTPSConnection(cls.address.hostname, cls.address.port, context=cls.tls, timeout=20)
        cls.prepare()

    @classmethod
    def tearDownClass(cls):
        cls.connection.close()
        lab_case.regatta("down", "--state", cls.state, env=cls.environment)
        shutil.rmtree(cls.folder)

    @classmethod
    def send(cls, method, path, body=None, token=None, headers=None):
        every = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
        cls.connection.request(method.upper(), path, None if body is None else json.dumps(body), every)
        reply = cls.connection.getresponse()
        return reply.status, reply.headers.get("Content-Type", ""), reply.read()

    @classmethod
    def call(cls, method, path, body=None):
        status, _, text = cls.send(method, path, body, cls.token)
        assert status < 300, (path, status, text)
        return json.loads(text)

    @classmethod
    def prepare(cls):
        """An object of each kind for the parameters of paths, and a token of each role."""
        job = cls.call("POST", "/v1/jobs", {"name": "seen", "queue": "default", "command": ["echo", "seen"], "roles": [{"cpus": 0.5}]})
        end = time.monotonic() + 15
        while cls.call("GET", f"/v1/jobs/{job['handle']}")["status"]["phase"] != "succeeded" and time.monotonic() < end:
            time.sleep(0.05)
        cls.call("PUT", "/v1/users/ada", {"role": "user", "password": "correct horse"})
        token = cls.call("POST", "/v1/tokens", {"name": "old"})["token"]["id"]
        node = cls.call("GET", "/v1/nodes")["items"][0]["name"]
        cls.values = {"job": job["handle"], "node": node, "user": "ada", "token": token}
        cls.role_tokens = {}
        for role in ROLES:
            cls.call("PUT", f"/v1/users/of-{role}", {"role": role})
            cls.role_tokens[role] = cls.call("POST", "/v1/tokens", {"name": "role", "user": f"of-{role}"})["secret"]

    @classmethod
    def held_job(cls):
        """A job of its own for each operation that changes one."""
        job = {"name": "held", "queue": "default", "command": ["true"], "roles": [{"cpus": 0.5}], "hold": True}
        return cls.call("POST", "/v1/jobs", job)["handle"]

    def parameters(self, operation):
        for parameter in operation.get("parameters", []):
            yield COMPONENTS["parameters"][parameter["$ref"].rsplit("/", 1)[1]] if "$ref" in parameter else parameter

    def request_of(self, path, method, operation, known=True):
        headers, query = {}, {}
        for parameter in self.parameters(operation):
            name, place = parameter["name"], parameter["in"]
            if place == "path":
                value = self.values.get(name, parameter.get("example", "none")) if known else "none"
                if known and name == "job" and method in ("post", "patch", "put"):
                    value = self.held_job()
                path = path.replace(f"{{{name}}}", urllib.parse.quote(value))
            elif place == "header" and parameter.get("required"):
                headers[name] = parameter["example"]
            elif place == "query" and "example" in parameter:
                query[name] = parameter["example"]
        if query:
            path += "?" + urllib.parse.urlencode(query)
        media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        return path, media.get("example"), headers

    def check_reply(self, operation, status, media, text):
        reply = operation["responses"].get(str(status)) or operation["responses"]["default"]
        if "$ref" in reply:
            reply = COMPONENTS["responses"][reply["$ref"].rsplit("/", 1)[1]]
        self.assertIn(media, reply["content"], text)
        if "schema" in reply["content"][media]:
            check(reply["content"][media]["schema"], json.loads(text))

    def test_replies_are_as_the_document_says(self):
        for path, method, operation in operations():
            with self.subTest(path=path, method=method):
                target, body, headers = self.request_of(path, method, operation)
                if "x-untested" in operation:
                    self.assertTrue(operation["x-untested"])
                    continue
                status, media, text = self.send(method, target, body, self.token, headers)
                self.assertIn(str(status), operation["responses"], text)
                self.assertLess(status, 300, text)
                self.check_reply(operation, status, media, text)

    def test_errors_are_as_the_document_says(self):
        for path, method, operation in operations():
            with self.subTest(path=path, method=method):
                target, body, headers = self.request_of(path, method, operation, known=False)
                if operation["x-role"] != "none":
                    status, media, text = self.send(method, target, body, None, headers)
                    self.assertEqual(status, 401, text)
                    self.check_reply(operation, status, media, text)
                if "{" in path:
                    status, media, text = self.send(method, target, body, self.token, headers)
                    self.check_reply(operation, status, media, text)
                if body is not None:
                    status, media, text = self.send(method, target, {"no such key": 1}, self.token, headers)
                    self.assertGreaterEqual(status, 400, text)
                    self.check_reply(operation, status, media, text)

    def test_each_role_may_do_what_the_document_says(self):
        for path, method, operation in operations():
            if operation["x-role"] == "none" or "x-untested" in operation:
                continue
            target, _, headers = self.request_of(path, method, operation, known=False)
            for index, role in enumerate(ROLES):
                with self.subTest(path=path, method=method, role=role):
                    status, _, text = self.send(method, target, {}, self.role_tokens[role], headers)
                    self.assertEqual(status == 403, index < ROLES.index(operation["x-role"]), text)

    def test_lines_of_a_watch_are_as_the_document_says(self):
        connection = http.client.HTTPSConnection(self.address.hostname, self.address.port, context=self.tls, timeout=20)
        self.addCleanup(connection.close)
        revision = self.call("GET", "/v1/jobs?limit=1")["rev"]
        self.call("POST", "/v1/jobs", {"name": "watched", "command": ["true"], "roles": [{"cpus": 0.5}], "hold": True})
        connection.request("GET", f"/v1/watch?kinds=job&from={revision}", None, {"Authorization": f"Bearer {self.token}", "Accept": "application/x-ndjson"})
        line = json.loads(connection.getresponse().readline())
        check({"$ref": "#/components/schemas/Change"}, line)
        check({"$ref": "#/components/schemas/Job"}, line["object"])

    def test_the_controller_serves_the_document(self):
        self.assertEqual(json.loads(self.send("get", "/v1/openapi.json")[2]), DOCUMENT)


class SchemaTest(unittest.TestCase):
    def test_a_key_that_is_not_documented_or_missing_is_noticed(self):
        good = {"type": "about:blank", "title": "t", "status": 400, "detail": "d", "reason": "r"}
        schema = {"$ref": "#/components/schemas/Problem"}
        check(schema, good)
        for bad in ({**good, "secret": 1}, {key: value for key, value in good.items() if key != "reason"}):
            with self.assertRaises(jsonschema.ValidationError):
                check(schema, bad)


if __name__ == "__main__":
    unittest.main()
