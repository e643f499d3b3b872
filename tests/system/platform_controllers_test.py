"""Several controllers over a real etcd: the leader is killed, stopped and replaced while users submit and a job runs. Short form of 3 kills;
REGATTA_LEADER_KILLS=100 for the long one, which prints the times."""
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import statistics
import subprocess
import threading
import time
import unittest

import lab_case
from platform_case import Api, Controller, PlatformCase, new_job, wait_until

KILLS = int(os.environ.get("REGATTA_LEADER_KILLS", "3"))
ETCD = shutil.which("etcd")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Etcd:
    """Members of one etcd on loopback."""

    def __init__(self, folder, members):
        self.processes = []
        self.endpoints = [f"http://127.0.0.1:{free_port()}" for _ in range(members)]
        peers = [f"http://127.0.0.1:{free_port()}" for _ in range(members)]
        cluster = ",".join(f"m{i}={peer}" for i, peer in enumerate(peers))
        for i, (endpoint, peer) in enumerate(zip(self.endpoints, peers)):
            log = open(folder / f"etcd{i}.log", "wb")
            self.processes.append(subprocess.Popen(
                [ETCD, "--name", f"m{i}", "--data-dir", folder / f"etcd{i}", "--listen-client-urls", endpoint, "--advertise-client-urls", endpoint,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster],
                stdout=log, stderr=log))
            log.close()

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


class Writer(threading.Thread):
    """A user who submits one job after the other, each with a key of its own, to whichever controller takes it."""

    def __init__(self, ports, state):
        super().__init__(daemon=True)
        self.ports = ports
        self.api = Api(state)
        self.acknowledged = {}  # job number: time
        self.names = {}
        self.is_over = False

    def run(self):
        number = 0
        port = self.ports[0]
        while not self.is_over:
            status, text = self.api.ask(port, "POST", "/v1/jobs", new_job(f"w{number}", "true", hold=True), Idempotency_Key=f"w{number}")
            if status == 201:
                job = int(json.loads(text)["id"])
                self.names[job] = f"w{number}"
                self.acknowledged[job] = time.monotonic()
                number += 1
            else:
                port = self.ports[(self.ports.index(port) + 1) % len(self.ports)]
                time.sleep(0.01)

    def first_after(self, moment):
        times = [at for at in list(self.acknowledged.values()) if at > moment]
        return min(times) if times else None


