"""`regatta lab` from up to down: what it prints, what it answers to wrong names and amounts."""
import json
import os
import re

import lab_case


class LabCommand(lab_case.LabCase):
    def setUp(self):
        super().setUp()
        up = lab_case.regatta("lab", "up", self.cluster)
        self.addCleanup(lab_case.regatta, "lab", "down", self.name)
        self.assertEqual(up.returncode, 0, up.stderr)
        self.assertRegex(up.stdout, rf"^lab {self.name}: up in [\d.]+ m?s, 3 servers")

    def lab(self, *arguments):
        return lab_case.regatta("lab", *arguments, "--lab", self.name)

    def refused(self, arguments, sentence):
        done = self.lab(*arguments)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (2, f"regatta: {sentence}\n", ""))

    def test_shows_faults_and_undoes_them(self):
        link = "s0.nic0-leaf0"
        for fault, state in (("slow 20Mbps", r"20 Mbps .* up \(fault\)"), ("drop 5%", r"up, drops 5\.0 % \(fault\)"),
                             ("down", r"down, drops 5\.0 % \(fault\)")):
            kind, *amount = fault.split()
            done = self.lab("fault", kind, link, *amount)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout, f"lab {self.name}: {link}: {', '.join(fault.split())}\n")
            self.assertRegex(lab_case.regatta("lab", "status", self.name).stdout, re.escape(link) + " .*" + state)
        self.assertEqual(self.lab("fault", "clear").stdout, f"lab {self.name}: all faults: clear\n")
        status = json.loads(lab_case.regatta("lab", "status", self.name, "--json").stdout)
        self.assertEqual([one["has_fault"] for one in status["labs"][0]["links"]], [False, False, False])

    def test_lists_the_labs_that_are_up(self):
        rows = [line.split() for line in lab_case.regatta("lab", "ls").stdout.splitlines()]
        self.assertEqual(rows[0], ["lab", "servers", "switches", "state", "age"])
        self.assertIn([self.name, "3", "1", "up"], [row[:4] for row in rows])
        labs = json.loads(lab_case.regatta("lab", "ls", "--json").stdout)["labs"]
        [here] = [one for one in labs if one["name"] == self.name]
        self.assertEqual((here["servers"], here["switches"], here["faulty_links"]), (3, 1, 0))
        self.assertTrue(0 < here["age_s"] < 600, here)

    def test_shows_the_status_of_the_lab_that_the_flag_names(self):
        self.assertEqual(self.lab("status").stdout.split(" (")[0], f"lab {self.name}")
        both = lab_case.regatta("lab", "status", self.name, "--lab", self.name)
        self.assertEqual(both.returncode, 2, both.stdout)

    def test_names_what_exists_when_a_name_is_wrong(self):
        links = ", ".join(f"s{i}.nic0-leaf0" for i in range(3))
        self.refused(["fault", "down", "s9.nic0-leaf0"],
                     f"link s9.nic0-leaf0: not in lab {self.name}, which has {links}")
        self.refused(["fault", "stop", "leaf0"], f"server leaf0: not in lab {self.name}, which has s0, s1, s2")
        self.refused(["exec", "s9", "--", "true"], f"node s9: not in lab {self.name}, which has s0, s1, s2, leaf0")

    def test_names_the_amount_that_is_wrong(self):
        self.refused(["fault", "slow", "s0.nic0-leaf0", "20"],
                     "RATE: '20' has no unit; write it like 400Gbps or 50GB/s")
        self.refused(["fault", "drop", "s0.nic0-leaf0", "much"],
                     "SHARE: 'much' is not a ratio; write it like 20% or 0.2")

    def test_passes_on_how_a_command_ended(self):
        self.assertEqual(lab_case.regatta("lab", "exec", "--lab", self.name, "s0", "--", "sh", "-c", "exit 7").returncode, 7)

    def test_leaves_no_folder_of_a_run_that_did_not_begin(self):
        other = self.folder / "other.yaml"
        other.write_text(self.cluster.read_text().replace("200Mbps", "100Mbps"))
        there = self.folder / "there"
        there.mkdir()
        before = sorted(os.listdir(self.folder))
        for out in ("new", "new/within", "there", "there/within"):
            done = lab_case.regatta("run", self.job, "--cluster", other, "--out", self.folder / out)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("was built from another description", done.stderr)
            self.assertEqual(sorted(os.listdir(self.folder)), before, out)
            self.assertEqual(os.listdir(there), [], out)

    def test_goes_down_once(self):
        done = lab_case.regatta("lab", "down", self.cluster)
        self.assertEqual((done.returncode, done.stdout), (0, f"lab {self.name}: down\n"))
        done = lab_case.regatta("lab", "down", self.cluster)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, rf"^regatta: lab {self.name}: not up; [^\n]+\n$")


if __name__ == "__main__":
    lab_case.unittest.main(verbosity=2)
