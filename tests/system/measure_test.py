"""`regatta measure` in the lab: the rates that it saves are those of the cables and devices it ran on, and planning uses them."""
import json
import unittest

import lab_case

# The limit of the NIC in the description. Its token bucket may add a burst; acknowledgements of the other
# direction and a busy machine take some off (183 to 194 of 200 Mbit/s on an idle one; 127 once where it stood still).
NIC_BYTES_PER_S = 200e6 / 8
SHARE_MIN, SHARE_MAX = 0.5, 1.05


class Measure(lab_case.LabCase):
    steps = 8

    def test_saves_the_rates_that_the_planner_then_uses(self):
        done = lab_case.regatta("measure", self.cluster, "--quick", "--json", timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        rates = json.loads(done.stdout)
        self.assertEqual(rates, json.loads((self.folder / "cluster.measured.json").read_text()))
        self.assertRegex(rates["source"], r"on 3 devices, quickly, passes within \d+ %")

        (path,) = rates["paths"]
        self.assertEqual(path["path"], "same_leaf")
        share = path["bandwidth_Bps"] / NIC_BYTES_PER_S
        self.assertTrue(SHARE_MIN < share < SHARE_MAX, path)
        self.assertTrue(1e-6 < path["latency_s"] < 5e-3, path)

        (device,) = rates["devices"].values()
        for product in device["matmul"]:
            self.assertGreater(product["rate_flops"], 0, product)
        largest = max(device["matmul"], key=lambda product: product["m"] * product["n"] * product["k"])
        smallest = min(device["matmul"], key=lambda product: product["m"] * product["n"] * product["k"])
        self.assertGreater(largest["rate_flops"], smallest["rate_flops"] / 2)

        plan = lab_case.regatta("plan", self.job, "--cluster", self.cluster, "--json")
        self.assertEqual(plan.returncode, 0, plan.stderr)
        self.assertIn(rates["source"], plan.stdout)
        self.assertEqual(self.leftovers_after_end(), [])

    def test_saves_nothing_when_it_is_refused(self):
        self.cluster.write_text(self.cluster.read_text().replace("200Mbps", "200 furlongs"))
        done = lab_case.regatta("measure", self.cluster)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("furlongs", done.stderr)
        self.assertFalse((self.folder / "cluster.measured.json").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
