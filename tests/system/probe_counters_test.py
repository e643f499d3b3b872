"""`regatta probe --counters` in a lab of two leaves, where probes cannot tell a cable from the other one of its spine: counters of switches
can, and neighbors name swapped cables."""
import json
import os
import time
import unittest

import lab_case
from probe_test import CLUSTER, Probe

HEADING = ("at_s,device,port,rate_bps,in_bytes,in_packets,in_drops,in_errors,out_bytes,out_packets,out_drops,out_errors,"
           "queued_bytes,rx_pauses,up")
SWITCHES = ("leaf0", "leaf1", "spine0", "spine1")


class Collector:
    """Appends counters of all ports of the switches to a file, and what the ports hear."""

    def __init__(self, path):
        self.path, self.packets = path, 0
        self.errors = {}  # by switch and port
        path.write_text(HEADING + "\n")

    def append(self, *lines):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))

    def count(self):
        self.packets += 2000
        links = [(leaf, f"{leaf}-{spine}", spine) for leaf in SWITCHES[:2] for spine in SWITCHES[2:]]
        self.append(*(f"{time.monotonic():.3f},{switch},{port},,,{self.packets},0,{self.errors.get((switch, port), 0)},,,,,,,1"
                      for leaf, port, spine in links for switch in (leaf, spine)))

    def break_packets(self, switch, port):
        self.errors[switch, port] = self.errors.get((switch, port), 0) + 100


