"""`regatta probe` in a lab: faults that are injected while it runs are named, and nobody else is; nothing is left of it."""
import json
import os
import signal
import subprocess
import threading
import time
import unittest

import lab_case

CLUSTER = """\
name: {name}
server_types:
  server:
    devices: {{count: 1, type: cpu, cpu_share: 5%}}
    intra: {{kind: shm}}
    nics: {{count: 1, rate: 100Mbps}}
fabric:
  tiers: [leaf, spine]
  servers_per_leaf: 2
  spines: 2
  uplink: 100Mbps
servers: {{count: 6, type: server}}
"""


# Adds or removes an address of nic0, by netlink.
ADDRESS = '''
import socket, struct, sys
verb, address = sys.argv[1:]
data = socket.inet_aton(address)
attributes = struct.pack("HH4s", 8, 2, data) + struct.pack("HH4s", 8, 1, data)  # IFA_LOCAL, IFA_ADDRESS
body = struct.pack("BBBBi", socket.AF_INET, 31, 0, 0, socket.if_nametoindex("nic0")) + attributes
kind, flags = (20, 0x605) if verb == "add" else (21, 5)  # RTM_NEWADDR, RTM_DELADDR
netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
netlink.send(struct.pack("IHHII", 16 + len(body), kind, flags, 1, 0) + body)
error = struct.unpack_from("i", netlink.recv(4096), 16)[0]
sys.exit(f"netlink: {error}" if error else 0)
'''

# Drops TCP packets that arrive at an interface for a range of ports.
DROP_PORTS = '''
import ctypes, sys
nft = ctypes.CDLL("libnftables.so.1")
nft.nft_ctx_new.restype = ctypes.c_void_p
context = ctypes.c_void_p(nft.nft_ctx_new(0))
table = "netdev test_ports"
rules = (f"add table {table}\\n"
         f"add chain {table} arrive {{ type filter hook ingress device \\"{sys.argv[1]}\\" priority 1; policy accept; }}\\n"
         f"add rule {table} arrive tcp dport {sys.argv[2]} drop\\n")
sys.exit(nft.nft_run_cmd_from_buffer(context, rules.encode()))
'''
DROP_NOTHING = DROP_PORTS.partition("table = ")[0] + 'nft.nft_run_cmd_from_buffer(context, b"delete table netdev test_ports")'


