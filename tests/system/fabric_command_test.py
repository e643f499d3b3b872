"""`regatta fabric`: what it proves of a cluster's network, and shows where it cannot."""
import json
import pathlib
import resource
import signal
import subprocess
import tempfile
import time
import unittest
from xml.etree import ElementTree

import lab_case

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
FOUR_LEAVES = """\
name: four
server_types:
  one: {devices: {count: 1, type: cpu}, intra: {kind: shm}, nics: {count: 1, rate: 1Gbps}}
fabric: {tiers: [leaf, spine], servers_per_leaf: 2, spines: 2, uplink: 1Gbps}
servers: {count: 8, type: one}
"""
BOUNCES = """\
spine0 leaf2 leaf0-spine0
leaf0  leaf2 leaf0-spine1
spine1 leaf3 leaf1-spine1
leaf1  leaf3 leaf1-spine0
"""
HEADING = ("at_s,device,port,priority,up,queued_bytes,sent_packets,rx_pauses,rx_paused_us,received_packets,"
           "tx_pauses,tx_paused_us")


def allow_small_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))


class FabricCommand(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cluster = self.file("cluster.yaml", FOUR_LEAVES)

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def test_check_proves_that_there_is_no_cycle(self):
        done = lab_case.regatta("fabric", "check", self.cluster, "--failures", 1)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("no deadlock: 16 directed links (8 cables), 24 dependencies between them, no cycle\n", done.stdout)
        self.assertIn("proof: 2 layers of 8, 8 directed links", done.stdout)
        self.assertIn("1 failure at once: all 14 checked; 0 changed paths of traffic", done.stdout)

    def test_check_shows_the_cycle_that_failures_make(self):
        done = lab_case.regatta("fabric", "check", self.cluster, "--failures", 2, "--json")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        found = json.loads(done.stdout)["failures"][1]
        self.assertEqual(found["failed"], ["leaf0-spine0", "leaf1-spine1"])
        cycle = found["cycle"]
        for link, after in zip(cycle, cycle[1:] + cycle[:1]):
            self.assertEqual(link["to"], after["from"])

    def test_check_prints_the_old_names_of_keys_too(self):
        found = json.loads(lab_case.regatta("fabric", "check", self.cluster, "--failures", 2, "--prove", "--json").stdout)
        for one, new, old in ((found, "has_cycle", "has_circle"), (found, "directed_links", "links"), (found, "dependencies", "waits"),
                              (found, "down_up_turns", "bounces"), (found["failures"][1], "simultaneous", "at_once"),
                              (found["failures"][1], "disconnected", "cut_off"), (found["failures"][1], "cycle", "circle"),
                              (found["proof"], "quiescent_s", "still_s")):
            self.assertEqual(one[new], one[old], new)
        self.assertEqual(found["cables"], found["directed_links"] // 2)

    def test_check_reproduces_the_cycle(self):
        routes = self.file("routes.txt", BOUNCES)
        done = lab_case.regatta("fabric", "check", self.cluster, "--routes", routes, "--prove")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("reproduced packet by packet: ", done.stdout)
        done = lab_case.regatta("fabric", "check", self.cluster, "--failures", 2, "--prove", "--json")
        found = json.loads(done.stdout)
        self.assertTrue(found["proof"]["deadlocks"])
        self.assertEqual(len(found["proof"]["links"]), len(found["failures"][1]["cycle"]))
        self.assertNotIn("proof", json.loads(lab_case.regatta("fabric", "check", self.cluster, "--prove", "--json").stdout))

    def test_check_shows_the_cycle_of_routes_of_a_file(self):
        routes = self.file("routes.txt", BOUNCES)
        done = lab_case.regatta("fabric", "check", self.cluster, "--routes", routes)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("deadlock possible: a cycle of 4 directed links\n", done.stdout)
        self.assertIn("leaf0-spine0  spine0  leaf0   leaf2\n", done.stdout)
        routes.write_text(BOUNCES.replace("leaf1-spine0", "leaf2-spine0"))
        done = lab_case.regatta("fabric", "check", self.cluster, "--routes", routes)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f"regatta: {routes}:4: leaf1 has no link 'leaf2-spine0' to another switch; "
                                      "did you mean 'leaf1-spine0'?\n")

    def test_check_names_the_traffic_that_a_loop_of_routes_keeps(self):
        routes = self.file("routes.txt", "leaf0 leaf1 leaf0-spine0\nspine0 leaf1 leaf0-spine0\n")
        done = lab_case.regatta("fabric", "check", self.cluster, "--routes", routes)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertRegex(done.stdout, "the routes contain a loop: traffic to leaf1 on leaf0-spine0 (up|down), "
                                      "leaf0-spine0 (up|down) never arrives\n")
        found = json.loads(lab_case.regatta("fabric", "check", self.cluster, "--routes", routes, "--json").stdout)
        self.assertEqual((found["loop"]["leaf"], sorted(found["loop"]["links"])), ("leaf1", ["leaf0-spine0 down", "leaf0-spine0 up"]))
        routes.write_text(BOUNCES)
        found = json.loads(lab_case.regatta("fabric", "check", self.cluster, "--routes", routes, "--json").stdout)
        self.assertNotIn("loop", found)

    def test_check_says_that_nothing_can_fail_or_be_proven(self):
        one_leaf = EXAMPLES / "cluster-one-leaf.yaml"
        done = lab_case.regatta("fabric", "check", one_leaf, "--failures", 2, "--prove")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "no deadlock: no cable joins two switches\n"
                                      "no failure to check: no cable joins two switches\n"
                                      "nothing to prove: there is no cycle\n")

    def test_design_writes_a_cluster_that_other_commands_read(self):
        out, svg, ports = (self.folder / name for name in ("d.yaml", "d.svg", "d.csv"))
        done = lab_case.regatta("fabric", "design", "--gpus", 15360, "--preset", "dual-plane", "--out", out, "--svg", svg,
                                "--cables", ports)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("16 rails in 2 planes", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
        self.assertIn("grows to 16384 GPUs", done.stdout)
        shown = json.loads(lab_case.regatta("topo", out, "--json").stdout)["fabric"]
        self.assertEqual((shown["leaves"], shown["spines"], shown["planes"], shown["devices"]), (240, 120, 2, 15360))
        lines = ports.read_text().splitlines()
        self.assertEqual(len(lines), 1 + 2 * 15360 + 240 * 60)
        self.assertEqual(lines[1], "s0,nic0,leaf0,1,200Gbps,server-leaf,s0.nic0-leaf0")
        ElementTree.parse(svg)
        self.assertLess(svg.stat().st_size, 2_000_000)
        self.assertIn("no deadlock", lab_case.regatta("fabric", "check", out).stdout)

    def test_design_writes_all_of_its_files_or_none(self):
        out = self.file("d.yaml", "old")
        # There is room for the cluster file, and none for the drawing.
        done = subprocess.run([lab_case.BIN / "regatta", "fabric", "design", "--gpus", "64", "--out", out, "--svg",
                               self.folder / "d.svg"], capture_output=True, text=True, preexec_fn=allow_small_files)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, f"regatta: {self.folder}/d.svg: file too large; choose another place with --svg\n")
        self.assertEqual(out.read_text(), "old")
        done = lab_case.regatta("fabric", "design", "--gpus", 64, "--out", out, "--svg", "/dev/full")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "regatta: /dev/full: no space left on device; choose another place with --svg\n")
        self.assertEqual(out.read_text(), "old")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["cluster.yaml", "d.yaml"])

    def test_check_names_the_routes_that_failures_leave_without_a_path(self):
        routes = self.file("routes.txt", "leaf0 * leaf0-spine0\n")
        done = lab_case.regatta("fabric", "check", self.cluster, "--routes", routes, "--failures", 1)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("1 failure at once: all 14 checked; ", done.stdout)
        self.assertIn("after spine0 failed: leaf0 has no route to leaf1\n", done.stdout)
        done = lab_case.regatta("fabric", "check", self.cluster, "--routes", routes, "--failures", 1, "--json")
        found = json.loads(done.stdout)["failures"][0]
        self.assertEqual((found["checked"], found["has_cycle"]), (14, False))
        self.assertIn({"failed": ["spine0"], "switch": "leaf0", "leaf": "leaf1"}, found["lost_routes"])
        routes.write_text("# nothing\n")
        done = lab_case.regatta("fabric", "check", self.cluster, "--routes", routes)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("no route is in it", done.stderr)

    def test_design_says_in_json_what_it_is(self):
        done = lab_case.regatta("fabric", "design", "--gpus", 65536, "--json")
        design = json.loads(done.stdout)
        self.assertEqual((design["tiers"], design["leaves"], design["spines"], design["super_spines"]), (3, 1024, 1024, 512))
        self.assertEqual([hop["links"] for hop in design["distances"]], [2, 4, 6])

    def test_ports_spread_connections_over_links(self):
        done = lab_case.regatta("fabric", "ports", self.cluster, "--permutation", "--seed", 2, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        plan = json.loads(done.stdout)
        self.assertEqual((plan["max_link_connections"], plan["most_on_a_link"]), (1, 1))
        self.assertGreater(plan["max_link_connections_by_chance"], 1)
        self.assertEqual(len(plan["connections"]), 8)

    def test_ports_print_the_result_first_and_the_worst_rows_next(self):
        done = lab_case.regatta("fabric", "ports", self.cluster, "--ring", "--connections", 16)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        result, empty, _, *rows = done.stdout.splitlines()
        self.assertRegex(result, r"^128 connections: at most \d+ on one link between switches with planned ports, \d+ with random ports$")
        self.assertEqual((empty, rows[-1]), ("", "... 118 more; --out FILE and --json show all"))
        shared = [int(row.split()[3]) for row in rows[:-1]]
        self.assertEqual(shared, sorted(shared, reverse=True))
        self.assertEqual(shared[0], int(result.split()[4]))
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 120)

    def test_ports_are_planned_for_pairs_of_a_file(self):
        pairs, table = self.file("pairs.txt", "s0 s2\ns1 s3\n"), self.folder / "ports.csv"
        done = lab_case.regatta("fabric", "ports", self.cluster, "--pairs", pairs, "--connections", 2, "--out", table)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = table.read_text().splitlines()
        self.assertEqual(len(lines), 5)
        self.assertRegex(lines[1], r"^s0\.nic0,s2\.nic0,10\.64\.0\.0,10\.64\.0\.4,4791,\d+,\d+$")
        pairs.write_text("s0 s9\n")
        done = lab_case.regatta("fabric", "ports", self.cluster, "--pairs", pairs)
        self.assertEqual((done.returncode, done.stderr),
                         (2, f"regatta: {pairs}:1: the cluster has no server 's9'; its servers are s0 to s7\n"))


