#!/usr/bin/env python3
"""Kills the controller, then an agent, before each of the calls by which it writes, syncs, renames, sends or forks while a job is submitted,
changed, run and ended; starts it again and looks whether something that was acknowledged is lost, started twice or left behind."""
import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import time

from platform_case import BIN, NO_ANSWER, OVER, Client, Platform, wait_until
from started_jobs import StartedJobs

SHIM = pathlib.Path(os.environ.get("REGATTA_FAULT_SHIM", BIN / "libregatta_fault_shim.so"))


class CallKills:
    def __init__(self, folder):
        self.platform = Platform(f"{folder}/calls", 1)
        self.jobs = StartedJobs(f"{folder}/notes", 1)
        self.calls = pathlib.Path(folder) / "calls.count"
        self.count = 0
        self.is_killed = False
        self.client = Client(self.platform)

    def harm(self, name, at):
        """`name` runs again, with the shim."""
        self.platform.kill(name)
        self.platform.environments[name] = {"LD_PRELOAD": str(SHIM), "PROOF_KILL_AT": str(at), "PROOF_CALLS": str(self.calls)}
        self.calls.unlink(missing_ok=True)
        self.is_killed = False
        self.platform.restart(name)
        del self.platform.environments[name]

    def revive(self, name):
        """Starts it again where the shim has killed it."""
        if self.platform.processes[name].poll() is not None:
            self.is_killed = True
            self.platform.restart(name)

    def insist(self, name, method, path, body=None, headers=None):
        end = time.monotonic() + 20
        while True:
            self.revive(name)
            try:
                return self.client.ask(method, path, body, headers)
            except NO_ANSWER:
                assert time.monotonic() < end, f"{method} {path}: no answer"
                time.sleep(0.005)

    def scenario(self, name):
        """Problems that were seen, a sentence each."""
        self.count += 1
        spec = self.jobs.spec("calls", longest=0.01)
        spec["command"][2] = spec["command"][2].replace("exit 3", "exit 0")
        body, key = {"jobs": [spec, {**spec, "hold": True}]}, {"Idempotency-Key": f"calls-{self.count}"}
        status, answer = self.insist(name, "POST", "/v1/jobs", body, key)
        assert status == 201, answer
        first, second = map(int, answer["ids"])
        any_revision = {"If-Match": "*"}
        answers = [self.insist(name, "PATCH", f"/v1/jobs/{second}", {"priority": self.count}, any_revision),
                   self.insist(name, "POST", f"/v1/jobs/{second}/cancel"),
                   self.insist(name, "PUT", f"/v1/nodes/{self.platform.names()[0]}/intent", {"intent": "in_use"})]
        said = [f"status {status}: {answer}" for status, answer in answers if status != 200]
        wait_until(lambda: self.insist(name, "GET", f"/v1/jobs/{first}")[1]["status"]["phase"] in OVER, 20, f"job {first} is over")
        jobs = {number: self.insist(name, "GET", f"/v1/jobs/{number}")[1] for number in (first, second)}
        for number in jobs:
            jobs[number]["replicas"] = spec["roles"][0]["replicas"]
        if jobs[first]["status"]["phase"] != "succeeded":
            said.append(f"job {first}: it is {jobs[first]['status']['phase']}: {jobs[first]['status']['reason']}")
        if (jobs[second]["status"]["phase"], jobs[second]["priority"]) != ("cancelled", self.count):
            said.append(f"job {second}: its changes were acknowledged, and it is {jobs[second]}")
        if self.insist(name, "POST", "/v1/jobs", body, key)[1] != answer:
            said.append(f"job {first}: its key gives another answer than the first time")
        said += self.jobs.problems(jobs)
        self.jobs.clear()
        return said

    def left(self):
        return self.platform.left_processes() + self.platform.left_cgroups()

    def run(self, name, every, most):
        """Kills before every `every`-th call, until the scenario ends before the kill."""
        at, said, kills = every, [], 0
        while not said and at <= most:
            self.harm(name, at)
            said = [f"{name}, call {at}: {sentence}" for sentence in self.scenario(name)]
            self.revive(name)
            if not self.is_killed:
                break
            kills += 1
            at += every
        if self.platform.processes[name].poll() is None:
            self.platform.kill(name)  # it may have the shim, and its call to come
        self.platform.restart(name)
        try:
            wait_until(lambda: not self.left(), 5, "nothing is left")
        except AssertionError:
            said += [f"{name}: left is {entry}" for entry in self.left()]
        return kills, said


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="kill before every N-th call")
    parser.add_argument("--most", type=int, default=2000, help="the last call of a program to kill before")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="regatta-proof-")
    proof, said = CallKills(folder), []
    begin = time.monotonic()
    try:
        proof.platform.start_all()
        for name in ("controller", proof.platform.names()[0]):
            kills, problems = proof.run(name, options.every, options.most)
            said += problems
            print(f"{name}: {kills} kills, one before every {options.every}. call of it: {len(problems)} problems", flush=True)
        print(f"{time.monotonic() - begin:.0f} s")
    finally:
        proof.platform.stop(remove=not said)
    for sentence in said:
        print(sentence)
    if not said:
        shutil.rmtree(folder)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
