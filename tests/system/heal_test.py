"""`regatta heal` on a lab: what it does about a lost cable and a report, and what a killed one leaves."""
import json
import pathlib
import signal
import socket
import struct
import subprocess
import tempfile
import shutil
import os
import threading
import time
import unittest

import lab_case

CLUSTER = """\
name: {name}
server_types:
  cpu-1:
    devices: {{count: 1, type: cpu, cpu_share: 5%}}
    intra: {{kind: shm}}
    nics: {{count: 1, rate: 200Mbps}}
fabric: {{tiers: [leaf, spine], servers_per_leaf: 2, spines: 3, uplink: 200Mbps}}
servers: {{count: 4, type: cpu-1}}
"""


class Healer:
    """`regatta heal --json` in the background; its events are kept."""

    def __init__(self, *arguments, **options):
        self.process = subprocess.Popen([lab_case.BIN / "regatta", "heal", "--json", *map(str, arguments)], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.events = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def of_kind(self, kind):
        return [event for event in self.events if event["event"] == kind]

    def end(self, number=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(10)
        self.reader.join(5)
        self.process.stdout.close()
        self.process.stderr.close()
        return status


class Heal(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-heal-"))
        self.addCleanup(shutil.rmtree, folder)
        self.name = f"test-{os.getpid()}-{self._testMethodName[5:20].replace('_', '-')}"
        (folder / "cluster.yaml").write_text(CLUSTER.format(name=self.name))
        self.cluster = folder / "cluster.yaml"
        up = lab_case.regatta("lab", "up", self.cluster, "--json")
        if up.returncode == 2:
            self.skipTest(f"no lab can be built here: {up.stderr.strip()}")
        self.assertEqual(up.returncode, 0, up.stderr)
        self.addCleanup(lab_case.regatta, "lab", "down", self.name)

    def start(self, *arguments, clean="300ms"):
        healer = Healer("--lab", self.name, "--clean", clean, *arguments)
        self.addCleanup(healer.end, signal.SIGKILL)
        self.assertTrue(lab_case.wait_until(lambda: self.connect(try_only=True) is not None, 10))
        return healer

    def start_probe(self, *beginnings, as_json=True):
        """`regatta probe --heal` in the background; its first lines have these words. Returns the later ones as they come."""
        probe = subprocess.Popen([lab_case.BIN / "regatta", "probe", self.cluster, "--heal", *(["--json"] if as_json else [])], text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(probe.stdout.close)
        self.addCleanup(probe.wait)
        self.addCleanup(probe.kill)
        for words in beginnings:
            self.assertIn(words, probe.stdout.readline())
        lines = []
        threading.Thread(target=lambda: lines.extend(probe.stdout), daemon=True).start()
        return lines

    def connect(self, try_only=False):
        status = json.loads(lab_case.regatta("lab", "status", self.name, "--json").stdout)
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(os.path.join(status["labs"][0]["folder"], "heal.sock"))
        except OSError:
            client.close()
            if try_only:
                return None
            raise
        if try_only:
            client.close()
            return True
        self.addCleanup(client.close)
        return client

    def hops(self, switch):
        """The gateways of each route of a switch, as often as they are named."""
        routes = lab_case.regatta("lab", "exec", "--lab", self.name, switch, "--", "ip", "-j", "route").stdout
        return {route["dst"]: [hop["dev"] for hop in route.get("nexthops", [])] for route in json.loads(routes)
                if route.get("protocol") == "static"}

    def fault(self, *arguments):
        done = lab_case.regatta("lab", "fault", *arguments, "--lab", self.name)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_goes_round_what_probes_find_and_back_once_they_find_it_well(self):
        before = self.hops("leaf1")
        healer = self.start(clean="3s")
        self.start_probe("coverage")
        self.fault("drop", "leaf0-spine1", "100%")
        # The first verdict may name fewer or more links than are broken; later verdicts are exact.
        around = {target: [hop for hop in hops if hop != "port3"] for target, hops in before.items()}
        self.assertTrue(lab_case.wait_until(lambda: self.used("leaf1") == around, 25), healer.events)
        self.assertFalse(lab_case.wait_until(lambda: self.used("leaf1") == before, 4.5), "it came back while it was broken")
        self.fault("clear", "leaf0-spine1")
        self.assertTrue(lab_case.wait_until(lambda: self.used("leaf1") == before, 25), healer.events)

    def test_leaves_swapped_cables_to_people(self):
        before = self.used("leaf1")
        healer = self.start(clean="1s")
        self.start_probe("coverage", "reporting")
        time.sleep(2)
        self.fault("swap", "leaf0-spine0", "leaf1-spine0")
        noted = "cables leaf0-spine0 and leaf1-spine0: swapped; nothing is withdrawn, people have to correct it"

        def messages():
            return [event["message"] for event in healer.of_kind("noted") if "message" in event]

        self.assertTrue(lab_case.wait_until(messages, 10), healer.events)
        # The cables were without a carrier while they were exchanged.
        self.assertTrue(lab_case.wait_until(lambda: self.used("leaf1") == before, 10), healer.events)
        time.sleep(3)
        reasons = {fault["why"] for event in healer.of_kind("withdrawn") for fault in event.get("faults", [])}
        self.assertLessEqual(reasons, {"no carrier"}, healer.events)
        self.assertEqual(messages(), [noted])
        self.assertEqual(self.used("leaf1"), before)

    def used(self, switch):
        """The gateways of each route of a switch, each once."""
        return {target: sorted(set(devices)) for target, devices in self.hops(switch).items()}

    def test_goes_round_a_lost_cable_and_back(self):
        before = self.hops("leaf1")
        healer = self.start()
        self.fault("down", "leaf0-spine1")
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("withdrawn"), 5), healer.events)
        routes = healer.of_kind("withdrawn")[0]["routes"]
        self.assertEqual({(route["switch"], route["towards"], *route["withdrawn"]) for route in routes},
                         {("leaf0", "leaf1", "leaf0-spine1"), ("leaf1", "leaf0", "leaf1-spine1")})
        for devices in self.hops("leaf1").values():
            self.assertEqual(len(set(devices)), 2)
        self.fault("clear", "leaf0-spine1")
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("returned"), 5), healer.events)
        self.assertEqual(self.hops("leaf1"), before)
        self.assertEqual(healer.end(), 0)
        # The lab looks after its routes again.
        self.fault("down", "leaf0-spine1")
        for devices in self.hops("leaf1").values():
            self.assertEqual(len(devices), 2)

    def rules(self):
        return lab_case.regatta("lab", "exec", "--lab", self.name, "leaf0", "--", "ip", "rule").stdout

    def test_restores_routes_that_others_change_and_leaves_no_rule_behind(self):
        rules_before = self.rules()
        before = self.hops("leaf0")
        healer = self.start()
        self.process_that_heals()
        self.assertNotEqual(self.rules(), rules_before)
        target = sorted(before)[0]
        done = lab_case.regatta("lab", "exec", "--lab", self.name, "leaf0", "--", "ip", "route", "replace", "blackhole", target)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("repaired"), 5), healer.events)
        event = healer.of_kind("repaired")[0]
        self.assertIn("leaf0 to leaf1 (as boot)", event["message"])
        self.assertEqual(self.hops("leaf0"), before)
        self.assertEqual(healer.end(), 0)
        self.assertEqual(self.rules(), rules_before)

    def test_is_found_by_probes_that_began_before_it(self):
        self.start_probe("no healer listens there yet", as_json=False)
        self.fault("drop", "leaf0-spine1", "100%")
        healer = self.start(clean="3s")
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("withdrawn"), 25), healer.events)

    def test_acts_on_reports_and_tells_subscribers(self):
        healer = self.start(clean="1s")
        client = self.connect()
        lines = client.makefile("r")
        self.assertEqual(json.loads(lines.readline())["event"], "held")
        client.sendall(b'{"broken": {"link": "leaf0-spine9"}}\n')
        self.assertIn("there is no link 'leaf0-spine9'", json.loads(lines.readline())["error"])
        client.sendall(b'{"broken": {"switch": "spine2"}, "why": "probes"}\n')
        event = json.loads(lines.readline())
        self.assertEqual((event["event"], event["faults"][0]["why"]), ("withdrawn", "probes"))
        self.assertEqual(json.loads(lines.readline())["event"], "returned")
        self.assertEqual(healer.end(), 0)

    def test_leaves_its_work_to_the_next_one_when_killed(self):
        healer = self.start(clean="60s")
        client = self.connect()
        client.sendall(b'{"broken": {"switch": "spine0"}}\n')
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("withdrawn"), 5), healer.events)
        healer.end(signal.SIGKILL)
        left = self.hops("leaf0")
        self.assertEqual({len(set(devices)) for devices in left.values()}, {2})
        after = self.start()
        self.assertTrue(lab_case.wait_until(lambda: after.of_kind("returned"), 5), after.events)
        self.assertEqual([event["event"] for event in after.events], ["started", "taken over", "returned"])
        self.assertEqual({tuple(sorted(devices)) for devices in self.hops("leaf0").values()}, {("port2", "port3", "port4")})

    def process_that_heals(self):
        # It greets once it heals.
        self.assertIn("held", self.connect().makefile("r").readline())
        return next(pid for pid in lab_case.processes() if f"heal --lab={self.name} " in lab_case.command_of(pid))

    def test_goes_on_at_once_where_it_was_killed(self):
        healer = self.start(clean="2s")
        client = self.connect()
        client.sendall(b'{"broken": {"switch": "spine0"}, "why": "probes"}\n')
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("withdrawn"), 5), healer.events)
        around = self.hops("leaf0")
        for count in (1, 2):
            os.kill(self.process_that_heals(), signal.SIGKILL)
            # The socket is there all the time: what is reported now is not lost.
            client = self.connect()
            client.sendall(b'{"broken": {"switch": "spine0"}, "why": "probes"}\n')
            self.assertTrue(lab_case.wait_until(lambda: len(healer.of_kind("restarted")) == count, 5), healer.events)
            event = healer.of_kind("restarted")[-1]
            self.assertEqual(event["count"], count)
            self.assertIn("signal 9 (Killed) ended the healer; a new one goes on with 1 held fault", event["message"])
            held = json.loads(client.makefile("r").readline())
            self.assertEqual((held["event"], held["restarts"], held["faults"][0]["switch"], held["faults"][0]["why"]),
                             ("held", count, "spine0", "probes"))
            self.assertEqual(self.hops("leaf0"), around)
            time.sleep(1.2)
        self.assertEqual(healer.of_kind("taken over"), [])
        self.assertEqual(healer.of_kind("returned"), [])
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("returned"), 5), healer.events)
        self.assertEqual(healer.end(), 0)

    def test_goes_on_where_its_process_hung(self):
        healer = self.start(clean="60s")
        self.connect().sendall(b'{"broken": {"switch": "spine0"}, "why": "probes"}\n')
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("withdrawn"), 5), healer.events)
        around = self.hops("leaf0")
        os.kill(self.process_that_heals(), signal.SIGSTOP)
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("restarted"), 5), healer.events)
        self.assertRegex(healer.of_kind("restarted")[0]["message"],
                         r"^the healer hung for 2\.[0-9] s and was killed; a new one goes on with 1 held fault \(restart 1\)$")
        held = json.loads(self.connect().makefile("r").readline())
        self.assertEqual((held["restarts"], held["faults"][0]["why"]), (1, "probes"))
        self.assertEqual(self.hops("leaf0"), around)
        self.assertEqual(healer.end(), 0)

    def test_leaves_nothing_behind_where_its_process_hangs_at_the_end(self):
        rules_before = self.rules()
        before = self.hops("leaf0")
        healer = self.start()
        self.connect().sendall(b'{"broken": {"switch": "spine0"}}\n')
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("withdrawn"), 5), healer.events)
        os.kill(self.process_that_heals(), signal.SIGSTOP)
        healer.process.send_signal(signal.SIGTERM)
        self.assertEqual(healer.process.wait(7), 0)
        self.assertEqual(healer.process.stderr.read(), f"regatta: lab {self.name}: the healer was killed; its rules and tables for "
                                                       "probes are removed\n")
        self.assertEqual(self.rules(), rules_before)
        self.assertIsNone(self.connect(try_only=True))
        # The lab looks after its routes again.
        self.fault("down", "leaf0-spine1")
        self.fault("clear", "leaf0-spine1")
        self.assertEqual(self.used("leaf0"), {target: sorted(set(hops)) for target, hops in before.items()})

    def test_probes_report_at_once_to_the_one_that_goes_on(self):
        healer = self.start(clean="3s")
        probe = self.start_probe("coverage", "reporting")
        self.fault("drop", "leaf0-spine1", "100%")
        around = {target: [hop for hop in hops if hop != "port3"] for target, hops in self.used("leaf1").items()}
        self.assertTrue(lab_case.wait_until(lambda: self.used("leaf1") == around, 25), healer.events)
        time.sleep(1.5)
        os.kill(self.process_that_heals(), signal.SIGKILL)
        self.assertTrue(lab_case.wait_until(lambda: "the healer is back" in "".join(probe), 2), probe)
        self.assertNotIn("the healer is gone", "".join(probe))
        for _ in range(20):
            self.assertEqual(self.used("leaf1"), around)
            time.sleep(0.2)

    def test_ends_with_the_process_that_watches_it_and_leaves_its_socket_to_nobody(self):
        healer = self.start()
        heals = self.process_that_heals()
        healer.end(signal.SIGKILL)
        self.assertTrue(lab_case.wait_until(lambda: not lab_case.command_of(heals), 2))
        after = self.start()
        os.kill(self.process_that_heals(), signal.SIGTERM)
        self.assertEqual(after.process.wait(5), 0)
        self.assertIsNone(self.connect(try_only=True))

    def test_a_second_one_is_refused_and_leaves_the_first_at_work(self):
        healer = self.start(clean="60s")
        second = lab_case.regatta("heal", "--lab", self.name)
        self.assertEqual(second.returncode, 1, second.stderr)
        self.assertIn("another healer listens here; end it first", second.stderr)
        misled = lab_case.regatta("heal", "--lab", self.name, "--socket", self.cluster)
        self.assertEqual(misled.returncode, 2, misled.stderr)
        self.assertIn("no socket lies here", misled.stderr)
        self.assertTrue(self.cluster.read_text())
        self.fault("down", "leaf0-spine1")
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("withdrawn"), 5), healer.events)
        # The lab itself would put the routes in again at once.
        self.fault("clear", "leaf0-spine1")
        for devices in self.hops("leaf1").values():
            self.assertEqual(len(set(devices)), 2)

    def test_changes_nothing_when_dry_and_ends_with_the_lab(self):
        before = self.hops("leaf0")
        healer = self.start("--dry-run")
        self.connect().sendall(b'{"broken": {"switch": "spine0"}}\n')
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("withdrawn"), 5), healer.events)
        self.assertEqual(self.hops("leaf0"), before)
        lab_case.regatta("lab", "down", self.name)
        self.assertEqual(healer.process.wait(10), 1)
        self.assertIn(f"lab {self.name}: is gone; bring it up again", healer.process.stderr.read())

    def test_tells_people_the_seconds_since_it_began(self):
        self.fault("down", "leaf0-spine1")
        healer = subprocess.Popen([lab_case.BIN / "regatta", "heal", "--lab", self.name, "--dry-run"], text=True,
                                  stdout=subprocess.PIPE)
        self.addCleanup(healer.wait)
        self.addCleanup(healer.stdout.close)
        self.addCleanup(healer.kill)
        self.assertTrue(healer.stdout.readline().startswith("healing 5 switches (dry run"))
        self.assertRegex(healer.stdout.readline(), r"^   [0-4]\.[0-9]{2} s  taken over: leaf")


