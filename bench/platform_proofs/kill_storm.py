#!/usr/bin/env python3
"""Kills the controller and the agents at random moments under load, and looks after each round whether an acknowledged request is lost, a
replica was started twice, or something is left behind. Prints one line a round and one at the end; exit status 1 with what is wrong."""
import argparse
import random
import signal
import statistics
import sys
import tempfile
import threading
import time

from platform_case import NO_ANSWER, OVER, Client, Platform, wait_until
from started_jobs import StartedJobs

RUNS_KEPT = 256  # as node_agent/internal/replica_runner.h has it


class Load:
    """A client that submits jobs, cancels some and changes the priority of others, and notes what was acknowledged."""

    def __init__(self, platform, jobs, number, seed):
        self.client = Client(platform)
        self.jobs, self.number, self.random = jobs, number, random.Random(seed)
        self.submitted = {}  # by key: (body, numbers of the jobs)
        self.cancelled, self.priorities, self.requests, self.unanswered = set(), {}, 0, 0

    def run(self, ends, most_waiting):
        count = 0
        while not ends.is_set():
            count += 1
            key = f"{self.number}-{count}-{time.monotonic_ns()}"
            body = {"jobs": [self.jobs.spec("storm") for _ in range(self.random.choice([1, 2, 5]))]}
            answer = self.ask("POST", "/v1/jobs", body, {"Idempotency-Key": key}, ends)
            if answer is None or answer[0] != 201:
                assert answer is None, answer
                continue
            numbers = [int(number) for number in answer[1]["ids"]]
            self.submitted[key] = body, numbers
            for number in numbers:
                if self.random.random() < 0.25:
                    self.change(number, ends)
            while not ends.is_set() and self.waiting() > most_waiting:
                time.sleep(0.05)

    def change(self, number, ends):
        if self.random.random() < 0.5:
            answer = self.ask("POST", f"/v1/jobs/{number}/cancel", None, None, ends)
            if answer and answer[0] == 200:
                self.cancelled.add(number)
            return
        priority = self.random.randrange(100)
        answer = self.ask("PATCH", f"/v1/jobs/{number}", {"priority": priority}, {"If-Match": "*"}, ends)
        if answer and answer[0] == 200:
            self.priorities[number] = priority
        elif answer is None:
            self.priorities.pop(number, None)

    def ask(self, method, path, body, headers, ends):
        """The answer, of the first try that has one; None when the time is over before."""
        while not ends.is_set():
            try:
                self.requests += 1
                return self.client.ask(method, path, body, headers)
            except NO_ANSWER:
                self.unanswered += 1
                time.sleep(0.02)
        return None

    def waiting(self):
        try:
            return self.client.ask("GET", "/v1/queues")[1]["items"][0]["pending"]
        except (*NO_ANSWER, KeyError, IndexError, TypeError):
            return 0


