#!/usr/bin/env python3
"""Sends every request of a scenario twice, loses every reply once, and cuts the connection after every byte of a request and of its answer, with
one repetition: the final state is that of the undisturbed scenario. A line for each; exit status 1 with what is wrong."""
import argparse
import shutil
import sys
import tempfile
import threading
import time

from cutting_proxy import CuttingProxy
from platform_case import NO_ANSWER, Client, Platform


class Through:
    """The platform as clients see it through the proxy."""

    def __init__(self, platform, proxy):
        self.host, self.port, self.tls, self.token = platform.host, proxy.port, platform.tls, platform.token


class Duplicates:
    def __init__(self, folder):
        self.platform = Platform(f"{folder}/twice", 1)
        self.platform.start_all()
        self.proxy = CuttingProxy(self.platform.host, self.platform.port)
        self.count = 0
        self.said = []

    def requests(self):
        """The scenario's requests, which name the jobs of the first one by their places in it."""
        self.count += 1
        job = {"name": "twice", "command": ["true"], "roles": [{"devices": 16}], "hold": True}  # it fits nowhere
        node = self.platform.names()[0]
        any_revision = {"If-Match": "*"}
        return [("POST", "/v1/jobs", {"jobs": [job, job]}, {"Idempotency-Key": f"twice-{self.count}"}),
                ("PATCH", "/v1/jobs/{0}", {"priority": 5}, any_revision), ("POST", "/v1/jobs/{1}/cancel", None, None),
                ("POST", "/v1/jobs/{0}/hold", None, None), ("PUT", f"/v1/nodes/{node}/intent", {"intent": "cordoned"}, None),
                ("PUT", f"/v1/users/user{self.count}", {"role": "viewer", "disabled": False}, None),
                ("PUT", f"/v1/nodes/{node}/intent", {"intent": "in_use"}, None), ("POST", "/v1/jobs/{0}/release", None, None),
                ("POST", "/v1/jobs/{0}/hold", None, None), ("POST", "/v1/jobs/{0}/cancel", None, None)]

    def play(self, send):
        """The final state after the scenario, whose requests `send` sends: without numbers, revisions and times."""
        before = int(Client(self.platform).insist("GET", "/v1/jobs?limit=1")[1]["total"])
        ids = []
        for place, (method, path, body, headers) in enumerate(self.requests()):
            status, answer = send(place, method, path.format(*ids), body, headers)
            if status not in (200, 201):
                self.said.append(f"{method} {path}: status {status}: {answer}")
                return None
            if place == 0:
                ids = answer["ids"]
        client = Client(self.platform)
        page = client.insist("GET", "/v1/jobs?limit=10")[1]
        state = [(job["name"], job["priority"], job["status"]["phase"], job["status"]["held"], job["status"]["attempts"])
                 for job in page["items"][:2]]
        node = client.insist("GET", "/v1/nodes")[1]["items"][0]["status"]["intent"]
        user = [user["role"] for user in client.insist("GET", "/v1/users")[1]["items"] if user["name"] == f"user{self.count}"]
        client.close()
        return int(page["total"]) - before, state, node, user

    def compare(self, expected, state, what):
        if state != expected:
            self.said.append(f"{what}: {state} instead of {expected}")

    def cut_everywhere(self, expected, way, every):
        """For every place of the scenario and every byte of its connection."""
        cuts = 0
        for place in range(len(self.requests())):
            at = every
            while not self.said:
                was_cut = False

                def send(now, method, path, body, headers):
                    nonlocal was_cut
                    if now != place:
                        return self.direct.insist(method, path, body, headers)
                    self.proxy.set(way, at)
                    client = Client(Through(self.platform, self.proxy), timeout=5)
                    try:
                        answer = client.ask(method, path, body, headers)
                    except NO_ANSWER:
                        answer = client.insist(method, path, body, headers)
                    was_cut = self.proxy.is_cut
                    client.close()
                    return answer
                self.compare(expected, self.play(send), f"cut {way} after byte {at} of request {place}")
                if not was_cut:
                    break
                cuts += 1
                at += every
        return cuts

    def run(self, every):
        self.direct = Client(self.platform)
        expected = self.play(lambda place, *request: self.direct.insist(*request))

        def twice(place, *request):
            first = self.direct.insist(*request)
            second = self.direct.insist(*request)
            if place == 0 and first != second:
                self.said.append(f"request {place}: {second} instead of {first}")
            return second
        self.compare(expected, self.play(twice), "every request twice")

        def both_at_once(place, *request):
            # The second one is on its way before the first is answered.
            clients = [Client(self.platform), Client(self.platform)]
            answers = [None, None]
            threads = [threading.Thread(target=lambda i=i: answers.__setitem__(i, clients[i].insist(*request))) for i in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return answers[1]
        self.compare(expected, self.play(both_at_once), "every request twice at once")
        for way, name in (("up", "requests"), ("down", "answers")):
            begin = time.monotonic()
            cuts = self.cut_everywhere(expected, way, every)
            print(f"{name} cut after every {every}. byte: {cuts} cuts in {time.monotonic() - begin:.0f} s, final state {expected}, "
                  f"{len(self.said)} problems", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="cut after every N-th byte")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="regatta-proof-")
    proof = Duplicates(folder)
    try:
        proof.run(options.every)
    finally:
        proof.proxy.close()
        proof.platform.stop(remove=not proof.said)
    for sentence in proof.said[:20]:
        print(sentence)
    if not proof.said:
        shutil.rmtree(folder)
    return 1 if proof.said else 0


if __name__ == "__main__":
    sys.exit(main())