class HealByCommands(unittest.TestCase):
    """Switches of a cluster file, reached by commands that fail until there is a file `reachable`."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-heal-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.cluster = self.folder / "cluster.yaml"
        self.cluster.write_text(CLUSTER.format(name="by-commands"))
        self.socket = self.folder / "heal.sock"
        self.reachable = self.folder / "reachable"

    def start(self, *arguments, command="", **options):
        command = (command or f"test -e {self.reachable}") + " # {switch} {link}"
        healer = Healer(self.cluster, "--socket", self.socket, "--clean", "60s", "--withdraw-command", command,
                        "--return-command", command, *arguments, **options)
        self.addCleanup(healer.end, signal.SIGKILL)
        return healer

    def report(self, line):
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        self.assertTrue(lab_case.wait_until(lambda: client.connect_ex(str(self.socket)) == 0, 10))
        client.sendall(line + b"\n")

    def test_tells_of_a_withdrawal_once_it_is_made_and_of_a_failure_once(self):
        healer = self.start()
        self.report(b'{"broken": {"link": "leaf0-spine1", "from": "leaf0"}, "why": "probes"}')
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("failed"), 5), healer.events)
        time.sleep(1)  # three more tries
        self.assertEqual([event["event"] for event in healer.events], ["started", "failed"])
        self.reachable.touch()
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("recovered"), 5), healer.events)
        self.assertEqual([event["event"] for event in healer.events], ["started", "failed", "withdrawn", "recovered"])
        withdrawn = healer.events[2]
        self.assertEqual(([fault["link"] for fault in withdrawn["faults"]], [route["switch"] for route in withdrawn["routes"]]),
                         (["leaf0-spine1"], ["leaf0"]))

    def test_says_that_it_has_started(self):
        healer = self.start("--dry-run")
        self.assertTrue(lab_case.wait_until(lambda: healer.events, 5))
        event = healer.events[0]
        self.assertGreater(event.pop("at_s"), 0)
        self.assertEqual(event, {"event": "started", "switches": 5, "socket": str(self.socket), "dry_run": True})

    def test_does_not_take_a_slow_command_for_a_process_that_hangs(self):
        healer = self.start(command="sleep 4")
        self.report(b'{"broken": {"link": "leaf0-spine1", "from": "leaf0"}}')
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("withdrawn"), 8), healer.events)
        self.assertEqual([event["event"] for event in healer.events], ["started", "withdrawn"])

    def test_reads_its_cluster_once(self):
        pipe = self.folder / "pipe.yaml"
        os.mkfifo(pipe)
        text = self.cluster.read_text()
        threading.Thread(target=lambda: pipe.write_text(text), daemon=True).start()
        self.cluster = pipe
        self.start("--unsupervised")
        self.report(b'{"broken": {"switch": "spine0"}}')  # else it waits for the file once more

    def test_heals_on_while_nobody_reads_what_it_prints(self):
        self.reachable.touch()
        command = f"test -e {self.reachable} # {{switch}} {{link}}"
        unread, output = os.pipe()
        reader = open(unread, "rb", buffering=0)
        self.addCleanup(reader.close)
        os.set_blocking(output, False)
        filled = 0
        try:
            while True:
                filled += os.write(output, b"\n" * 4096)
        except BlockingIOError:
            os.set_blocking(output, True)
        healer = subprocess.Popen([lab_case.BIN / "regatta", "heal", "--json", self.cluster, "--socket", self.socket,
                                   "--withdraw-command", command, "--return-command", command], stdout=output)
        os.close(output)
        self.addCleanup(healer.wait)
        self.addCleanup(healer.kill)
        self.report(b'{"broken": {"link": "leaf0-spine1", "from": "leaf0"}, "why": "probes"}')
        time.sleep(4)  # twice as long as a process that hangs has
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        client.settimeout(5)
        client.connect(str(self.socket))
        held = json.loads(client.makefile("r").readline())
        self.assertEqual((held["restarts"], len(held["faults"])), (0, 1))
        while filled > 0:
            filled -= len(reader.read(min(filled, 65536)))
        healer.send_signal(signal.SIGINT)
        self.assertEqual(healer.wait(5), 0)
        self.assertEqual([json.loads(line)["event"] for line in reader.readall().splitlines()], ["started", "withdrawn"])

    def kill_as_it_starts(self, times):
        """Kills the process that heals, and each further one as soon as it is there."""
        killed = set()

        def kill_new():
            for pid in set(lab_case.processes()) - killed:
                words = lab_case.command_of(pid)
                if f"heal {self.cluster} " in words and "--supervised" in words:
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
            return len(killed) == times

        self.assertTrue(lab_case.wait_until(kill_new, 20), killed)

    def test_forgets_what_it_held_after_three_early_ends_and_says_so(self):
        healer = self.start()
        self.reachable.touch()
        self.report(b'{"broken": {"link": "leaf0-spine1", "from": "leaf0"}, "why": "probes"}')
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("withdrawn"), 5), healer.events)
        self.kill_as_it_starts(4)
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("warning"), 5), healer.events)
        self.assertIn("a new one goes on with the installed routes alone", healer.of_kind("restarted")[-1]["message"])
        self.assertIn("what the killed healer held is not known", healer.of_kind("warning")[0]["message"])
        self.assertEqual(healer.end(), 0)

    def test_ends_at_once_while_it_waits_for_a_restart(self):
        healer = self.start()
        self.assertTrue(lab_case.wait_until(lambda: healer.events, 5))
        self.kill_as_it_starts(7)
        time.sleep(0.2)
        begin = time.monotonic()
        self.assertEqual(healer.end(), 0)
        self.assertLess(time.monotonic() - begin, 1)

    def go_on(self, state):
        """A process that goes on after a killed one that has left the file `state`."""
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.socket))
        listener.listen()
        listener.setblocking(False)
        heartbeat = os.memfd_create("heartbeat")
        shared = (listener.fileno(), state, heartbeat)
        self.reachable.touch()
        healer = self.start("--supervised", ":".join(map(str, shared)) + ":1:9:0:0", pass_fds=shared)
        for file in (state, heartbeat):
            os.close(file)
        self.report(b'{"broken": {"link": "leaf0-spine1", "from": "leaf0"}}')
        self.assertTrue(lab_case.wait_until(lambda: healer.of_kind("withdrawn"), 5), healer.events or healer.process.poll())
        time.sleep(0.6)
        self.assertEqual(healer.end(), 0)
        return healer

    def test_goes_on_and_says_so_where_a_killed_one_left_what_cannot_be_read(self):
        for content, reason in ((b"abc", "state of the healer: is cut off"), (struct.pack("QQ", 16, 7) + b"nothing", "state of the healer")):
            with self.subTest(content):
                self.socket.unlink(missing_ok=True)
                state = os.memfd_create("state")
                os.write(state, content)
                healer = self.go_on(state)
                self.assertEqual([event["event"] for event in healer.events], ["restarted", "warning", "withdrawn"])
                self.assertEqual(healer.events[0]["message"],
                                 "signal 9 (Killed) ended the healer; a new one goes on with the installed routes alone (restart 1)")
                warning = healer.events[1]["message"]
                self.assertIn(f"what the killed healer held is not known ({reason}", warning)
                self.assertIn("look for next hops that it withdrew", warning)

    def test_heals_on_and_says_so_once_where_it_cannot_keep_its_state(self):
        file = os.memfd_create("state")
        self.addCleanup(os.close, file)
        healer = self.go_on(os.open(f"/proc/self/fd/{file}", os.O_RDONLY))
        self.assertEqual([event["event"] for event in healer.events], ["restarted", "warning", "withdrawn"])
        self.assertIn("what the next healer has to know cannot be kept (state of the healer: bad file descriptor); healing goes on",
                      healer.events[1]["message"])


if __name__ == "__main__":
    unittest.main()
