"""The command line of `regatta plan`: every option does what it says, or is refused in one sentence."""
import json
import os
import pathlib
import pty
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

import lab_case

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
CPU_PLAN = ["plan", EXAMPLES / "job.yaml", "--cluster", EXAMPLES / "cluster.yaml"]
JOB, CLUSTER = EXAMPLES / "gpt3-175b.yaml", EXAMPLES / "a100-1024.yaml"
PLAN = ["plan", JOB, "--cluster", CLUSTER]


class PlanCommand(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def done(self, *arguments, **options):
        done = lab_case.regatta(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def check(self, arguments, sentence):
        with self.subTest(arguments=arguments):
            done = lab_case.regatta(*arguments)
            self.assertEqual((done.returncode, done.stderr, done.stdout), (2, f"regatta: {sentence}\n", ""))

    def test_refuses_what_a_cluster_of_cpus_cannot_have(self):
        page = self.folder / "x.html"
        self.check(CPU_PLAN + ["--launch", "megatron", "--html", page],
                   f"--launch: {EXAMPLES / 'cluster.yaml'} has no GPUs, which megatron needs; leave it out, or start the job with "
                   "regatta run")
        self.check(CPU_PLAN + ["--stack", "nemo", "--html", page],
                   f"--stack: {EXAMPLES / 'cluster.yaml'} has no GPUs, and Regatta's own trainer runs there; leave it out, or write "
                   "regatta")
        self.assertEqual(list(self.folder.iterdir()), [])

    def check_every_option(self, plan):
        """All options that look at a plan from another side have an answer, with the same keys."""
        best = json.loads(self.done(*plan, "--json").stdout)
        keys = {"stack", "stack_assumes", "step_time_s", "interval", "tflops_per_device", "hardware_tflops_per_device", "mfu",
                "tokens_per_s", "memory_per_device_bytes", "memory", "memory_by_stage", "worst_stage", "fits", "fit", "breakdown",
                "binding", "sensitivities", "layers_of_stages", "strategy", "device", "devices"}
        self.assertLessEqual(keys, best.keys())
        self.assertTrue(best["fits"])
        self.assertAlmostEqual(sum(best["breakdown"].values()) / best["step_time_s"], 1, 6)
        self.assertEqual(len(best["layers_of_stages"]), best["strategy"]["pp"])
        self.assertEqual(len(best["memory_by_stage"]), best["strategy"]["pp"])
        given = json.dumps({key: best["strategy"][key] for key in ("tp", "pp", "dp", "micro_batch", "recompute")})
        exact = json.loads(self.done(*plan, "--exact", "--strategy", given, "--json").stdout)
        self.assertGreaterEqual(exact["step_time_s"], 0.999 * best["step_time_s"])
        self.assertEqual(exact["strategy"]["tp"], best["strategy"]["tp"])
        own = json.loads(self.done(*plan, "--compare", "{tp: 2}", "--json").stdout)["compared"]
        self.assertEqual(own[0]["strategy"]["tp"], 2)
        more = json.loads(self.done(*plan, "--frontier", "--json").stdout)
        self.assertEqual(more["frontier"][0]["step_time_s"], best["step_time_s"])
        sizes = json.loads(self.done(*plan, "--sizes", "--json").stdout)
        self.assertGreater(len(sizes["sizes"]), 1)
        one = json.loads(self.done(*plan, "--servers", "1", "--json").stdout)
        self.assertLess(one["devices"], best["devices"])
        for option in (["--exhaustive"], ["--extended-search"], ["--constraint", "tp <= 2"], ["--top", "1"]):
            self.done(*plan, *option)
        page, trace = self.folder / "plan.html", self.folder / "trace.json"
        self.done(*plan, "--html", page, "--trace", trace)
        self.assertIn("One step, stage by stage", page.read_text())
        events = json.loads(trace.read_text())["traceEvents"]
        self.assertIn("stage 0", {event.get("args", {}).get("name") for event in events})
        first = self.write("a.json", json.dumps(best))
        second = self.write("b.json", json.dumps(exact))
        self.done("plan", "diff", first, second)
        return best

    def test_answers_every_option_on_cpus(self):
        best = self.check_every_option(CPU_PLAN)
        self.assertEqual(best["stack"], "regatta")
        self.assertAlmostEqual(best["step_time_s"], best["predicted"]["step_time_s"], 9)
        without = json.loads(self.done(*CPU_PLAN, "--without", "s1", "--json").stdout)
        self.assertFalse([name for name in without["plan"]["placement"] if name.startswith("s1/")])
        job, cluster = EXAMPLES / "job.yaml", EXAMPLES / "cluster.yaml"
        rows = json.loads(self.done("plan", "what-if", job, "--cluster", cluster, "--with", "servers=2", "--json").stdout)["clusters"]
        self.assertEqual([row["devices"] for row in rows], [8, 4])
        text = self.done("plan", "diff", "{tp: 2}", "{tp: 1}", "--job", job, "--cluster", cluster).stdout
        self.assertIn("they differ in", text)

    def test_writes_the_optimizer_and_the_steps_of_the_job(self):
        job = self.write("job.yaml", "name: j\nmodel: {preset: llama3-8b}\nglobal_batch: 16\nprecision: bf16\nsteps: 500\n"
                                     "optimizer: {lr: 1e-4, weight_decay: 0, beta1: 0.8, clip_norm: 0}\n")
        cluster = self.write("c.yaml", "name: c\nfabric: {tiers: [leaf]}\nservers: {count: 1, type: dgx-h100}\n")
        plan = ["plan", job, "--cluster", cluster, "--strategy", "{dp: 8, zero: %d, micro_batch: 1, recompute: full}"]
        words = {"megatron": (1, ["--lr 0.0001", "--weight-decay 0", "--adam-beta1 0.8", "--clip-grad 0", "--train-iters 500",
                                  "--rotary-base 500000", "--norm-epsilon 1e-05"]),
                 "torchtitan": (3, ["--optimizer.lr 0.0001", "--optimizer.weight_decay 0", "--optimizer.beta1 0.8",
                                  "--training.max_norm inf", "--training.steps 500"]),
                 "deepspeed": (3, ['"lr": 0.0001', '"weight_decay": 0.0', "0.8,", '"gradient_clipping": 0.0',
                                   '"total_num_steps": 500'])}
        for launcher, (zero, flags) in words.items():
            script = self.done(*plan[:-1], plan[-1] % zero, "--launch", launcher).stdout
            for flag in flags:
                self.assertIn(flag, script)

    def test_launches_large_models_with_every_framework_that_can_run_them(self):
        every = ("megatron-lm", "megatron-bridge", "deepspeed", "torchtitan")
        for model, servers, batch, launchers in (("llama3-70b", 16, 256, every), ("qwen2-72b", 16, 256, every),
                                                 ("deepseek-v3", 64, 2048, every[:2]), ("qwen3-235b-a22b", 32, 1024, every[:2]),
                                                 ("gpt3-175b", 64, 512, every)):
            job = self.write("job.yaml", f"name: j\nmodel: {{preset: {model}}}\nglobal_batch: {batch}\nprecision: bf16\n")
            cluster = self.write("c.yaml", f"name: c\nfabric: {{tiers: [leaf]}}\nservers: {{count: {servers}, type: dgx-h100}}\n")
            for launcher in launchers:
                with self.subTest(model=model, launcher=launcher):
                    script = self.done("plan", job, "--cluster", cluster, "--launch", launcher).stdout
                    self.assertIn("# The search was bound to what the framework runs:\n", script)
                    self.assertIn("s0", script)
                    program = [sys.executable, "-m", "py_compile"] if launcher == "megatron-bridge" else ["bash", "-n"]
                    checked = subprocess.run([*program, self.write("script", script)], capture_output=True, text=True)
                    self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_refuses_by_name_what_a_framework_cannot_run_before_it_searches(self):
        self.check(PLAN + ["--strategy", "{pp: 8}", "--launch", "deepspeed"],
                   "deepspeed: pp 8 is the program's, no configuration has it; set pp 1, or launch with megatron")

    def test_says_plainly_that_a_strategy_as_it_stands_does_not_fit(self):
        strategy = ["--exact", "--strategy", "{tp: 8, pp: 4, dp: 32, cp: 1, micro_batch: 1, zero: 0}"]
        words = r"needs 1\d\d GiB of the 80 GiB of a device: it does not fit; choose "
        for form in ([], ["--json"], ["--launch", "megatron"]):
            done = self.done(*PLAN, *strategy, *form)
            self.assertRegex(done.stderr, "^regatta: warning: the strategy " + words)
            self.assertEqual(done.stderr.count("\n"), 1)
        self.assertRegex(self.done(*PLAN, *strategy).stdout, "\nno plan, a strategy: tp8.*\nit " + words)
        self.assertEqual(self.done(*PLAN, "--exact", "--strategy", "{tp: 8, pp: 8, micro_batch: 1, zero: 1}").stderr, "")

    def test_keeps_the_compression_that_is_asked_for(self):
        best = json.loads(self.done(*PLAN, "--strategy", "{tp: 8, compression: bf16}", "--json").stdout)
        self.assertEqual(best["strategy"]["compression"], "bf16")
        self.check(PLAN + ["--strategy", "{tp: 8, compression: int8}", "--launch", "megatron"],
                   "megatron: gradients travel as fp32 or bf16, not as int8; set compression none or bf16")

    def test_refuses_a_placement_where_the_plan_places(self):
        job = self.write("job.yaml", JOB.read_text() + "placement: [s9999/0]\n")
        self.check(["plan", job, "--cluster", CLUSTER],
                   "job gpt3-175b: placement: on a cluster of GPUs the plan says where ranks go; write placement: auto, or "
                   "leave the key out")

    def test_reads_no_file_without_an_end(self):
        for arguments in (["plan", "/dev/zero", "--cluster", CLUSTER], ["plan", JOB, "--cluster", "/dev/zero"]):
            self.check(arguments, "/dev/zero: is no text: a byte of it is 0; check the path")
        endless = self.folder / "endless"
        os.mkfifo(endless)
        for arguments in (["plan", endless, "--cluster", CLUSTER], ["plan", JOB, "--cluster", endless]):
            with subprocess.Popen(["sh", "-c", 'exec yes "model: large" > "$0"', endless]) as source:
                self.check(arguments, f"{endless}: holds more than 1048576 bytes, or has no end; check the path")
                source.terminate()

    def test_reports_output_that_is_lost(self):
        def no_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

        fixed = ["--strategy", "{tp: 8, pp: 8, micro_batch: 1, zero: 1}"]
        for arguments in (PLAN + fixed, PLAN + fixed + ["--json"], PLAN + ["--top", "5000", "--json"],
                          ["plan", "--help"]):
            with open(self.folder / "out", "w", encoding="utf-8") as out:
                done = subprocess.run([lab_case.BIN / "regatta", *map(str, arguments)], stdout=out, stderr=subprocess.PIPE,
                                      text=True, timeout=60, preexec_fn=no_room, check=False)
            self.assertEqual((done.returncode, done.stderr), (1, "regatta: standard output: file too large; what was printed is "
                                                                 "not complete\n"), arguments)
        page = self.folder / "plan.html"
        done = lab_case.regatta(*PLAN, *fixed, "--html", page, preexec_fn=no_room)
        self.assertEqual((done.returncode, done.stderr),
                         (1, f"regatta: {page}: file too large; choose another place with --html\n"))
        self.assertEqual([path.name for path in self.folder.iterdir()], ["out"])

    def test_writes_into_a_device_without_replacing_it(self):
        link = self.folder / "null"
        link.symlink_to("/dev/null")
        self.done(*PLAN, "--strategy", "{tp: 8, pp: 8, micro_batch: 1, zero: 1}", "--html", link, "--trace", "/dev/null")
        self.assertTrue(link.is_symlink() and pathlib.Path("/dev/null").is_char_device())

    def mixed(self):
        job = self.write("job.yaml", "name: l\nmodel: {preset: llama2-7b}\nglobal_batch: 64\nprecision: bf16\n")
        cluster = self.write("mixed.yaml", "name: mixed\nfabric: {tiers: [leaf]}\nservers:\n"
                                           "  - {name: a, type: dgx-a100-80g}\n  - {name: b, type: dgx-h100}\n")
        return ["plan", job, "--cluster", cluster]

    def test_answers_as_much_for_mixed_servers(self):
        plan = json.loads(self.done(*self.mixed(), "--json").stdout)
        for key in ("mfu", "tflops_per_device", "hardware_tflops_per_device", "memory", "worst_stage", "interval", "fit"):
            self.assertIn(key, plan)
        self.assertTrue(plan["fits"])
        self.assertEqual(plan["memory"]["total_bytes"], plan["memory_per_device_bytes"])
        peaks = 8 * 312 + 8 * 989.5
        self.assertAlmostEqual(plan["mfu"] / (16 * plan["tflops_per_device"] / peaks), 1, 6)
        self.assertLess(plan["interval"]["low_s"], plan["step_time_s"])
        text = self.done(*self.mixed()).stdout
        self.assertRegex(text, r"\npart +time +share\n")
        self.assertRegex(text, r"\nstep .* 100 %\n")
        self.assertIn("of all devices' peaks", text)
        self.assertIn("memory per device of stage", text)
        best = self.check_every_option(self.mixed())
        self.assertEqual(sum(best["micro_batches_of_replicas"]) * best["strategy"]["micro_batch"], 64)
        without = json.loads(self.done(*self.mixed(), "--without", "a", "--json").stdout)
        self.assertEqual((without["servers"], without["devices"]), ("b", 8))
        script = self.done(*self.mixed(), "--strategy", "{tp: 8, pp: 2}", "--launch", "megatron").stdout
        self.assertIn("--decoder-first-pipeline-num-layers", script)
        self.assertRegex(script, r"\n  [ab] [ab]\n")

    def test_gives_equal_servers_of_two_names_the_same_numbers(self):
        job, cluster = self.mixed()[1], self.write("equal.yaml", "name: c\nfabric: {tiers: [leaf]}\nservers:\n"
                                                   "  - {name: a, type: dgx-h100}\n  - {name: b, type: dgx-h100}\n")
        twins = self.write("twins.yaml", "name: c\nserver_types:\n  one: {preset: dgx-h100}\n  two: {preset: dgx-h100}\n"
                                         "fabric: {tiers: [leaf]}\nservers:\n  - {name: a, type: one}\n  - {name: b, type: two}\n")
        equal, same = (json.loads(self.done("plan", job, "--cluster", path, "--json").stdout) for path in (cluster, twins))
        for plan in (equal, same):
            for key in ("search_time_s", "evaluated", "fitting"):  # as the threads go
                plan.pop(key)
        self.assertEqual(equal, same)

    def test_has_limits_on_what_nobody_looks_at(self):
        job = self.write("job.yaml", JOB.read_text().replace("global_batch: 1536", "global_batch: 983040"))
        self.check(["plan", job, "--cluster", CLUSTER, "--strategy", "{tp: 8, pp: 64, micro_batch: 1}", "--trace", self.folder / "t"],
                   "timeline: 64 stages x 491520 micro-batches x 1 parts, there and back, are 62914560 pieces of work, and at "
                   "most 1000000 are drawn; choose a smaller global_batch, a larger micro_batch or fewer stages")
        self.check(PLAN + ["--top", "100000"], "plan: --top: '100000' is not a whole number from 1 to 10000")

    def test_takes_prices_that_are_prices(self):
        for price in ("nan", "inf", "1e308", "0", "-1", "2x", "1000001"):
            self.check(PLAN + ["--sizes", "--price", price],
                       f"plan: --price: '{price}' is not a number above 0, at most 1000000")
            self.check(["plan", "what-if", JOB, "--cluster", CLUSTER, "--with", "servers=64", "--price", price],
                       f"plan what-if: --price: '{price}' is not a number above 0, at most 1000000")

    def test_says_what_a_list_of_servers_lacks(self):
        for names in ("s1,,s2", ",", "s1,"):
            self.check(PLAN + ["--without", names], f"--without: '{names}' lacks a name between two commas or at an end; write "
                                                    "it like s3,s7")
        self.check(PLAN + ["--without", ""], "plan: --without: the text is empty; write it or leave it out")
        cluster = self.write("c.yaml", "name: c\nfabric: {tiers: [leaf]}\nservers: {count: 2, type: dgx-h100}\n")
        self.check(["plan", JOB, "--cluster", cluster, "--without", "s0,s1"],
                   "--without: it names all servers of cluster c; leave some in")

    def test_refuses_outputs_that_exclude_each_other(self):
        done = lab_case.regatta(*PLAN, "--json", "--launch", "megatron")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, "^regatta: plan: --[a-z]+ excludes --[a-z]+; give one of them\n$")
        for trace in (self.folder / "x", self.folder / "." / "x", f"{self.folder}/../{self.folder.name}/x"):
            self.check(PLAN + ["--html", self.folder / "x", "--trace", trace],
                       f"--html and --trace: both name {self.folder / 'x'}; name two files")

    def test_refuses_strategies_that_contradict_themselves(self):
        for strategy, sentence in (
                ("{zero: 0, shard_ranks: 16}", "shard_ranks 16, but with zero 0 replicas share nothing; set zero 1 to 3, or leave "
                                               "shard_ranks out"),
                ("{tp: 1, sequence_parallel: true}", "sequence_parallel, but with tp 1 there is no rank to share tokens with; set "
                                                     "tp above 1, or leave sequence_parallel out"),
                ("{schedule: zb-v, pp: 1}", "schedule zb-v, but pp 1 is no pipeline; set pp above 1, or leave schedule and "
                                            "virtual_stages out")):
            self.check(PLAN + ["--strategy", strategy], f"strategy: {sentence}")
        job = self.write("job.yaml", JOB.read_text().replace("strategy: auto", "strategy: {zero: 0}"))
        self.check(["plan", job, "--cluster", CLUSTER, "--strategy", "{shard_ranks: 16}"],
                   "strategy: shard_ranks 16, but with zero 0 replicas share nothing; set zero 1 to 3, or leave shard_ranks out")
        self.check(PLAN + ["--strategy", "{cp: 3}"],
                   "cp 3: a ring gives each rank two parts of a sequence, and 6 parts do not divide seq 2048; choose a divisor "
                   "of 1024")
        self.done(*PLAN, "--strategy", "{}")

    def test_says_what_a_file_lacks(self):
        job = self.write("job.yaml", 'name: "x\nmodel: {preset: llama2-7b}\nglobal_batch: 8\n')
        self.check(["plan", job, "--cluster", CLUSTER], f"{job}:1: a quote is not closed; close it")
        self.write("job.yaml", "name: x\nmodel: {preset: }\nglobal_batch: 8\n")
        self.check(["plan", job, "--cluster", CLUSTER],
                   f"{job}:2: model.preset: found nothing where a single value is expected; write it, or leave the key out")
        cluster = self.write("c.yaml", "name: c\nserver_types: {s: {preset: dgx-a100-80}}\nfabric: {tiers: [leaf]}\n"
                                       "servers: {count: 2, type: s}\n")
        self.check(["plan", JOB, "--cluster", cluster],
                   f"{cluster}:2: server_types.s.preset: no server is called 'dgx-a100-80'; did you mean 'dgx-a100-80g'?")
        cluster.write_text(cluster.read_text().replace("preset: dgx-a100-80", "devices: {count: 8, type: h100}, nics: {count: 0}"))
        self.check(["plan", JOB, "--cluster", cluster],
                   f"{cluster}:2: server_types.s.devices.type: no device is called 'h100'; did you mean 'h100-sxm'?")

    def test_compares_clusters_where_some_have_no_plan(self):
        what_if = ["plan", "what-if", JOB, "--cluster", CLUSTER]
        self.check(what_if + ["--with", "nics=3"], "--with nics=3: the 8 rails of cluster a100-1024 do not divide 3 NICs; choose a "
                                                   "multiple of 8")
        text = self.done(*what_if, "--with", "servers=1").stdout
        self.assertRegex(text, r"\na100-1024 servers=1 +8 +none: see below ")
        self.assertRegex(text, r"\na100-1024 servers=1: no strategy fits 80 GiB of a100-sxm4-80g")
        rows = json.loads(self.done(*what_if, "--with", "servers=1", "--json").stdout)["clusters"]
        self.assertIn("no strategy fits", rows[1]["note"])
        self.assertNotIn("step_time_s", rows[1])
        self.assertNotIn("note", rows[0])

    def plans(self):
        files = []
        for name, recompute in (("a", "none"), ("b", "full")):
            text = self.done(*PLAN, "--json", "--strategy", f"{{tp: 8, pp: 8, micro_batch: 1, zero: 1, recompute: {recompute}}}").stdout
            files.append(self.write(f"{name}.json", text))
        return files

    def test_compares_plans_that_are_plans(self):
        a, b = self.plans()
        plan = json.loads(b.read_text())
        self.assertTrue(all(isinstance(value, int) for value in plan["memory"].values()))
        for change, sentence in (({"step_time_s": -1}, "step_time_s: expected a number above 0, at most 1000000000, found -1"),
                                 ({"step_time_s": 0}, "step_time_s: expected a number above 0, at most 1000000000, found 0"),
                                 ({"memory_per_device_bytes": "1"}, "memory_per_device_bytes: expected a number above 0, at most "
                                                                    '1000000000000000, found the string "1"'),
                                 ({"breakdown": {"matmul": 1}}, "breakdown.matmul: not a time: its name does not end in _s"),
                                 ({"breakdown": {"matmul_s": 1e308}}, "breakdown.matmul_s: expected a number from 0 to 1000000000, "
                                                                      "found 1e+308")):
            b.write_text(json.dumps(plan | change))
            self.check(["plan", "diff", a, b], f"{b}: {sentence}")
        b.write_text(json.dumps(plan | {"breakdown": {}}))
        done = lab_case.regatta("plan", "diff", a, b)
        self.assertEqual(done.returncode, 2)
        self.assertIn('the parts of "breakdown" make ', done.stderr)
        b.write_text(json.dumps(plan))
        self.assertNotIn("one problem", self.done("plan", "diff", a, b).stdout)
        self.check(["plan", "diff", a, b, "--stack", "nemo"],
                   f"plan diff: --stack is for strategies, and {str(a)[:60]} and {str(b)[:60]} are files; leave it out")
        b.write_text(json.dumps(plan | {"job": "other"}))
        self.assertIn("note: the plans are not for the same problem: A is of job gpt3-175b, B of other\n",
                      self.done("plan", "diff", a, b).stdout)
        self.assertIn("B of other", json.loads(self.done("plan", "diff", a, b, "--json").stdout)["note"])
        self.assertNotIn(" ns", self.done("plan", "diff", a, b).stdout)

    def test_replays_the_example_and_names_sources(self):
        text = self.done("plan", "replay", "--rows", EXAMPLES / "runs.csv").stdout
        self.assertIn("\nruns ", text)
        self.done("plan", "replay", "korthikanti_table5")
        self.check(["plan", "replay", "mosaic_fsdp"],
                   "mosaic_fsdp: the table of this set is no part of the program; write it from its source, which "
                   "docs/formats/runs.md names, and give mosaic_fsdp.csv")

    def test_shows_on_a_terminal_that_it_searches(self):
        terminal, end = pty.openpty()
        job = self.write("job.yaml", "name: d\nmodel: {preset: deepseek-v3}\nglobal_batch: 15360\nprecision: bf16\n")
        cluster = self.write("c.yaml", "name: c\nfabric: {tiers: [leaf]}\nservers: {count: 256, type: dgx-h100}\n")
        process = subprocess.Popen([lab_case.BIN / "regatta", "plan", job, "--cluster", cluster, "--exhaustive"],
                                   stdout=subprocess.DEVNULL, stderr=end)
        shown = os.read(terminal, 100)
        process.kill()
        process.wait()
        os.close(end)
        os.close(terminal)
        self.assertIn(b"searching, 1 s", shown)


if __name__ == "__main__":
    unittest.main(verbosity=2)
