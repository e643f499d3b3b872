"""`regatta fabric`: what it proves of a cluster's network, and shows where it cannot."""
import json
import pathlib
import tempfile
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

    def test_check_proves_that_there_is_no_circle(self):
        done = lab_case.regatta("fabric", "check", self.cluster, "--failures", 1)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("no deadlock: 16 links, 24 waits between them, no circle\n", done.stdout)
        self.assertIn("proof: 2 layers of 8, 8 links", done.stdout)
        self.assertIn("1 failure at once: all 14 looked at; 0 led traffic new ways", done.stdout)

    def test_check_shows_the_circle_that_failures_make(self):
        done = lab_case.regatta("fabric", "check", self.cluster, "--failures", 2, "--json")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        found = json.loads(done.stdout)["failures"][1]
        self.assertEqual(found["failed"], ["leaf0-spine0", "leaf1-spine1"])
        circle = found["circle"]
        for wait, after in zip(circle, circle[1:] + circle[:1]):
            self.assertEqual(wait["to"], after["from"])

    def test_check_shows_the_circle_of_routes_that_somebody_wrote(self):
        routes = self.file("routes.txt", BOUNCES)
        done = lab_case.regatta("fabric", "check", self.cluster, "--routes", routes)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("deadlock possible: a circle of 4 links\n", done.stdout)
        self.assertIn("leaf0-spine0  spine0  leaf0   leaf2\n", done.stdout)
        routes.write_text(BOUNCES.replace("leaf1-spine0", "leaf2-spine0"))
        done = lab_case.regatta("fabric", "check", self.cluster, "--routes", routes)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f"regatta: {routes}:4: leaf1 has no link 'leaf2-spine0' to another switch; "
                                      "did you mean 'leaf1-spine0'?\n")

    def test_design_writes_a_cluster_that_other_commands_read(self):
        out, svg, ports = (self.folder / name for name in ("d.yaml", "d.svg", "d.csv"))
        done = lab_case.regatta("fabric", "design", "--gpus", 15360, "--preset", "dual-plane", "--out", out, "--svg", svg,
                                "--ports", ports)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
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

    def test_design_says_in_json_what_it_is(self):
        done = lab_case.regatta("fabric", "design", "--gpus", 65536, "--json")
        design = json.loads(done.stdout)
        self.assertEqual((design["tiers"], design["leaves"], design["spines"], design["super_spines"]), (3, 1024, 1024, 512))
        self.assertEqual([hop["links"] for hop in design["distances"]], [2, 4, 6])

    def test_ports_lead_connections_apart(self):
        done = lab_case.regatta("fabric", "ports", self.cluster, "--permutation", "--seed", 2, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        plan = json.loads(done.stdout)
        self.assertEqual(plan["most_on_a_link"], 1)
        self.assertGreater(plan["most_on_a_link_by_chance"], 1)
        self.assertEqual(len(plan["connections"]), 8)

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


if __name__ == "__main__":
    unittest.main()