class Storm:
    def __init__(self, folder, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.platform = Platform(f"{folder}/storm{options.seed}", options.agents)
        self.jobs = StartedJobs(f"{folder}/notes", options.seed)
        self.kills = {"controller": 0, "agent": 0}
        self.recoveries, self.quiet = [], []
        self.totals = {"jobs": 0, "starts": 0, "acknowledged": 0, "unanswered": 0}
        self.first_unseen = 1

    def kill_for(self, count):
        agents = self.platform.names()
        for _ in range(count):
            time.sleep(self.random.expovariate(1 / self.options.every))
            victims = [self.random.choice(["controller", *agents, self.random.choice(agents)])]
            if self.random.random() < 0.1:
                victims = ["controller", *agents]
            for name in victims:
                self.platform.kill(name)
                self.kills["controller" if name == "controller" else "agent"] += 1
            for name in victims:
                before = time.monotonic()
                assert self.platform.restart(name), f"{name} does not start"
                if name == "controller":
                    self.recoveries.append(time.monotonic() - before)

    def round(self, kills, number):
        loads = [Load(self.platform, self.jobs, i, self.options.seed * 1000 + number * 10 + i) for i in range(self.options.clients)]
        ends = threading.Event()
        threads = [threading.Thread(target=load.run, args=(ends, 40)) for load in loads]
        for thread in threads:
            thread.start()
        try:
            self.kill_for(kills)
        finally:
            ends.set()
            for thread in threads:
                thread.join()
        before = time.monotonic()
        self.platform.wait_connected(30)
        self.quiet.append(time.monotonic() - before)
        return self.look(loads)

    def final_jobs(self):
        """All jobs of the round by number, when all are over."""
        client = Client(self.platform)
        jobs = {}
        page = client.insist("GET", "/v1/jobs?limit=500")[1]
        while True:
            for job in page["items"]:
                jobs[int(job["id"])] = job
            if "next" not in page or int(page["next"]) < self.first_unseen:
                break
            page = client.insist("GET", f"/v1/jobs?limit=500&after={page['next']}")[1]
        return {number: job for number, job in jobs.items() if number >= self.first_unseen}

    def look(self, loads):
        said = []
        wait_until(lambda: all(job["status"]["phase"] in OVER for job in self.final_jobs().values()), 120, "all jobs are over")
        jobs = self.final_jobs()
        client = Client(self.platform)
        for load in loads:
            self.totals["unanswered"] += load.unanswered
            self.totals["acknowledged"] += len(load.submitted) + len(load.cancelled) + len(load.priorities)
            for key, (body, numbers) in load.submitted.items():
                said += [f"job {number} was acknowledged and is lost" for number in numbers if number not in jobs]
                for number, spec in zip(numbers, body["jobs"]):
                    if number in jobs:
                        jobs[number]["replicas"] = spec["roles"][0]["replicas"]
                if load.random.random() < 0.05 and client.insist("POST", "/v1/jobs", body, {"Idempotency-Key": key})[1] != {
                        "ids": [str(number) for number in numbers]}:
                    said.append(f"key {key}: another answer than the first time")
            said += [f"job {number}: its cancellation was acknowledged, and it is {jobs[number]['status']['phase']}"
                     for number in load.cancelled if number in jobs and jobs[number]["status"]["phase"] != "cancelled"]
            said += [f"job {number}: its priority {priority} was acknowledged, and it is {jobs[number]['priority']}"
                     for number, priority in load.priorities.items() if number in jobs and jobs[number]["priority"] != priority]
        for job in jobs.values():
            job.setdefault("replicas", 0)  # of a request without an answer: nobody knows here
        said += self.jobs.problems(jobs) + self.left_behind()
        self.totals["jobs"] += len(jobs)
        self.totals["starts"] += self.jobs.starts()
        self.jobs.clear()
        self.first_unseen = max(jobs, default=self.first_unseen - 1) + 1
        return said

    def left_behind(self):
        said = []

        def nothing():
            said[:] = [f"process {pid} is left: {command[:120]}" for pid, command in self.platform.left_processes()]
            said.extend(f"cgroup {path} is left" for path in self.platform.left_cgroups())
            said.extend(f"{name}: {len(folders)} run folders are left" for name in self.platform.names()
                        if len(folders := self.platform.run_folders(name)) > RUNS_KEPT)
            return not said
        try:
            wait_until(nothing, 10, "nothing is left")
        except AssertionError:
            pass
        return said


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="rounds go on until so many processes were killed")
    parser.add_argument("--round", type=int, default=100, help="moments of kills in a round")
    parser.add_argument("--every", type=float, default=0.2, help="mean seconds between two moments of kills")
    parser.add_argument("--agents", type=int, default=3)
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="no new round after so long")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="regatta-proof-")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    storm = Storm(folder, options)
    begin, number, said = time.monotonic(), 0, []
    try:
        storm.platform.start_all()
        while not said and sum(storm.kills.values()) < options.kills and time.monotonic() - begin < options.seconds:
            number += 1
            said = storm.round(options.round, number)
            print(f"round {number}: {storm.kills}, {storm.totals}, {len(said)} problems", flush=True)
        ordered = sorted(storm.recoveries)
        print(f"seed {options.seed}: {sum(storm.kills.values())} kills ({storm.kills['controller']} of the controller, {storm.kills['agent']} of "
              f"agents) in {time.monotonic() - begin:.0f} s, {storm.totals['jobs']} jobs, {storm.totals['starts']} starts of replicas, "
              f"{storm.totals['acknowledged']} acknowledged changes, {storm.totals['unanswered']} requests without an answer; the controller "
              f"served again after {statistics.median(ordered or [0]):.2f} s (longest {max(ordered, default=0):.2f}), all agents after the last "
              f"kill of a round after {statistics.median(storm.quiet):.2f} s (longest {max(storm.quiet):.2f}): {len(said)} problems")
    finally:
        storm.platform.stop(remove=not said)
    for sentence in said[:20]:
        print(sentence)
    if said:
        print(f"the logs are in {storm.platform.folder}")
        return 1
    import shutil  # only where nothing is to be kept
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