@unittest.skipUnless(ETCD, "etcd is not installed (package etcd-server)")
class Controllers(PlatformCase):
    def start_cluster(self, members):
        self.etcd = Etcd(self.folder, members)
        self.addCleanup(self.etcd.end)
        self.controllers = []
        for i in range(3):
            state = self.folder / f"controller{i}"
            state.mkdir()
            for name in ("ca.pem", "ca.key") if i > 0 else ():
                shutil.copy(self.controllers[0].state / name, state / name)
            controller = Controller(state, "--etcd", ",".join(self.etcd.endpoints)).start()
            self.controllers.append(controller)
            self.addCleanup(controller.end, signal.SIGKILL)
            if i == 0:  # makes the authority and the first user
                wait_until((state / "admin.token").exists, 20)
                self.api = Api(state)
                wait_until(lambda: self.leader() is not None, 20)
        self.ports = [controller.port for controller in self.controllers]
        self.urls = ",".join(controller.url for controller in self.controllers)

    def leader(self):
        for controller in self.controllers:
            if controller.process is not None and self.api.ask(controller.port, "GET", "/v1/scheduler")[0] == 200:
                return controller
        return None

    def get(self, path):
        leader = self.leader()
        return self.api.get(leader.port, path) if leader else None

    def start_job(self):
        leader = self.leader()
        # By a controller that does not lead.
        follower = next(controller for controller in self.controllers if controller is not leader)
        self.start_agent("a", ",".join([follower.url, self.urls]), self.api.join_token(leader.port))
        status, text = self.api.ask(leader.port, "POST", "/v1/jobs", new_job("long", "sleep 10000"))
        self.assertEqual(status, 201, text)
        self.long = json.loads(text)["id"]
        wait_until(lambda: self.status_of_long()["phase"] == "running")

    def status_of_long(self):
        job = self.get(f"/v1/jobs/{self.long}")
        return job["status"] if job else {"phase": "", "attempts": 0}

    def check_end(self, writer):
        writer.is_over = True
        writer.join(10)
        self.assertGreater(len(writer.acknowledged), 10)
        wait_until(self.leader)
        for job, name in random.sample(sorted(writer.names.items()), min(500, len(writer.names))):
            self.assertEqual((self.get(f"/v1/jobs/{job}") or {}).get("name"), name)
        self.assertEqual(len(set(writer.names.values())), len(writer.names))
        wait_until(lambda: self.status_of_long()["phase"] == "running")
        self.assertEqual(self.status_of_long()["attempts"], 1)

    def kill_leaders(self, kills):
        writer = Writer(self.ports, self.controllers[0].state)
        writer.start()
        wait_until(lambda: writer.acknowledged)
        gaps = []
        for _ in range(kills):
            leader = wait_until(self.leader)
            moment = time.monotonic()
            leader.process.kill()
            leader.process.wait()
            wait_until(lambda: writer.first_after(moment + 0.001), 20)
            gaps.append(writer.first_after(moment + 0.001) - moment)
            leader.start()
            # Agents wait longer after each failure: the next leader lives until this one has found it.
            wait_until(lambda: [node for node in (self.get("/v1/nodes") or {"items": []})["items"] if node["status"]["connected"]], 20)
            time.sleep(random.uniform(0, 0.5))
        print(f"{kills} kills: writes again after {statistics.median(gaps):.2f} s in the median, {max(gaps):.2f} s at most; "
              f"{len(writer.acknowledged)} jobs acknowledged")
        self.check_end(writer)
        return gaps

    def test_goes_on_when_leaders_are_killed(self):
        self.start_cluster(1)
        self.start_job()
        gaps = self.kill_leaders(KILLS)
        self.assertLessEqual(statistics.median(gaps), 3.0)

    def test_goes_on_over_three_members_when_leaders_end_in_good_order(self):
        self.start_cluster(3)
        self.start_job()
        writer = Writer(self.ports, self.controllers[0].state)
        writer.start()
        wait_until(lambda: writer.acknowledged)
        for controller in self.controllers:  # a rolling upgrade
            moment = time.monotonic()
            controller.end()
            wait_until(lambda: writer.first_after(moment + 0.001))
            controller.start()
        # A member of etcd dies, too.
        self.etcd.processes[0].kill()
        moment = time.monotonic()
        wait_until(lambda: writer.first_after(moment + 0.5))
        followed = lab_case.regatta("jobs", "--server", self.urls, "--ca", self.controllers[0].state / "ca.pem", "--token-file",
                                    self.controllers[0].state / "admin.token", "--limit", "1")
        self.assertEqual(followed.returncode, 0, followed.stderr)
        self.check_end(writer)

    def test_refuses_what_a_stopped_leader_does_later(self):
        self.start_cluster(1)
        self.start_job()
        leader = self.leader()
        api = Api(self.controllers[0].state)
        # A request waits at the leader while it is stopped.
        os.kill(leader.process.pid, signal.SIGSTOP)
        answers = []
        late = threading.Thread(target=lambda: answers.append(
            api.ask(leader.port, "POST", "/v1/jobs", new_job("late", "true", hold=True), limit=30.0)))
        late.start()
        others = [controller for controller in self.controllers if controller is not leader]
        wait_until(lambda: any(self.api.ask(other.port, "GET", "/v1/scheduler")[0] == 200 for other in others), 20)
        os.kill(leader.process.pid, signal.SIGCONT)
        late.join(30)
        self.assertNotEqual(answers[0][0], 201, answers)
        wait_until(lambda: self.api.ask(leader.port, "GET", "/v1/scheduler")[0] == 307, 20)  # it follows
        names = [job["name"] for job in self.get("/v1/jobs?limit=500")["items"]]
        self.assertNotIn("late", names)
        wait_until(lambda: self.status_of_long()["phase"] == "running")
        self.assertEqual(self.status_of_long()["attempts"], 1)

    def test_refuses_a_controller_with_another_authority(self):
        self.start_cluster(1)
        other = self.folder / "other"
        other.mkdir()
        done = subprocess.run([lab_case.BIN / "regatta-controller", "--state", other, "--port", "0", "--etcd", self.etcd.endpoints[0]],
                              capture_output=True, text=True, timeout=20)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("has another authority", done.stderr)


if __name__ == "__main__":
    unittest.main()