class Probe:
    """`regatta probe` in the background; what it says is kept with the time at which it came."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([lab_case.BIN / "regatta", "probe", *map(str, arguments), "--json"], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.events = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.events.append((time.monotonic(), json.loads(line)))

    def named(self, name):
        return [event for _, event in list(self.events) if event["event"] == name]

    def verdicts(self):
        return [(when, event) for when, event in list(self.events)
                if event["event"] == "begun" and event["is_fault"]]

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        self.process.wait(20)
        self.reader.join(5)
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode


class ProbeLab(unittest.TestCase):
    """What tests in a lab of `servers` servers share."""
    servers = 6

    @classmethod
    def setUpClass(cls):
        lab_case.bring_up_lab(cls, "probe", CLUSTER.replace("count: 6", f"count: {cls.servers}"))

    def probers(self):
        return [pid for pid in lab_case.processes()
                if "regatta-prober" in lab_case.command_of(pid) and f"/{self.name}/" in lab_case.command_of(pid)]

    def start(self):
        probe = Probe(self.cluster)
        self.addCleanup(lambda: probe.process.poll() is None and probe.process.kill())
        self.assertTrue(lab_case.wait_until(lambda: len(self.probers()) == self.servers, 10))
        time.sleep(2.5)
        return probe

    def script(self, server, text):
        """A Python program in a server of the lab."""
        process = subprocess.Popen([lab_case.BIN / "regatta", "lab", "exec", "--lab", self.name, server, "--", "python3", "-c", text])
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process

    def address(self, server):
        """Of its first NIC: cables stand in the order of servers, two addresses each (topo/addresses.h)."""
        return f"10.64.0.{2 * int(server[1:])}"

    def fault(self, *arguments):
        done = lab_case.regatta("lab", "fault", *arguments, "--lab", self.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(lab_case.regatta, "lab", "fault", "clear", "--lab", self.name)

    def hash_otherwise(self, switch):
        seed = "/proc/sys/net/ipv4/fib_multipath_hash_seed"
        inside = ("lab", "exec", "--lab", self.name, switch, "--", "sh", "-c")
        before = lab_case.regatta(*inside, f"cat {seed}").stdout.strip()
        lab_case.regatta(*inside, f"echo 12345 > {seed}")
        self.addCleanup(lab_case.regatta, *inside, f"echo {before} > {seed}")

    def wait(self, condition, limit_s=15):
        self.assertTrue(lab_case.wait_until(condition, limit_s))


class ProbeCommand(ProbeLab):
    def names(self, culprit, *fault):
        """The fault is named, and nothing else; says how soon."""
        probe = self.start()
        self.assertEqual(probe.verdicts(), [], "nothing is broken yet")
        self.fault(*fault)
        begin = time.monotonic()
        lab_case.wait_until(probe.verdicts, 6)
        time.sleep(1)
        self.assertEqual(probe.end(), 0)
        found = [event["culprit"] for _, event in probe.verdicts()]
        self.assertEqual(found, [culprit])
        after = probe.verdicts()[0][0] - begin
        print(f"  {' '.join(fault)}: {culprit} after {after:.2f} s")
        # A busy machine adds to the 2 s.
        self.assertLess(after, 4)
        self.assertEqual(self.probers(), [])

    def test_names_a_link_that_loses_everything(self):
        self.names("link leaf0-spine1, both ways", "drop", "leaf0-spine1", "100%")

    def test_names_a_link_that_loses_a_little(self):
        self.names("link leaf1-spine0, both ways", "drop", "leaf1-spine0", "5%")

    def test_names_a_lossy_nic(self):
        self.names("nic s3.nic0", "drop", "s3.nic0-leaf1", "5%")

    def test_names_a_link_without_carrier(self):
        self.names("link leaf2-spine0, both ways", "down", "leaf2-spine0")

    def test_names_a_server_that_hangs(self):
        self.names("server s4", "stop", "s4")

    def inside(self, node, *command):
        done = lab_case.regatta("lab", "exec", "--lab", self.name, node, "--", *command)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def routes_to(self, server, switch):
        routes = json.loads(self.inside(switch, "ip", "-j", "route"))
        return [route for route in routes if route["dst"] == self.address(server)]

    def names_a_loss_of(self, packets, culprits, breaks, repairs):
        """What `breaks` is named as a loss of these packets alone, at one of the places that look alike, and over after `repairs`."""
        probe = self.start()
        self.assertEqual(probe.verdicts(), [], "nothing is broken yet")
        begin = time.monotonic()
        breaks()
        try:
            lab_case.wait_until(probe.verdicts, 8)
            time.sleep(1)
        finally:
            repairs()
        self.wait(lambda: probe.named("over"))
        time.sleep(2)
        self.assertEqual(probe.end(), 0)
        found = [event for _, event in probe.verdicts()]
        self.assertEqual([event["symptom"] for event in found], [f"loss of {packets} packets"], found)
        self.assertIn(found[0]["culprit"], culprits)
        self.assertEqual(len(found[0]["told_apart_by"]), len(found[0]["or"]))
        after = probe.verdicts()[0][0] - begin
        print(f"  {found[0]['culprit']} after {after:.2f} s")
        self.assertLess(after, 5)

    def listen_to_complaints(self, server):
        """Opens sockets that hear what routers say of its probes, as those of traceroutes do: the kernel remembers the path MTU for minutes."""
        others = [self.address(f"s{i}") for i in range(self.servers) if f"s{i}" != server]
        listeners = self.script(server, "import socket, time\n"
                                "all = []\n"
                                "for port in range(27901, 28101):\n"
                                f"    for to in {others!r}:\n"
                                "        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); all.append(s)\n"
                                "        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
                                f"        s.bind(('{self.address(server)}', port)); s.connect((to, 27900))\n"
                                "time.sleep(1000)\n")
        inside = ("lab", "exec", "--lab", self.name, server, "--", "cat", "/proc/net/udp")
        self.wait(lambda: lab_case.regatta(*inside).stdout.count(":6DC4 ") == len(others))  # port 28100
        return listeners

    def test_names_a_cable_whose_mtu_is_too_small_for_large_packets(self):
        listeners = self.listen_to_complaints("s2")
        device = self.routes_to("s0", "leaf1")[0]["nexthops"][1]["dev"]
        self.names_a_loss_of("large", ["link leaf1-spine1, both ways"],
                             lambda: self.inside("leaf1", "ip", "link", "set", device, "mtu", "1000"),
                             lambda: self.inside("leaf1", "ip", "link", "set", device, "mtu", "9000"))
        self.assertIsNone(listeners.poll())

    def test_names_a_route_that_only_users_packets_take(self):
        """Probes keep to a table of their own, as beside a healer, and in the main table a spine drops what is bound for a leaf."""
        for route in self.inside("spine0", "ip", "route").splitlines():
            self.inside("spine0", "sh", "-c", f"ip route add {route.replace('linkdown', '')} table 99")
        self.inside("spine0", "ip", "rule", "add", "tos", "0x10", "lookup", "99", "priority", "99")
        self.addCleanup(self.inside, "spine0", "sh", "-c", "ip rule del priority 99; ip route flush table 99")
        routes = [self.routes_to(server, "spine0")[0] for server in ("s4", "s5")]

        def replace(to):
            for route in routes:
                way = f"via {route['gateway']} dev {route['dev']} proto static"
                self.inside("spine0", "sh", "-c", f"ip route del {route['dst']}; ip route add " + to(route["dst"], way))
        self.names_a_loss_of("users'", ["link leaf2-spine0 from spine0 to leaf2"],
                             lambda: replace(lambda target, way: f"blackhole {target}"),
                             lambda: replace(lambda target, way: f"{target} {way}"))

    def test_says_what_connections_and_routers_say_of_a_lossy_link(self):
        listener = self.script("s4", "import socket\n"
                               "l = socket.create_server(('', 5000))\n"
                               "all = [l.accept()[0] for _ in range(16)]\n"
                               "import selectors\n"
                               "s = selectors.DefaultSelector()\n"
                               "[s.register(c, 1) for c in all]\n"
                               "while True: [k.fileobj.recv(65536) for k, _ in s.select()]\n")
        inside = ("lab", "exec", "--lab", self.name, "s4", "--", "cat", "/proc/net/tcp")
        self.wait(lambda: ":1388 " in lab_case.regatta(*inside).stdout)  # port 5000
        sender = self.script("s0", "import socket, time\n"
                             f"all = [socket.create_connection(('{self.address('s4')}', 5000)) for _ in range(16)]\n"
                             "while True: [c.send(b'x' * 1000) for c in all]; time.sleep(0.005)\n")
        probe = self.start()
        self.wait(lambda: probe.named("surveyed"))
        self.fault("drop", "leaf0-spine1", "5%")
        self.wait(lambda: probe.named("evidence"))
        self.assertIsNone(sender.poll())
        self.assertIsNone(listener.poll())
        self.assertEqual(probe.end(), 0)
        self.assertEqual([event["culprit"] for _, event in probe.verdicts()], ["link leaf0-spine1, both ways"])
        evidence = probe.named("evidence")[0]
        print(f"  {evidence}")
        self.assertEqual(evidence["culprit"], "link leaf0-spine1, both ways")
        self.assertGreater(evidence["traced_before"], 0)
        self.assertGreater(evidence["answered_before"] / evidence["traced_before"],
                           evidence["answered_behind"] / evidence["traced_behind"])
        self.assertGreater(evidence["segments"], 0)
        self.assertGreater(evidence["sent_again"] / evidence["segments"], 0.01)
        self.assertLess(evidence["other_sent_again"] / evidence["other_segments"], evidence["sent_again"] / evidence["segments"])

    def test_blames_no_switch_for_having_changed_its_hash_before_a_link_broke(self):
        probe = self.start()
        self.wait(lambda: probe.named("surveyed"))
        self.hash_otherwise("leaf0")
        self.fault("drop", "leaf0-spine1", "100%")
        lab_case.wait_until(probe.verdicts, 6)
        time.sleep(1)
        self.assertEqual(probe.end(), 0)
        blamed = {event["culprit"] for _, event in probe.verdicts()}
        print(f"  {len(probe.named('elsewhere'))} ways elsewhere, blamed: {blamed}")
        # Losses on unmeasured paths are no evidence; the paths of the other direction are measured.
        self.assertTrue(all(culprit.startswith("link leaf0-spine1") for culprit in blamed), blamed)

    def test_proves_what_it_covers_and_blames_nobody_where_nothing_is_broken(self):
        done = lab_case.regatta("probe", self.cluster, "--duration", "4s", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        coverage = events[0]
        self.assertEqual(coverage["event"], "coverage")
        self.assertEqual(coverage["missing"], [])
        self.assertEqual(len(coverage["paths"]), 24)
        self.assertGreaterEqual(min(len(paths) for paths in coverage["paths"].values()), 3)
        self.assertEqual([event for event in events if event.get("is_fault")], [])
        surveyed = [event for event in events if event["event"] == "surveyed"]
        self.assertEqual([(event["confirmed"], event["divergent"]) for event in surveyed], [(surveyed[0]["paths"], 0)])
        self.assertEqual([event["event"] for event in events[-2:]], ["pairs", "summary"])
        self.assertEqual(events[-1]["faults"], 0)
        self.assertEqual(sum(pair["lost"] for pair in events[-2]["pairs"]), 0)
        self.assertTrue(all(pair["mean_us"] > 0 for pair in events[-2]["pairs"]))
        self.assertEqual(self.probers(), [])

    def test_starts_a_killed_prober_again_and_counts_it(self):
        probe = self.start()
        os.kill(self.probers()[0], signal.SIGKILL)
        self.assertTrue(lab_case.wait_until(lambda: probe.named("restarted"), 10), probe.events)
        self.assertTrue(lab_case.wait_until(lambda: len(self.probers()) == self.servers, 5))
        self.assertEqual(probe.end(), 0)
        self.assertEqual(probe.named("summary")[0]["restarted_probers"], 1)

    def test_leaves_no_prober_when_it_is_killed(self):
        probe = self.start()
        probe.end(signal.SIGKILL)
        self.assertTrue(lab_case.wait_until(lambda: not self.probers(), 5))


class ProbeOfWrongSettings(ProbeLab):
    """Nothing is broken, and yet packets are lost: what is set up wrongly is named, and no switch or link beside it."""

    def names(self, culprit, symptom, begin, end):
        probe = self.start()
        self.assertEqual(probe.verdicts(), [], "nothing is wrong yet")
        begin()
        self.wait(probe.verdicts, 6)
        time.sleep(3)
        end()
        self.wait(lambda: probe.named("over"), 10)
        time.sleep(3)
        self.assertEqual(probe.end(), 0)
        found = [(event["culprit"], event["symptom"]) for _, event in probe.verdicts()]
        self.assertEqual(found, [(culprit, symptom)])

    def swap(self, one, other):
        # Before, the switch or both links were blamed, in turns, each with confidence 1.
        self.names(f"cables {one} and {other}", "swapped", lambda: self.fault("swap", one, other),
                   lambda: lab_case.regatta("lab", "fault", "clear", one, "--lab", self.name))

    def test_names_cables_that_are_swapped_at_one_switch(self):
        self.swap("leaf0-spine0", "leaf1-spine0")

    def test_names_cables_that_are_swapped_between_two_switches(self):
        self.swap("leaf0-spine0", "leaf1-spine1")

    def test_names_an_address_that_two_servers_have(self):
        def on_s4(verb):
            done = lab_case.regatta("lab", "exec", "--lab", self.name, "s4", "--", "python3", "-c", ADDRESS, verb, self.address("s0"))
            self.assertEqual(done.returncode, 0, done.stderr)

        # Before: switch leaf2 with confidence 1.
        self.names("address 10.64.0.0 of s0.nic0 and s4.nic0", "used twice", lambda: on_s4("add"), lambda: on_s4("remove"))

    def suspicion_of_dropped(self, ports):
        """Of spine1, which drops TCP to these ports where it comes from leaf0."""
        listener = self.script("s4", "import selectors, socket\n"
                               "s = selectors.DefaultSelector()\n"
                               "for p in range(5000, 5016):\n"
                               "    l = socket.create_server(('', p)); s.register(l, 1, l)\n"
                               "while True:\n"
                               "    for k, _ in s.select():\n"
                               "        if k.data: s.register(k.data.accept()[0], 1)\n"
                               "        else: k.fileobj.recv(65536)\n")
        inside = ("lab", "exec", "--lab", self.name, "s4", "--", "cat", "/proc/net/tcp")
        self.wait(lambda: ":1397 " in lab_case.regatta(*inside).stdout)  # port 5015
        senders = [self.script(server, "import socket, time\n"
                               f"all = [socket.create_connection(('{self.address('s4')}', p)) for p in range(5000, 5016) for _ in range(4)]\n"
                               "for c in all: c.setblocking(False)\n"
                               "while True:\n"
                               "    for c in all:\n"
                               "        try: c.send(b'x' * 500)\n"
                               "        except BlockingIOError: pass\n"
                               "    time.sleep(0.05)\n") for server in ("s0", "s1", "s2", "s3")]
        probe = self.start()
        self.wait(lambda: probe.named("surveyed"))
        time.sleep(4)
        self.assertEqual(probe.named("suspected"), [])
        done = lab_case.regatta("lab", "exec", "--lab", self.name, "spine1", "--", "python3", "-c", DROP_PORTS, "port0", ports)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(lab_case.regatta, "lab", "exec", "--lab", self.name, "spine1", "--", "python3", "-c", DROP_NOTHING)
        begin = time.monotonic()
        self.assertTrue(lab_case.wait_until(lambda: probe.named("suspected"), 25), probe.events[-5:])
        print(f"  after {time.monotonic() - begin:.1f} s: {probe.named('suspected')[0]}")
        self.assertTrue(all(sender.poll() is None for sender in [listener, *senders]))
        self.assertEqual(probe.end(), 0)
        self.assertEqual(probe.verdicts(), [], "no probe is lost")
        suspicion = probe.named("suspected")[0]
        self.assertEqual((suspicion["culprit"], suspicion["or"]), ("link leaf0-spine1 from leaf0 to spine1", []))
        self.assertLessEqual(suspicion["confidence"], 0.95)
        return suspicion

    def test_suspects_a_link_that_swallows_some_ports_of_connections(self):
        self.assertEqual(self.suspicion_of_dropped("5000-5007")["to_ports"], [5000, 5007])

    def test_suspects_a_link_that_swallows_all_of_tcp(self):
        suspicion = self.suspicion_of_dropped("0-65535")
        self.assertNotIn("to_ports", suspicion)
        self.assertNotIn("from_ports", suspicion)


class ProbeOfTwoLeaves(ProbeLab):
    """Where each way over a spine leads on to the one other leaf: probes alone cannot tell an uplink from the other behind it."""
    servers = 4

    def standing(self, probe):
        culprits = []
        for _, event in list(probe.events):
            if event["event"] == "begun" and event["is_fault"]:
                culprits.append(event["culprit"])
            elif event["event"] == "over" and event["is_fault"]:
                culprits.remove(event["culprit"])
        return culprits

    def names_in_the_end(self, probe, culprit):
        def told():
            return [event for _, event in probe.events if event["event"] in ("begun", "over", "evidence")]

        self.assertTrue(lab_case.wait_until(lambda: self.standing(probe) == [culprit], 15), told())
        self.wait(lambda: any(event["culprit"] == culprit for event in probe.named("evidence")))
        time.sleep(0.5)
        self.assertEqual(self.standing(probe), [culprit], told())

    def test_traceroutes_tell_apart_what_probes_cannot(self):
        for link, share in (("leaf1-spine1", "100%"), ("leaf0-spine0", "10%")):
            probe = self.start()
            self.wait(lambda: probe.named("surveyed"))
            self.fault("drop", link, share)
            self.names_in_the_end(probe, f"link {link}, both ways")
            self.assertEqual(probe.end(), 0)
            evidence = [event for event in probe.named("evidence") if event["culprit"] == f"link {link}, both ways"][0]
            print(f"  {link} {share}: {evidence}")
            # Nothing is lost before it, and in a lab every router answers.
            self.assertGreater(evidence["answered_before"] / evidence["traced_before"], 0.99)
            self.assertGreater(evidence["answered_before"] / evidence["traced_before"],
                               evidence["answered_behind"] / evidence["traced_behind"])
            lab_case.regatta("lab", "fault", "clear", "--lab", self.name)

    def test_takes_ways_as_they_are_measured_where_switches_hash_otherwise(self):
        for leaf in ("leaf0", "leaf1"):
            self.hash_otherwise(leaf)
        probe = self.start()
        self.wait(lambda: probe.named("remapped"))
        self.assertGreater(probe.named("surveyed")[0]["divergent"], 0)
        self.assertEqual(probe.named("remapped")[-1]["divergent"], 0)
        self.assertEqual(probe.named("remapped")[-1]["confirmed"], probe.named("surveyed")[0]["paths"])
        self.fault("drop", "leaf1-spine0", "10%")
        self.names_in_the_end(probe, "link leaf1-spine0, both ways")
        self.assertEqual(probe.end(), 0)


if __name__ == "__main__":
    unittest.main()
