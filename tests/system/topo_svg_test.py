"""The picture that `regatta topo --svg` draws: one SVG file that any XML parser reads."""
import json
import pathlib
import tempfile
import unittest
from xml.etree import ElementTree

import lab_case

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
SVG = "{http://www.w3.org/2000/svg}"


class TopoPicture(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, "fabric.svg")

    def titles(self, style):
        root = ElementTree.parse(self.file).getroot()
        self.assertEqual(root.tag, SVG + "svg")
        return [group.find(SVG + "title").text for group in root.iter(SVG + "g") if group.get("class") == style]

    def test_holds_every_part_of_the_examples(self):
        for cluster, servers, leaves, spines in (("cluster.yaml", 4, 2, 2), ("cluster-one-leaf.yaml", 3, 1, 0)):
            done = lab_case.regatta("topo", EXAMPLES / cluster, "--svg", self.file)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.endswith(f"\nwritten: {self.file}\n"), done.stdout)
            self.assertEqual(self.titles("server"), [f"s{i}: cpu-2" for i in range(servers)])
            self.assertEqual(self.titles("leaf"), [f"leaf{i}" for i in range(leaves)])
            self.assertEqual(self.titles("spine"), [f"spine{i}" for i in range(spines)])

    def test_leaves_json_to_programs(self):
        done = lab_case.regatta("topo", EXAMPLES / "cluster.yaml", "--json", "--svg", self.file)
        self.assertEqual(json.loads(done.stdout)["fabric"]["spines"], 2)
        self.assertEqual(len(self.titles("server")), 4)

    def test_says_when_it_cannot_be_written(self):
        nowhere = self.file / "x.svg"
        for place, named, complaint in ((nowhere, self.file, "no such file or directory"),
                                        (self.file.parent, self.file.parent, "is a directory")):
            done = lab_case.regatta("topo", EXAMPLES / "cluster.yaml", "--svg", place)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr, f"regatta: {named}: {complaint}; choose another place with --svg\n")

    def test_needs_a_cluster(self):
        done = lab_case.regatta("topo", "--svg", self.file)
        self.assertEqual((done.returncode, done.stderr), (2, "regatta: topo: --svg requires CLUSTER\n"))


if __name__ == "__main__":
    unittest.main()