class FabricSimulate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "cluster.yaml").write_text(FOUR_LEAVES)

    def simulate(self, text, *arguments):
        (self.folder / "scenario.yaml").write_text("cluster: cluster.yaml\n" + text)
        return lab_case.regatta("fabric", "simulate", self.folder / "scenario.yaml", *arguments)

    def found(self, text, *arguments):
        done = self.simulate(text, "--json", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_example_runs_and_writes_its_page_and_messages(self):
        page, messages = self.folder / "page.html", self.folder / "messages.csv"
        done = lab_case.regatta("fabric", "simulate", EXAMPLES / "scenario.yaml", "--html", page, "--messages", messages)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("gradients", done.stdout)
        self.assertTrue(done.stdout.endswith(f"\n\nwritten: {page}\nwritten: {messages}\n"), done.stdout)
        self.assertIn("The busiest links", page.read_text())
        lines = messages.read_text().splitlines()
        self.assertEqual(lines[0], "item,from,to,bytes,start_s,arrived_s")
        self.assertEqual(len(lines) - 1, 3840 + 16256)

    def test_all_levels_give_about_the_same_times(self):
        ring = "traffic: [{pattern: ring_all_reduce, name: ring, bytes: 8MiB, ranks: all}]\n"
        flow = self.found(ring)
        for level in ("packet", "mixed"):
            other = self.found(ring, "--level", level)
            self.assertAlmostEqual(other["end_s"] / flow["end_s"], 1, delta=0.02)
            self.assertGreater(other["packet"]["packets"], 0)
        self.assertAlmostEqual(flow["items"][0]["busbw_Bps"] / 125e6, 1, delta=0.02)

    def test_messages_that_never_end_are_told_and_left_out_of_the_file(self):
        text = ("traffic:\n  - {pattern: message, from: s0/0, to: s2/0, bytes: 1MB}\n"
                "  - {pattern: message, from: s4/0, to: s6/0, bytes: 1MB}\n"
                "failures: [{at: 1ms, link: s2.nic0-leaf1}]\n")
        found = self.found(text, "--messages", self.folder / "m.csv")
        self.assertEqual(found["unfinished"], 1)
        self.assertIsNone(found["items"][0]["end_s"])
        self.assertEqual(len((self.folder / "m.csv").read_text().splitlines()), 2)
        said = self.simulate(text).stdout
        self.assertIn(": 2 messages between 8 devices, but 1 flow never finishes; the last other one finished after ", said.splitlines()[0])
        self.assertIn("\n1 flow never finishes: a failure left no path\n", said)

    def test_a_step_of_a_job_takes_its_numbers_from_the_plan(self):
        text = (f"traffic: [{{pattern: step, job: {EXAMPLES / 'gpt3-175b.yaml'}, name: step}}]\n")
        done = self.simulate(text, "--cluster", EXAMPLES / "a100-1024.yaml")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("item step: tp", done.stdout)

    def test_writes_over_nothing_that_it_reads_and_says_what_it_could_not_write(self):
        text = "traffic: [{pattern: message, from: s0/0, to: s2/0, bytes: 1MB}]\n"
        for flag in ("--html", "--messages"):
            done = self.simulate(text, flag, self.folder / "cluster.yaml")
            self.assertEqual(done.returncode, 2)
            self.assertIn("is used already", done.stderr)
            self.assertEqual((self.folder / "cluster.yaml").read_text(), FOUR_LEAVES)
            done = self.simulate(text, flag, "/dev/full")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("choose another place with " + flag, done.stderr)

    def test_prints_what_was_simulated_and_writes_no_file_when_it_is_interrupted(self):
        text = ("cluster: cluster.yaml\ntraffic: [{pattern: all_to_all, bytes: 1MiB, repeat: 10000}]\n")
        (self.folder / "scenario.yaml").write_text(text)
        messages = self.folder / "messages.csv"
        messages.write_text("old")
        for level in ("flow", "packet", "mixed"):
            running = subprocess.Popen([lab_case.BIN / "regatta", "fabric", "simulate", self.folder / "scenario.yaml", "--level", level,
                                        "--messages", messages, "--html", self.folder / "page.html", "--json"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(running.kill)
            deadline = time.monotonic() + 20
            while len(list(self.folder.iterdir())) < 4 and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(0.2)
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=20)
            self.assertEqual((running.returncode, err), (1, "regatta: stopped on request; no file was written\n"), level)
            found = json.loads(out)
            self.assertEqual(found["stopped_at_s"], found["end_s"])
            self.assertGreater(found["unfinished"], 0)
            self.assertIsNone(found["items"][0]["end_s"])
            self.assertEqual(messages.read_text(), "old")
            self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["cluster.yaml", "messages.csv", "scenario.yaml"])

    def test_refuses_what_takes_more_memory_than_there_is(self):
        big = self.folder / "big.yaml"
        self.assertEqual(lab_case.regatta("fabric", "design", "--gpus", 2048, "--out", big).returncode, 0)
        (self.folder / "scenario.yaml").write_text("traffic: [{pattern: all_to_all, bytes: 1MB}]\n")
        done = subprocess.run([lab_case.BIN / "regatta", "fabric", "simulate", self.folder / "scenario.yaml", "--cluster", big],
                              capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("scenario.yaml:1: 4192256 messages take some 1.43 GiB of memory, and", done.stderr)

    def test_names_the_line_of_what_is_wrong(self):
        for text, said in (
                ("traffic: [{pattern: message, from: s9/0, to: s1/0, bytes: 1MB}]\n", ":2: no server is called 's9'"),
                ("traffic: [{pattern: trace, file: none.csv}]\n", "none.csv"),
                ("traffic: []\n", "nothing is sent"),
                ("packet: {header: 1MiB}\ntraffic: []\n", "scenario.yaml:2: packet.header: more than 65535 bytes"),
                ("traffic: [{pattern: incast, bytes: 1MB}]\n", "traffic[0].to: missing; name the device that is sent to"),
                ("traffic: [{pattern: message, from: s0/0, bytes: 1MB}]\n", "to: missing; name the device"),
                ("traffic: [{pattern: trace}]\n", "file: missing; name the file of messages"),
                ("traffic: [{pattern: all_to_all, bytes: 1MB, ranks: [s0/0, s0/0]}]\n", "s0/0 is listed twice; keep one"),
                ("traffic: [{pattern: all_to_all, bytes: 1MB, name: a}, {pattern: all_to_all, bytes: 1MB, name: a}]\n",
                 "two items have the name 'a'; give each"),
                ("routing: {policy: adaptive}\ntraffic: [{pattern: all_to_all, bytes: 1MB}]\n", "need --level packet")):
            done = self.simulate(text)
            self.assertEqual((done.returncode, done.stdout), (2, ""), text)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_traces_a_pause_storm_of_a_scenario(self):
        page = self.folder / "page.html"
        storms = self.found("level: packet\npacket: {storm_after: 1ms}\n"
                            "traffic: [{pattern: incast, to: s0/0, bytes: 1MiB, ranks: servers}]\n"
                            "failures: [{at: 10us, pausing_nic: s0.nic0-leaf0}]\n", "--html", page)["packet"]["storms"]
        self.assertEqual([(one["root"], one["end_s"], one["links"][0]) for one in storms], [("s0", None, "s0.nic0-leaf0 down")])
        self.assertIn("Pause storms", page.read_text())

    def test_says_how_a_pause_storm_stands_at_the_end(self):
        text = ("level: packet\npacket: {storm_after: 1ms}\n"
                "traffic: [{pattern: incast, to: s0/0, bytes: 1MiB, ranks: servers}]\n")
        held = self.simulate(text + "failures: [{at: 10us, pausing_nic: s0.nic0-leaf0}]\n").stdout
        self.assertIn("but 7 flows never finish; simulated in", held)
        self.assertIn("not over at the end; it blocks 11 links", held)
        self.assertIn("7 flows never finish: pauses block them", held)
        freed = self.simulate(text + "failures: [{at: 10us, pausing_nic: s0.nic0-leaf0, until: 10ms}]\n").stdout
        self.assertIn("7 messages between 8 devices, finished after ", freed)
        self.assertIn("not blocked at the end, but for less than the 200 ms after which a storm is over; it blocked 11 links", freed)

    def test_says_why_it_does_not_tell_what_hashes_alike(self):
        text = "routing: {hash_seeds: shared}\ntraffic: [{pattern: all_to_all, bytes: 1MiB}]\n"
        self.assertNotIn("polarisation is not reported", self.simulate(text).stdout)
        self.assertIn("polarisation is not reported: failed links are empty as well",
                      self.simulate(text + "failures: [{at: 1us, link: leaf0-spine0}]\n").stdout)


class FabricWatch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "cluster.yaml").write_text(FOUR_LEAVES)
        self.counters = self.folder / "counters.csv"

    def refused(self, *arguments):
        done = lab_case.regatta("fabric", "watch", *arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        return done.stderr

    def test_traces_a_pause_storm_that_counters_show(self):
        lines = [HEADING]
        for tenth in range(4):
            for device, port in (("leaf0", "s0.nic0-leaf0"), ("spine1", "leaf0-spine1")):
                lines.append(f"{tenth / 10},{device},{port},3,1,9000,1000,{tenth * 90},{tenth * 100000},,,")
        for tenth in range(4, 8):
            lines.append(f"{tenth / 10},leaf0,s0.nic0-leaf0,3,1,0,{tenth * 1000},270,300000,,,")
        self.counters.write_text("\n".join(lines) + "\n")
        done = lab_case.regatta("fabric", "watch", self.folder / "cluster.yaml", "--counters", self.counters)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("began at s0; paused links: s0.nic0-leaf0 down, leaf0-spine1 down", done.stdout)
        self.assertIn("the storm is over", done.stdout)
        done = lab_case.regatta("fabric", "watch", self.folder / "cluster.yaml", "--counters", self.counters, "--json")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([event["event"] for event in events], ["storm", "storm", "over", "end"])
        self.assertEqual(events[1]["links"], ["s0.nic0-leaf0 down", "leaf0-spine1 down"])
        # A port that keeps sending is in no storm.
        calm = [line.replace(",1000,", f",{number}000,") for number, line in enumerate(lines)]
        self.counters.write_text("\n".join(calm) + "\n")
        done = lab_case.regatta("fabric", "watch", "--counters", self.counters)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_says_what_counters_came_to_once_it_is_interrupted(self):
        watch = subprocess.Popen([lab_case.BIN / "regatta", "fabric", "watch", "--counters", "-"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(watch.kill)
        for tenth in range(3):
            watch.stdin.write(f"{HEADING}\n" * (tenth == 0) + f"{tenth / 10},leaf0,eth0,3,1,9000,1000,{tenth},{tenth * 100000},,,\n")
        watch.stdin.flush()
        self.assertIn("pause storm", watch.stdout.readline())
        watch.send_signal(signal.SIGINT)
        out, err = watch.communicate(timeout=20)
        self.assertEqual((watch.returncode, err), (1, ""))
        self.assertEqual(out, "ports watched: 1; priorities and directions: 1; pause storms: 1\n")

    def test_names_what_is_wrong_with_counters(self):
        self.assertEqual(self.refused("--counters", self.folder), f"regatta: {self.folder}: is a directory; name a file of counters\n")
        self.counters.write_text(HEADING + "\n# nothing yet\n")
        self.assertIn("counters.csv: no counters are in it", self.refused("--counters", self.counters))
        self.counters.write_text(HEADING + "\n1,leaf0,eth0,3,1,,1,1,1,,,\n0.5,leaf0,eth0,3,1,,1,1,1,,,\n")
        self.assertIn("counters.csv:3: the time of leaf0 eth0 goes back from 1 s to 0.5 s", self.refused("--counters", self.counters))

    def test_sends_who_has_no_such_nic_elsewhere(self):
        done = lab_case.regatta("fabric", "watch", "--duration", "1ms")
        if done.returncode != 2:
            self.skipTest("a NIC of this machine counts pauses")
        self.assertRegex(done.stderr, r"^regatta: no device of this machine \(.*\) counts pauses; watch where NICs of mlx5, bnxt, ice "
                                      "or i40e are, or give the counters of switches with --counters\n$")

    def test_refuses_what_means_nothing_beside_counters_or_without(self):
        self.counters.write_text(HEADING + "\n1,leaf0,eth0,3,1,,1,1,1,,,\n")
        for flag in ("--period", "--duration"):
            self.assertIn(f"fabric watch: {flag} excludes --counters", self.refused("--counters", self.counters, flag, "1s"))
        self.assertIn("CLUSTER requires --counters", self.refused(self.folder / "cluster.yaml", "--duration", "1s"))
        self.assertEqual(self.refused("--period", "1s"),
                         "regatta: --storm-after: must be from --period to 100s, like 2s\n")


if __name__ == "__main__":
    unittest.main()
