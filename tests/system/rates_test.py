"""`regatta rates` in a lab: the link that was cut to a third of its rate is named, and no other; nothing is left of it."""
import json
import pathlib
import subprocess
import time
import unittest

import lab_case

CLUSTER = """\
name: {name}
server_types:
  server:
    devices: {{count: 1, type: cpu, cpu_share: 5%}}
    intra: {{kind: shm}}
    nics: {{count: 1, rate: 60Mbps}}
fabric:
  tiers: [leaf, spine]
  servers_per_leaf: 2
  spines: 2
  uplink: 60Mbps
servers: {{count: 4, type: server}}
"""
HEADING = ("at_s,device,port,rate_bps,in_bytes,in_packets,in_drops,in_errors,"
           "out_bytes,out_packets,out_drops,out_errors,queued_bytes,rx_pauses")


class RatesCommand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lab_case.bring_up_lab(cls, "rates", CLUSTER)

    def agents(self):
        return [pid for pid in lab_case.processes()
                if "rates serve" in lab_case.command_of(pid) and f"/{self.name}/" in lab_case.command_of(pid)]

    def fault(self, *arguments):
        done = lab_case.regatta("lab", "fault", *arguments, "--lab", self.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(lab_case.regatta, "lab", "fault", "clear", "--lab", self.name)

    def measure(self, *arguments):
        """The events of one run, by name; it leaves no process."""
        done = lab_case.regatta("rates", "probe", "--lab", self.name, "--json", *arguments)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(self.agents(), [])
        self.assertFalse(list(pathlib.Path("/run/regatta").glob(f"{self.name}/rates.sock")))
        self.assertEqual(events[-1]["event"], "summary", done.stderr)
        self.assertEqual(done.returncode, 1 if events[-1]["slow"] else 0, done.stderr)
        print(f"  {events[-1]}")
        return {name: [event for event in events if event["event"] == name] for name in ("learned", "slow", "rates", "summary")}

    def test_a_healthy_fabric_has_no_slow_link(self):
        events = self.measure()
        self.assertEqual(events["slow"], [])
        self.assertTrue(events["summary"][0]["healthy"])
        self.assertLessEqual(events["summary"][0]["largest_share"], 0.05)
        for link in events["rates"][0]["links"]:
            self.assertTrue(link["is_measured"], link)
            self.assertGreater(link["at_least_bps"], 0.85 * link["described_bps"], link)

    def test_names_the_link_that_was_cut_to_a_third(self):
        for cable in ("leaf0-spine1", "s3.nic0-leaf1"):
            with self.subTest(cable=cable):
                self.fault("slow", cable, "20Mbps")
                events = self.measure()
                lab_case.regatta("lab", "fault", "clear", "--lab", self.name)
                self.assertEqual({slow["cable"] for slow in events["slow"]}, {cable})
                self.assertEqual(len(events["slow"]), 2)  # both directions
                for slow in events["slow"]:
                    self.assertEqual(slow["or"], [])
                    self.assertTrue(slow["slow_paths"])
                    self.assertAlmostEqual(slow["measured_bps"], 20e6, delta=3e6)

    def test_learns_the_paths_where_switches_hash_otherwise(self):
        seed = "/proc/sys/net/ipv4/fib_multipath_hash_seed"
        for switch in ("leaf0", "leaf1"):
            inside = ("lab", "exec", "--lab", self.name, switch, "--", "sh", "-c")
            before = lab_case.regatta(*inside, f"cat {seed}").stdout.strip()
            lab_case.regatta(*inside, f"echo 12345 > {seed}")
            self.addCleanup(lab_case.regatta, *inside, f"echo {before} > {seed}")
        self.fault("slow", "leaf0-spine0", "20Mbps")
        events = self.measure("--learn-paths")
        self.assertEqual(events["learned"][0]["thin"], [])
        self.assertEqual({slow["cable"] for slow in events["slow"]}, {"leaf0-spine0"})
        self.assertEqual(events["summary"][0]["slow"], 2)
        self.assertEqual(events["summary"][0]["not_measured"], 1)  # from the spine to the other leaf: behind the slow one

    def test_waits_while_links_carry_other_traffic(self):
        target = "10.64.0.4"  # of s2: cables stand in the order of servers
        script = ("import socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nend = time.time() + 6\n"
                  f"while time.time() < end: s.sendto(bytes(1400), ('{target}', 9)); time.sleep(0.001)")
        sender = subprocess.Popen([lab_case.BIN / "regatta", "lab", "exec", "--lab", self.name, "s0", "--", "python3", "-c", script])
        self.addCleanup(sender.wait)
        self.addCleanup(sender.terminate)
        time.sleep(1)
        events = self.measure("--limit", "3s")
        self.assertGreater(events["summary"][0]["busy_links"], 0)
        self.assertGreater(events["summary"][0]["not_measured"], 0)
        self.assertFalse(events["summary"][0]["healthy"])
        self.assertEqual(events["slow"], [])

    def test_text_begins_the_summary_with_the_verdict(self):
        self.fault("slow", "leaf1-spine0", "20Mbps")
        done = lab_case.regatta("rates", "probe", "--lab", self.name, "--all")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("slow: leaf1-spine0 from ", done.stdout)
        self.assertRegex(done.stdout.splitlines()[-1], r"^slow: 16 directed links, 2 slow \(leaf1-spine0 both ways\)")

    def test_counters_of_the_kernel_name_the_link_on_which_packets_wait(self):
        """Readings of tc, as a collector on the switch would write them, while a server sends too much."""
        self.fault("slow", "leaf0-spine1", "20Mbps")
        self.fault("slow", "leaf0-spine0", "20Mbps")
        script = ("import socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nend = time.time() + 8\n"
                  "while time.time() < end: s.sendto(bytes(1400), ('10.64.0.4', 9)); time.sleep(0.0002)")
        sender = subprocess.Popen([lab_case.BIN / "regatta", "lab", "exec", "--lab", self.name, "s0", "--", "python3", "-c", script])
        self.addCleanup(sender.wait)
        self.addCleanup(sender.terminate)
        time.sleep(1)
        lines = [HEADING]
        for _ in range(5):
            lines += self.readings("leaf0")
            time.sleep(0.4)
        counters = self.folder / "counters.csv"
        counters.write_text("\n".join(lines) + "\n")
        done = lab_case.regatta("rates", "counters", counters, "--lab", self.name, "--json")
        self.assertEqual(done.returncode, 1, done.stderr)
        faults = [json.loads(line) for line in done.stdout.splitlines()][:-1]
        self.assertEqual(len(faults), 1, faults)  # the flow takes one of the two
        self.assertEqual(faults[0]["kind"], "slow")
        self.assertIn(faults[0]["cable"], ("leaf0-spine0", "leaf0-spine1"))
        self.assertIn(" from leaf0 to ", faults[0]["link"])
        self.assertAlmostEqual(faults[0]["measured_bps"], 20e6, delta=4e6)

    def readings(self, switch):
        links = [f"s{i}.nic0-{switch}" for i in (0, 1)] + [f"{switch}-spine{i}" for i in (0, 1)]
        done = lab_case.regatta("lab", "exec", "--lab", self.name, switch, "--", "tc", "-s", "-j", "qdisc", "show")
        if done.returncode != 0:
            self.skipTest("tc is not here")
        lines = []
        for queue in json.loads(done.stdout):
            if queue.get("kind") != "tbf" or not queue["dev"].startswith("port"):
                continue
            link = links[int(queue["dev"].removeprefix("port"))]
            lines.append(f"{time.time():.3f},{switch},{link},,,,,,{queue['bytes']},{queue['packets']},{queue['drops']},,"
                         f"{queue['backlog']},")
        return lines

    def test_wrong_input_names_the_remedy(self):
        counters = self.folder / "wrong.csv"
        counters.write_text(HEADING + "\n1,leaf9,leaf0-spine1,,,,,,,,,,,\n")
        for arguments, sentence in (
                (("rates", "probe"), "give a cluster file, or name a lab"),
                (("rates", "probe", "--lab", "nowhere"), "nowhere"),
                (("rates", "probe", "--lab", self.name, "--share", "90%"), "--share: '90%' is not from 0.1% to 50%"),
                (("rates", "probe", self.cluster), "--listen is missing"),
                (("rates", "counters", counters, "--lab", self.name), ":2: device leaf9: is not in the cluster"),
                (("rates", "counters", self.folder / "none.csv", "--lab", self.name), "name a file of counters"),
                (("rates", "serve", "--server", "s0", "--controller", "nowhere.invalid:1"), "--controller")):
            with self.subTest(arguments=arguments):
                done = lab_case.regatta(*arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(sentence, done.stderr)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