class ProbeCounters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lab_case.bring_up_lab(cls, "counters", CLUSTER.replace("count: 6", "count: 4"))

    def setUp(self):
        self.collector = Collector(self.folder / f"{self._testMethodName}.csv")

    def start(self, *arguments):
        probe = Probe(self.cluster, "--counters", self.collector.path, *arguments)
        self.addCleanup(lambda: probe.process.poll() is None and probe.process.kill())
        self.assertTrue(lab_case.wait_until(lambda: probe.named("reporting"), 20))
        time.sleep(2)
        return probe

    def count_until(self, condition, limit_s=20, broken=()):
        """Readings every 0.5 s until the condition holds."""
        def step():
            for port in broken:
                self.collector.break_packets(*port)
            self.collector.count()
            time.sleep(0.5)
            return condition()
        self.assertTrue(lab_case.wait_until(step, limit_s))

    def silence_routers(self):
        """Without answers to traceroutes only probes are left."""
        for switch in SWITCHES:
            def set_rate(mask, limit, switch=switch):
                done = lab_case.regatta("lab", "exec", "--lab", self.name, switch, "--", "sh", "-c",
                                        f"echo {mask} > /proc/sys/net/ipv4/icmp_ratemask; echo {limit} > /proc/sys/net/ipv4/icmp_ratelimit")
                self.assertEqual(done.returncode, 0, done.stderr)
            set_rate(2**31 - 1, 10**6)
            self.addCleanup(set_rate, 0, 1000)

    def fault(self, *arguments):
        done = lab_case.regatta("lab", "fault", *arguments, "--lab", self.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(lab_case.regatta, "lab", "fault", "clear", "--lab", self.name)

    def test_moves_a_verdict_to_the_cable_whose_port_counts_errors(self):
        self.silence_routers()
        probe = self.start()
        self.count_until(lambda: self.collector.packets > 6000)
        self.fault("drop", "leaf1-spine0", "10%")
        self.count_until(probe.verdicts)
        first = probe.verdicts()[0][1]
        cables = ["link leaf0-spine0, both ways", "link leaf1-spine0, both ways"]
        self.assertIn(first["culprit"], cables)
        other = cables[1 - cables.index(first["culprit"])]
        self.assertIn(other, first["or"], "probes cannot tell them apart")
        still = time.monotonic() + 3
        self.count_until(lambda: time.monotonic() > still)
        self.assertEqual(len(probe.verdicts()), 1, "without errors it stays")
        self.assertEqual([event["counters"] for event in probe.named("counted")], ["disagree"])
        # The port of the other cable counts errors, whichever was named first.
        leaf = other.split()[1].split("-")[0]
        begin = time.monotonic()
        self.count_until(lambda: probe.verdicts()[-1][1]["culprit"] == other, broken=[(leaf, f"{leaf}-spine0")])
        moved = time.monotonic() - begin
        self.count_until(lambda: [event for event in probe.named("counted") if event["culprit"] == other],
                         broken=[(leaf, f"{leaf}-spine0")])
        self.count_until(lambda: probe.named("over"), broken=[(leaf, f"{leaf}-spine0")])
        time.sleep(2)
        self.assertEqual(probe.end(), 0)
        self.assertEqual([event["culprit"] for _, event in probe.verdicts()], [first["culprit"], other])
        self.assertEqual([event["culprit"] for event in probe.named("over")], [first["culprit"]])
        counted = [event for event in probe.named("counted") if event["culprit"] == other][-1]
        self.assertEqual(counted["counters"], "agree")
        self.assertGreaterEqual(counted["errors"], 100)
        self.assertEqual(probe.named("counters_left_out"), [])
        print(f"  moved after {moved:.1f} s: {counted}")

    def test_suspects_a_link_whose_errors_probes_do_not_see(self):
        probe = self.start()
        self.count_until(lambda: probe.named("suspected"), 40, broken=[("spine1", "leaf0-spine1")])
        self.assertEqual(probe.end(), 0)
        suspected = probe.named("suspected")
        self.assertEqual([(event["culprit"], event["source"]) for event in suspected],
                         [("link leaf0-spine1 from leaf0 to spine1", "counters")])
        self.assertEqual(probe.verdicts(), [])

    def test_names_swapped_cables_that_ports_hear(self):
        """Only one switch speaks LLDP, and the cables of the lab are where they should be: what counts is the line."""
        probe = self.start()
        self.collector.append("neighbor,1,leaf0,leaf0-spine0,spine0,leaf1-spine0")
        self.assertTrue(lab_case.wait_until(probe.verdicts, 5))
        self.collector.append("neighbor,2,leaf0,leaf0-spine0,spine0,leaf0-spine0")
        self.assertTrue(lab_case.wait_until(lambda: probe.named("over"), 5))
        self.assertEqual(probe.end(), 0)
        self.assertEqual([(event["culprit"], event["symptom"]) for _, event in probe.verdicts()],
                         [("cables leaf0-spine0 and leaf1-spine0", "swapped")])

    def test_names_a_port_that_is_down_by_its_line(self):
        probe = self.start()
        line = "1,leaf0,leaf0-spine1" + "," * 12
        self.collector.append(line + "0")
        self.assertTrue(lab_case.wait_until(probe.verdicts, 5))
        self.collector.append(line + "1")
        self.assertTrue(lab_case.wait_until(lambda: probe.named("over"), 5))
        self.assertEqual(probe.end(), 0)
        self.assertEqual([(event["culprit"], event["symptom"]) for _, event in probe.verdicts()],
                         [("link leaf0-spine1, both ways", "no carrier")])

    def test_counts_wrong_lines_and_names_each_kind_once(self):
        probe = self.start()
        for _ in range(50):
            self.collector.append("no line", "1,leaf9,leaf0-spine1" + "," * 12, "neighbor,1,leaf0,leaf0-spine0,tor7,swp1")
        self.assertTrue(lab_case.wait_until(lambda: len(probe.named("counters_left_out")) == 3, 5), probe.events)
        self.assertEqual(probe.end(), 0)
        self.assertEqual(len(probe.named("counters_left_out")), 3)
        self.assertEqual(probe.named("summary")[0]["counter_lines_left_out"], 150)
        self.assertEqual(probe.verdicts(), [])

    def test_says_that_lines_of_before_the_start_are_left_out(self):
        self.collector.count()
        with open(self.collector.path, encoding="utf-8") as file:
            done = lab_case.regatta("probe", self.cluster, "--counters", "-", "--duration", "2s", "--json", stdin=file)
        self.assertEqual(done.returncode, 0, done.stderr)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        told = [event for event in events if event["event"] == "counters_left_out"]
        self.assertEqual(len(told), 1, told)
        self.assertIn("standard input: the lines that it had at the start are left out", str(told[0]))

    def test_follows_a_pipe_of_one_writer_after_the_other(self):
        self.collector.path.unlink()
        os.mkfifo(self.collector.path)
        probe = self.start()
        for up in ("0", "1"):
            self.collector.append("1,leaf0,leaf0-spine1" + "," * 12 + up)
            self.assertTrue(lab_case.wait_until(lambda up=up: probe.named("begun" if up == "0" else "over"), 5))
        self.assertEqual(probe.end(), 0)

    def test_refuses_a_file_that_is_not_there_and_one_without_an_end(self):
        for path in (self.folder / "none.csv", "/dev/zero"):
            done = lab_case.regatta("probe", self.cluster, "--counters", path, "--duration", "1s")
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, f"--counters {path}: .*name a file or a pipe that a collector writes")


if __name__ == "__main__":
    unittest.main()
