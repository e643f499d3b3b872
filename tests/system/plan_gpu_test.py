"""`regatta plan` for clusters of GPUs, as a user calls it."""
import json
import pathlib
import tempfile
import unittest

import lab_case

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
JOB, CLUSTER = EXAMPLES / "gpt3-175b.yaml", EXAMPLES / "a100-1024.yaml"
FIXED = "{tp: 8, pp: 8, virtual_stages: 6, micro_batch: 1, sequence_parallel: true, zero: 1}"


def cluster_text(server, servers, extra=""):
    return (f"name: c\nserver_types:\n  s: {{{server}}}\nfabric:\n  tiers: [leaf]\n"
            f"servers: {{count: {servers}, type: s}}\n{extra}")


class PlanGpuTest(unittest.TestCase):
    def plan(self, *arguments):
        done = lab_case.regatta("plan", *arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, *arguments):
        done = lab_case.regatta("plan", *arguments)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_prices_a_strategy_as_it_stands(self):
        point = self.plan(JOB, "--cluster", CLUSTER, "--strategy", FIXED, "--exact")
        self.assertAlmostEqual(sum(point["breakdown"].values()) / point["step_time_s"], 1, 9)
        memory = dict(point["memory"])
        self.assertEqual(memory.pop("total_bytes"), point["memory_per_device_bytes"])
        self.assertAlmostEqual(sum(memory.values()) / point["memory_per_device_bytes"], 1, 9)
        stages = [stage["total_bytes"] for stage in point["memory_by_stage"]]
        self.assertEqual(len(stages), 8)
        self.assertEqual(max(stages), stages[point["worst_stage"]])
        self.assertEqual(max(stages), point["memory_per_device_bytes"])
        self.assertEqual(point["strategy"]["dp"], 16)
        self.assertTrue(point["fits"])
        self.assertLess(point["interval"]["low_s"], point["step_time_s"])
        self.assertAlmostEqual(point["tokens_per_s"] * point["step_time_s"], 1536 * 2048, 3)
        self.assertAlmostEqual(point["mfu"], point["tflops_per_device"] / 312, 9)
        full = self.plan(JOB, "--cluster", CLUSTER, "--strategy", FIXED[:-1] + ", recompute: full}", "--exact")
        self.assertAlmostEqual(full["hardware_tflops_per_device"] / full["tflops_per_device"], 4 / 3, 1)

    def test_searches_what_a_strategy_leaves_open(self):
        with tempfile.TemporaryDirectory() as folder:
            cluster, job = pathlib.Path(folder, "cluster.yaml"), pathlib.Path(folder, "job.yaml")
            cluster.write_text(cluster_text("preset: dgx-h100", 2048))
            job.write_text("name: j\nmodel: {preset: llama3-405b}\nglobal_batch: 2048\nprecision: bf16\n")
            given = {"tp": 8, "pp": 16, "dp": 128, "micro_batch": 1}
            asked = (job, "--cluster", cluster, "--strategy", json.dumps(given))
            best = self.plan(*asked)
            self.assertTrue(all(plan["fits"] for plan in [best, *best["ranked"]]))
            self.assertEqual({key: best["strategy"][key] for key in given}, given)
            exact = lab_case.regatta("plan", *asked, "--exact")
            self.assertEqual(exact.returncode, 0, exact.stderr)
            self.assertIn("it does not fit", exact.stderr)
            self.assertNotIn("\nplan: ", exact.stdout)
            self.assertFalse(self.plan(*asked, "--exact")["fits"])
            tight = json.dumps({**given, "pp": 1, "dp": 2048, "zero": 0, "recompute": "none"})
            sentence = self.refused(job, "--cluster", cluster, "--strategy", tight)
            self.assertIn("the nearest, tp8 pp1 dp2048 mb1", sentence)
            self.assertRegex(sentence, "; leave .* open: tp.* fits and takes ")

    def test_shows_a_strategy_of_the_users_beside_the_best(self):
        own = ("--compare", "{tp: 8, pp: 4, cp: 1, micro_batch: 2}", "--compare", "{tp: 8, pp: 1, cp: 1, zero: 0}")
        plans = self.plan(JOB, "--cluster", CLUSTER, *own)
        self.assertEqual([row["strategy"]["pp"] for row in plans["compared"]], [4, 1])
        self.assertEqual([row["fits"] for row in plans["compared"]], [True, False])
        self.assertGreaterEqual(plans["compared"][0]["step_time_s"], plans["step_time_s"])
        best = plans["ranked"][2]["strategy"]
        again = self.plan(JOB, "--cluster", CLUSTER, "--compare", json.dumps(best))
        self.assertEqual(again["compared"][0]["rank"], 3)
        self.assertTrue(again["ranked"][2]["yours"])
        text = lab_case.regatta("plan", JOB, "--cluster", CLUSTER, *own).stdout
        self.assertRegex(text, r"\nyours +tp8 pp4 .*\nyours +tp8 pp1 .*does not fit\n")
        self.assertRegex(text, r"\nyours, tp8 pp4 .*: \+[0-9.]+ % to the step of the plan")

    def test_finds_the_same_best_plans_with_and_without_bounds(self):
        pruned = self.plan(JOB, "--cluster", CLUSTER, "--top", "20")
        every = self.plan(JOB, "--cluster", CLUSTER, "--top", "20", "--exhaustive")
        self.assertEqual(pruned["ranked"], every["ranked"])
        self.assertLess(pruned["evaluated"], every["evaluated"])
        self.assertTrue(all(plan["fits"] for plan in pruned["ranked"]))

    def test_trades_time_for_memory(self):
        plans = self.plan(JOB, "--cluster", CLUSTER, "--frontier", "--strategy", "{tp: 8, cp: 1}")["frontier"]
        self.assertGreater(len(plans), 2)
        for faster, smaller in zip(plans, plans[1:]):
            self.assertLessEqual(faster["step_time_s"], smaller["step_time_s"])
            self.assertGreater(faster["memory_per_device_bytes"], smaller["memory_per_device_bytes"])

    def test_trades_time_for_money_and_devices(self):
        asked = (JOB, "--cluster", CLUSTER, "--sizes", "--steps", "95367", "--price", "2")
        answer = self.plan(*asked)
        sizes = answer["sizes"]
        self.assertEqual(answer["tokens"], 95367 * 1536 * 2048)
        self.assertEqual(sizes[answer["picked"]]["devices"], 1024)
        self.assertEqual(sizes[-1]["step_time_s"], self.plan(JOB, "--cluster", CLUSTER)["step_time_s"])
        for smaller, larger in zip(sizes, sizes[1:]):
            self.assertLess(smaller["devices"], larger["devices"])
        for size in sizes:
            self.assertAlmostEqual(size["cost"], 2 * size["device_hours"], 6)
            self.assertAlmostEqual(size["time_s"] * size["devices"] / 3600 / size["device_hours"], 1, 9)
        self.assertIn(1, [one["servers"] for one in answer["left_out"]])
        cheapest = self.plan(*asked, "--objective", "cost")
        self.assertEqual(min(size["cost"] for size in sizes), sizes[cheapest["picked"]]["cost"])
        in_time = self.plan(*asked, "--within", "60d")
        self.assertEqual(in_time["objective"], "cost")
        self.assertLess(sizes[in_time["picked"]]["time_s"], 60 * 86400)
        self.assertLess(sizes[in_time["picked"]]["cost"], sizes[-1]["cost"])
        self.assertIn("no size ends in it", self.refused(*asked, "--within", "1h"))
        self.assertIn("add steps", self.refused(JOB, "--cluster", CLUSTER, "--sizes", "--within", "60d"))
        fixed = (*asked, "--within", "60d", "--strategy", FIXED)
        answer = self.plan(*fixed)
        servers = answer["sizes"][answer["picked"]]["servers"]
        self.assertLess(servers, 128)
        self.assertIn(f"--nnodes {servers}\n", lab_case.regatta("plan", *fixed, "--launch", "megatron").stdout)

    def test_uses_the_best_number_of_the_servers_that_are_left(self):
        with tempfile.TemporaryDirectory() as folder:
            cluster, job = pathlib.Path(folder, "cluster.yaml"), pathlib.Path(folder, "job.yaml")
            cluster.write_text(cluster_text("preset: dgx-h100", 32))
            job.write_text("name: j\nmodel: {preset: llama3-8b}\nglobal_batch: 512\nprecision: bf16\nstrategy: {tp: 2, pp: 1}\n")
            done = lab_case.regatta("plan", job, "--cluster", cluster, "--without", "s0", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            best = json.loads(done.stdout)
            self.assertLess(best["devices"], 31 * 8)
            self.assertRegex(done.stderr, r"^regatta: warning: \d+ of the 31 servers that are left are used")
            servers = best["devices"] // 8
            again = self.plan(job, "--cluster", cluster, "--servers", str(servers))
            self.assertEqual(again["step_time_s"], best["step_time_s"])
            cluster.write_text(cluster_text("preset: dgx-h100", 31))
            self.assertIn(f"; --servers {servers} has a plan: tp2 ", self.refused(job, "--cluster", cluster))
            sizes = self.plan(job, "--cluster", cluster, "--sizes")["sizes"]
            self.assertIn(servers, [size["servers"] for size in sizes])

    def test_meets_every_constraint(self):
        given = ("--constraint", "pp <= 4", "--constraint", "zero in {0, 1}", "--strategy", "{tp: \">= 4\", cp: [1]}")
        plans = self.plan(JOB, "--cluster", CLUSTER, *given)
        for row in plans["ranked"]:
            strategy = row["strategy"]
            self.assertLessEqual(strategy["pp"], 4)
            self.assertIn(strategy["zero"], (0, 1))
            self.assertGreaterEqual(strategy["tp"], 4)
            self.assertEqual(strategy["cp"], 1)
        every = self.plan(JOB, "--cluster", CLUSTER, *given, "--exhaustive")
        self.assertEqual(every["ranked"], plans["ranked"])
        for wrong, words in (("pp 4", "write a relation after pp"), ("stages <= 4", "'stages' is no key of a strategy"),
                             ("pp <= four", "'four' is no value of pp"), ("recompute < full", "none, selective, pointwise, experts, full")):
            self.assertIn(words, self.refused(JOB, "--cluster", CLUSTER, "--constraint", wrong))
        self.assertIn("pp is given, and the constraint pp <= 4 excludes it",
                      self.refused(JOB, "--cluster", CLUSTER, "--strategy", "{pp: 8}", "--constraint", "pp <= 4"))
        self.assertIn("meets pp <= 2 and pp >= 4; leave a constraint out", self.refused(JOB, "--cluster", CLUSTER, "--constraint", "pp <= 2", "--constraint", "pp >= 4"))

    def test_prints_the_stack_with_what_it_assumes_and_lists_all(self):
        text = lab_case.regatta("plan", JOB, "--cluster", CLUSTER).stdout
        self.assertRegex(text, "\nstack megatron-core assumes .*fused attention.*; its scalars: ")
        names = self.refused(JOB, "--cluster", CLUSTER, "--stack", "none").split("choose one of ")[1].strip().split(", ")
        self.assertGreater(len(names), 8)
        page = (EXAMPLES.parent / "README.md").read_text()
        for name in names:
            self.assertIn(f"| `{name}` |", page)

    def test_says_that_no_run_of_a_kind_was_compared(self):
        with tempfile.TemporaryDirectory() as folder:
            cluster, job = pathlib.Path(folder, "cluster.yaml"), pathlib.Path(folder, "job.yaml")
            job.write_text("name: j\nmodel: {preset: llama3-8b}\nglobal_batch: 64\nprecision: bf16\n")
            widths = []
            for preset, known in (("dgx-h100", True), ("h20-8", False)):
                cluster.write_text(cluster_text(f"preset: {preset}", 2))
                plan = self.plan(job, "--cluster", cluster)
                self.assertEqual(plan["interval"]["compared"], known)
                widths.append((plan["interval"]["high_s"] - plan["interval"]["low_s"]) / plan["step_time_s"])
                text = lab_case.regatta("plan", job, "--cluster", cluster).stdout
                self.assertEqual("no published run of this kind was compared: a dense model in bf16 on h20" in text, not known)
            self.assertAlmostEqual(widths[1] / widths[0], 2, 6)

    def test_plans_experts_latent_attention_and_long_sequences(self):
        with tempfile.TemporaryDirectory() as folder:
            cluster = pathlib.Path(folder, "cluster.yaml")
            cluster.write_text(cluster_text("preset: dgx-h100", 64))
            for model, precision in (("preset: deepseek-v2", "bf16"), ("preset: mixtral-8x22b", "fp8"),
                                     ("preset: llama3-70b, seq: 131072", "bf16")):
                job = pathlib.Path(folder, "job.yaml")
                job.write_text(f"name: j\nmodel: {{{model}}}\nglobal_batch: 64\nprecision: {precision}\n")
                best = self.plan(job, "--cluster", cluster)
                self.assertTrue(best["fits"], model)
                self.assertLess(best["mfu"], 0.9)

    def test_plans_for_racks_whose_links_join_servers(self):
        with tempfile.TemporaryDirectory() as folder:
            cluster, job = pathlib.Path(folder, "cluster.yaml"), pathlib.Path(folder, "job.yaml")
            cluster.write_text(cluster_text("preset: gb200-nvl72", 72))
            job.write_text("name: j\nmodel: {preset: llama3-70b}\nglobal_batch: 256\nprecision: nvfp4\n")
            self.assertTrue(self.plan(job, "--cluster", cluster)["fits"])
            part = self.plan(job, "--cluster", cluster, "--servers", "64")
            self.assertEqual(part["devices"], 256)
            cluster.write_text(cluster_text("preset: gb200-nvl72, scale_up: {servers: 18}", 8))
            self.assertIn("a domain of 18 servers is larger than the 8 of type s; set servers: 8",
                          self.refused(job, "--cluster", cluster))
            cluster.write_text(cluster_text("preset: dgx-h100", 8))
            self.assertIn("precision: h100-sxm has no nvfp4; take one of", self.refused(job, "--cluster", cluster))

    def test_answers_clearly_where_nothing_can_be_planned(self):
        with tempfile.TemporaryDirectory() as folder:
            cluster = pathlib.Path(folder, "cluster.yaml")
            cluster.write_text(cluster_text("preset: dgx-a100-80g", 1))
            self.assertIn("no strategy fits 80 GiB of a100-sxm4-80g", self.refused(JOB, "--cluster", cluster))
            cluster.write_text(cluster_text("preset: dgx-a100-80g, nics: {count: 8, rate: 0Gbps}", 16))
            self.assertIn("nics.rate", self.refused(JOB, "--cluster", cluster))
            cluster.write_text(cluster_text("preset: dgx-v100", 64))
            self.assertIn("v100 has no bf16", self.refused(JOB, "--cluster", cluster))

    def test_plans_for_sixty_five_thousand_devices(self):
        with tempfile.TemporaryDirectory() as folder:
            cluster, job = pathlib.Path(folder, "cluster.yaml"), pathlib.Path(folder, "job.yaml")
            cluster.write_text(cluster_text("preset: dgx-h100", 8192))
            job.write_text("name: j\nmodel: {preset: llama3-405b}\nglobal_batch: 16384\nprecision: bf16\n")
            best = self.plan(job, "--cluster", cluster)
            self.assertEqual(best["devices"], 65536)
            self.assertTrue(best["fits"])

    def test_plans_for_a_hundred_thousand_devices_that_nothing_can_start(self):
        with tempfile.TemporaryDirectory() as folder:
            cluster, job = pathlib.Path(folder, "cluster.yaml"), pathlib.Path(folder, "job.yaml")
            text = ("name: hall\nserver_types:\n  dgx: {preset: dgx-h100}\nfabric:\n  tiers: [leaf, spine, super-spine]\n"
                    "  rails: 8\n  servers_per_leaf: 32\n  leaves_per_group: 128\n  spines: 32\n  uplink: 400Gbps\n"
                    "  super_spines: 512\nservers: {count: %d, type: dgx}\n")
            cluster.write_text(text % 12500)
            job.write_text("name: j\nmodel: {preset: gpt3-175b}\nglobal_batch: 12500\nprecision: bf16\n")
            best = self.plan(job, "--cluster", cluster)
            self.assertEqual(best["devices"], 100000)
            self.assertTrue(best["fits"])
            self.assertEqual(len(best["placement"]["devices"]), 100000)
            topo = lab_case.regatta("topo", cluster, "--json")
            self.assertEqual(json.loads(topo.stdout)["fabric"]["devices"], 100000)
            done = lab_case.regatta("lab", "up", cluster)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertEqual(done.stderr, "regatta: cluster hall: 12500 servers are more than the 8192 that can be "
                                          "started; plan for it, or name fewer servers\n")
            done = lab_case.regatta("measure", cluster)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("cluster hall has GPUs (h100-sxm)", done.stderr)
            done = lab_case.regatta("run", EXAMPLES / "job.yaml", "--cluster", cluster)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("cluster hall has GPUs (h100-sxm)", done.stderr)
            cluster.write_text(text % 40000)
            self.assertIn("whole number from 1 to 32768", self.refused(job, "--cluster", cluster))

    def test_says_why_a_plan_is_faster(self):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for name, recompute in (("a", "none"), ("b", "full")):
                plan = self.plan(JOB, "--cluster", CLUSTER, "--strategy", FIXED[:-1] + f", recompute: {recompute}}}")
                files.append(pathlib.Path(folder, name + ".json"))
                files[-1].write_text(json.dumps(plan))
            done = lab_case.regatta("plan", "diff", *files)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"A takes [0-9.]+ % less time than B: it saves recompute")
            self.assertRegex(done.stdout, r"\nA: tp8 pp8 .*\nB: tp8 pp8 .*recompute=full.*\nthey differ in recompute none and full")
        both = lab_case.regatta("plan", "diff", "{tp: 8, pp: 8, dp: 16, micro_batch: 1}", "{tp: 4}", "--job", JOB, "--cluster", CLUSTER)
        self.assertEqual(both.returncode, 0, both.stderr)
        self.assertRegex(both.stdout, r"\nA: tp8 pp8 dp16 mb1 .*\nB: tp4 .*\nthey differ in ")
        self.assertNotIn("note:", both.stdout)

    def test_writes_a_page_a_trace_and_a_launch_script(self):
        with tempfile.TemporaryDirectory() as folder:
            page, trace = pathlib.Path(folder, "plan.html"), pathlib.Path(folder, "trace.json")
            self.plan(JOB, "--cluster", CLUSTER, "--strategy", FIXED, "--html", page, "--trace", trace)
            self.assertIn("gpt3-175b", page.read_text())
            self.assertGreater(len(json.loads(trace.read_text())["traceEvents"]), 1000)
            self.assertIn("--html", self.refused(JOB, "--cluster", CLUSTER, "--html", folder))
        done = lab_case.regatta("plan", JOB, "--cluster", CLUSTER, "--strategy", FIXED, "--launch", "megatron")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--tensor-model-parallel-size 8", done.stdout)
        self.assertIn("--nnodes 128\n", done.stdout)
        half = lab_case.regatta("plan", JOB, "--cluster", CLUSTER, "--servers", "64", "--launch", "megatron")
        self.assertIn("--nnodes 64\n", half.stdout)
        self.assertIn("--launch: ", self.refused(JOB, "--cluster", CLUSTER, "--launch", "jax"))
        self.assertIn("deepspeed", self.refused(JOB, "--cluster", CLUSTER, "--strategy", FIXED, "--launch", "deepspeed").lower())

    def test_gives_slower_servers_fewer_layers(self):
        with tempfile.TemporaryDirectory() as folder:
            cluster, job = pathlib.Path(folder, "cluster.yaml"), pathlib.Path(folder, "job.yaml")
            cluster.write_text("name: mixed\nserver_types:\n  a: {preset: dgx-a100-80g}\n  h: {preset: dgx-h100}\n"
                               "fabric:\n  tiers: [leaf]\nservers:\n"
                               "  - {name: s0, type: a}\n  - {name: s1, type: h}\n")
            job.write_text("name: j\nmodel: {preset: llama2-13b}\nglobal_batch: 64\nprecision: bf16\n")
            best = self.plan(job, "--cluster", cluster, "--strategy", "{pp: 2, tp: 8}")
            layers = dict(zip(best["servers"].split(), best["layers_of_stages"]))
            self.assertEqual(sum(layers.values()), 40)
            self.assertLess(layers["s0"], layers["s1"])

    def test_compares_clusters(self):
        rows = self.plan("what-if", JOB, "--cluster", CLUSTER, "--with", "nic_rate=400Gbps", "--with", "servers=256",
                         "--price", "2")["clusters"]
        self.assertEqual([row["devices"] for row in rows], [1024, 1024, 2048])
        self.assertLessEqual(rows[1]["step_time_s"], rows[0]["step_time_s"])
        self.assertGreater(rows[2]["tokens_per_s"], rows[0]["tokens_per_s"])
        for row in rows:
            self.assertAlmostEqual(row["cost_per_1e9_tokens"], 2 * row["device_hours_per_1e9_tokens"], 6)


if __name__ == "__main__":
    unittest.main()
