"""Servers that die, hang or are cut off, and clocks that are stepped, with whole programs: what the controller makes of it."""
import os
import pathlib
import signal
import time
import unittest

import lab_case
from platform_case import Api, Controller, PlatformCase, new_job, wait_until

FAKETIME = pathlib.Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
# Each run of a job says every 20 ms that it lives, on the one clock of this machine.
ALIVE = 'while :; do cut -d" " -f1 /proc/uptime | sed "s/^/$REGATTA_ATTEMPT $REGATTA_NODE /" >> {}; sleep 0.02; done'


class Leases(PlatformCase):
    def start_platform(self, agents, environment=None):
        self.controller = Controller(self.folder / "controller", environment=environment).start()
        self.addCleanup(self.controller.end)
        self.api = Api(self.controller.state)
        self.addCleanup(self.api.close)
        self.environment = environment
        status, text = self.api.ask(self.controller.port, "PUT", "/v1/queues", {"queues": [{"name": "quick", "lease": "3s"}, {"name": "usual"}]},
                                    If_Match="0")
        self.assertEqual(status, 200, text)
        for name in agents:
            self.start_agent(name, self.controller.url, self.api.join_token(self.controller.port), environment)
        wait_until(lambda: len(self.nodes(lambda status: status["connected"])) == len(agents))

    def nodes(self, chosen):
        answer = self.api.get(self.controller.port, "/v1/nodes") or {"items": []}
        return [node["name"] for node in answer["items"] if chosen(node["status"])]

    def submit(self, name, script, **more):
        status, text = self.api.ask(self.controller.port, "POST", "/v1/jobs", new_job(name, script, **more))
        self.assertEqual(status, 201, text)
        return int(text.split('"id":"')[1].split('"')[0])

    def job(self, number):
        return self.api.get(self.controller.port, f"/v1/jobs/{number}")

    def runs(self, number):
        """Attempt and node of a job that runs."""
        job = self.job(number)
        if job is None or job["status"]["phase"] != "running":
            return None
        return job["status"]["attempts"], self.lives[-1][1] if self.read_lives() else None

    def read_lives(self):
        text = self.record.read_text() if self.record.exists() else ""
        self.lives = [(int(attempt), node, float(at)) for attempt, node, at in (line.split() for line in text.splitlines() if line.count(" ") == 2)]
        return self.lives

    def start_alive(self, queue):
        self.record = self.folder / "alive"
        self.lives = []
        number = self.submit("alive", ALIVE.format(self.record), queue=queue)
        wait_until(lambda: self.read_lives() and self.runs(number))
        return number, self.lives[-1][1]

    def check_no_overlap(self):
        wait_until(lambda: any(attempt == 2 for attempt, _, _ in self.read_lives()))
        last = max(at for attempt, _, at in self.lives if attempt == 1)
        first = min(at for attempt, _, at in self.lives if attempt == 2)
        self.assertLess(last, first)
        return last, first

    def test_places_the_jobs_of_a_dead_server_again_within_seconds(self):
        self.start_platform(["a", "b"])
        number, node = self.start_alive("quick")
        usual = self.submit("usual", "sleep 1000", queue="usual")
        wait_until(lambda: self.job(usual)["status"]["phase"] == "running")
        begin = time.monotonic()
        self.end_server(node)
        wait_until(lambda: self.nodes(lambda status: status["silent"]) == [node])
        known = time.monotonic() - begin
        wait_until(lambda: (self.runs(number) or (0, 0))[0] == 2)
        placed = time.monotonic() - begin
        print(f"known after {known:.2f} s, placed again after {placed:.2f} s")
        self.assertLessEqual(known, 4.0)
        self.assertLessEqual(placed - known, 2.0)
        self.check_no_overlap()
        self.assertEqual(self.job(usual)["status"]["attempts"], 1)

    def test_ends_a_replica_before_it_starts_elsewhere_when_its_agent_hangs(self):
        self.start_platform(["a", "b"])
        number, node = self.start_alive("quick")
        os.kill(self.agents[node].pid, signal.SIGSTOP)
        wait_until(lambda: (self.runs(number) or (0, 0))[0] == 2)
        last, first = self.check_no_overlap()
        self.assertNotEqual(self.lives[-1][1], node)
        os.kill(self.agents[node].pid, signal.SIGCONT)
        wait_until(lambda: self.nodes(lambda status: status["silent"]) == [])
        self.assertEqual(self.job(number)["status"]["attempts"], 2)

    def test_keeps_jobs_while_a_controller_is_replaced(self):
        self.start_platform(["a"])
        number, _ = self.start_alive("quick")
        self.controller.end()
        time.sleep(4.5)  # longer than the lease
        self.controller.start()
        wait_until(lambda: self.nodes(lambda status: status["connected"]) == ["a"])
        time.sleep(1.5)
        self.assertEqual(self.runs(number)[0], 1)

    @unittest.skipUnless(FAKETIME.exists(), "libfaketime is not installed (package faketime)")
    def test_decides_nothing_by_clocks_that_are_stepped(self):
        step = self.folder / "step"
        step.write_text("+0\n")
        self.start_platform(["a", "b"], {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(step), "FAKETIME_CACHE_DURATION": "1",
                                         "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
        number, node = self.start_alive("quick")
        for by in (3600, -3600, 0):
            step.write_text(f"{by:+}\n")
            time.sleep(2.5)
            self.assertEqual(self.nodes(lambda status: status["silent"]), [])
            short = self.submit("short", "true", queue="usual")
            wait_until(lambda: self.job(short)["status"]["phase"] == "succeeded")
            seen = self.job(short)["status"]["submitted_ms"] / 1000 - time.time()  # the controller's clock was stepped indeed
            self.assertAlmostEqual(seen, by, delta=60)
        self.assertEqual(self.runs(number), (1, node))


if __name__ == "__main__":
    unittest.main()
