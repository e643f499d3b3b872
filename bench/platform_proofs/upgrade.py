#!/usr/bin/env python3
"""Upgrades a running platform from the programs in REGATTA_OLD_BIN to those in REGATTA_BIN and back, the controller first and then one agent
after the other, while clients submit, read and change jobs and long jobs run: no request fails that may be repeated, no job is touched. Exit
status 1 with what is wrong, 77 where REGATTA_OLD_BIN is not set."""
import argparse
import collections
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import time

from platform_case import BIN, NO_ANSWER, OVER, Client, Platform, wait_until
from started_jobs import StartedJobs


class Load(threading.Thread):
    """Requests that are repeated until they are answered; any answer but success is a failure."""

    def __init__(self, proof, number):
        super().__init__()
        self.proof, self.number = proof, number
        self.client = Client(proof.platform, timeout=5)
        self.statuses, self.failures, self.submitted, self.longest = collections.Counter(), [], [], 0.0
        self.ends = threading.Event()

    def insist(self, method, path, body=None, headers=None):
        begin = time.monotonic()
        while True:
            try:
                status, answer = self.client.ask(method, path, body, headers)
                self.statuses[status] += 1
                if status not in (429, 503, 504):
                    break
            except NO_ANSWER:
                self.statuses["no answer"] += 1
            time.sleep(0.02)
        self.longest = max(self.longest, time.monotonic() - begin)
        if status not in (200, 201):
            self.failures.append(f"{method} {path}: status {status}: {answer}")
        return answer

    def run(self):
        count = 0
        while not self.ends.is_set() and not self.failures:
            count += 1
            answer = self.insist("POST", "/v1/jobs", self.proof.jobs.spec("upgrade", longest=0.3) if count % 3 == 0 else {
                "name": "held", "command": ["true"], "roles": [{"cpus": 0.01}], "hold": True}, {"Idempotency-Key": f"up-{self.number}-{count}"})
            if self.failures:
                return
            number = int(answer["id"])
            self.submitted.append(number)
            if count % 3:
                self.insist("PATCH", f"/v1/jobs/{number}", {"priority": count}, {"If-Match": "*"})
                self.insist("POST", f"/v1/jobs/{number}/cancel")
            self.insist("GET", f"/v1/jobs/{number}")
            self.insist("GET", "/v1/jobs?limit=20")
            self.insist("GET", "/v1/nodes")
            time.sleep(0.02)


class Upgrade:
    def __init__(self, folder, old, agents):
        self.old, self.new = pathlib.Path(old), BIN
        self.platform = Platform(f"{folder}/upgrade", agents, binaries=old)
        self.jobs = StartedJobs(f"{folder}/notes", 1)
        self.said = []

    def replace(self, name, binaries):
        self.platform.binaries = binaries
        self.platform.kill(name, signal.SIGTERM)
        assert self.platform.restart(name), f"{name} of {binaries} does not start"
        if name != "controller":
            self.platform.wait_connected(20)

    def wave(self, what, names, binaries):
        for name in names:
            self.replace(name, binaries)
            time.sleep(0.3)
        self.platform.wait_connected(20)
        touched = [job for job in self.long if self.client.insist("GET", f"/v1/jobs/{job}")[1]["status"]["attempts"] != 1 or
                   self.client.insist("GET", f"/v1/jobs/{job}")[1]["status"]["phase"] != "running"]
        self.said += [f"{what}: job {job} was touched" for job in touched]
        print(f"{what}: {len(self.long)} long jobs, {len(touched)} touched", flush=True)

    def run(self, rolls_back):
        self.platform.start_all()
        self.client = Client(self.platform)
        names = self.platform.names()
        self.long = [int(self.client.insist("POST", "/v1/jobs", {
            "name": "long", "command": ["sleep", "600"], "roles": [{"cpus": 0.01, "devices": 1}]})[1]["id"]) for _ in range(2 * len(names))]
        wait_until(lambda: all(self.client.insist("GET", f"/v1/jobs/{job}")[1]["status"]["phase"] == "running" for job in self.long), 20,
                   "the long jobs run")
        loads = [Load(self, number) for number in range(3)]
        for load in loads:
            load.start()
        try:
            self.wave("old controller, new agents", names, self.new)
            self.wave("old controller, old agents again", names, self.old)
            self.wave("new controller, old agents", ["controller"], self.new)
            self.wave("new controller, new agents", names, self.new)
            self.wave("new controller, old agents again", names, self.old)
            if rolls_back:
                self.wave("old controller again", ["controller"], self.old)
        finally:
            for load in loads:
                load.ends.set()
            for load in loads:
                load.join()
        self.finish(loads)

    def finish(self, loads):
        statuses = sum((load.statuses for load in loads), collections.Counter())
        submitted = sum((load.submitted for load in loads), [])
        self.said += sum((load.failures for load in loads), [])
        jobs = {}

        def all_over():
            for number in submitted:
                if number not in jobs:
                    job = self.client.insist("GET", f"/v1/jobs/{number}")[1]
                    if job["status"]["phase"] in OVER:
                        jobs[number] = job
                    else:
                        return False
            return True
        wait_until(all_over, 60, "the submitted jobs are over")
        for number, job in jobs.items():
            job["replicas"] = sum(role.get("replicas", 1) for role in job["spec"]["roles"])
            if job["name"] == "upgrade" and job["status"]["phase"] == "cancelled":
                self.said.append(f"job {number}: it is cancelled, and nobody did that")
        jobs.update({number: {"status": {"phase": "running", "attempts": 1}} for number in self.long})
        self.said += self.jobs.problems(jobs)
        print(f"{len(submitted)} jobs submitted, {self.jobs.starts()} starts, answers {dict(statuses)}, the longest wait for one "
              f"{max(load.longest for load in loads):.2f} s: {len(self.said)} problems")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=3)
    parser.add_argument("--old-controller", action="store_true", help="at last, the old controller on the store of the new one")
    options = parser.parse_args()
    old = os.environ.get("REGATTA_OLD_BIN")
    if not old:
        print("REGATTA_OLD_BIN is not set: a folder with the programs of an earlier version")
        return 77
    folder = tempfile.mkdtemp(prefix="regatta-proof-")
    proof = Upgrade(folder, old, options.agents)
    try:
        proof.run(options.old_controller)
    finally:
        proof.platform.stop(remove=not proof.said)
    for sentence in proof.said[:20]:
        print(sentence)
    if not proof.said:
        shutil.rmtree(folder)
    return 1 if proof.said else 0


if __name__ == "__main__":
    sys.exit(main())
