"""`regatta plan calibrate`, as a user calls it: from logs to a better plan."""
import csv
import json
import pathlib
import tempfile
import unittest

import lab_case

CLUSTER = ("name: c\nserver_types:\n  s: {preset: dgx-h100}\nfabric:\n  tiers: [leaf]\n"
           "servers: {count: 8, type: s}\n")
JOB = "name: j\nmodel: {preset: llama3-8b}\nglobal_batch: 128\nprecision: bf16\n"
FIXED = "{tp: 4, pp: 1, cp: 1, micro_batch: 1, zero: 1, recompute: none, sequence_parallel: true}"
SLOWER = 1.25  # the cluster of the logs than the planner believes
# (preset, layers, hidden, ffn_hidden, heads, gpus, tp, pp, micro_batch, global_batch)
RUNS = [("llama3-8b", 32, 4096, 14336, 32, 64, 4, 1, 1, 128), ("llama3-8b", 32, 4096, 14336, 32, 32, 2, 1, 1, 128),
        ("llama3-8b", 32, 4096, 14336, 32, 16, 8, 1, 2, 64), ("llama3-70b", 80, 8192, 28672, 64, 64, 8, 4, 1, 128),
        ("llama3-70b", 80, 8192, 28672, 64, 64, 4, 8, 1, 128)]
COLUMNS = "model,server,gpus,tp,pp,mbs,gbs,zero,precision,stack,step_s"


def table(seconds, server="dgx-h100"):
    rows = [f"{preset},{server},{gpus},{tp},{pp},{micro},{batch},1,bf16,megatron-core,{step}"
            for (preset, _, _, _, _, gpus, tp, pp, micro, batch), step in zip(RUNS, seconds)]
    return "\n".join([COLUMNS, *rows]) + "\n"


def megatron_log(run, step):
    _, layers, hidden, ffn_hidden, heads, gpus, tp, pp, micro, batch = run
    arguments = {"bf16": True, "context_parallel_size": 1, "ffn_hidden_size": ffn_hidden, "fp8": None, "global_batch_size": batch,
                 "hidden_size": hidden, "micro_batch_size": micro, "num_attention_heads": heads, "num_layers": layers,
                 "padded_vocab_size": 128256, "pipeline_model_parallel_size": pp, "recompute_granularity": None,
                 "seq_length": 8192, "sequence_parallel": tp > 1, "tensor_model_parallel_size": tp,
                 "use_distributed_optimizer": True, "world_size": gpus}
    lines = ["------------------------ arguments ------------------------"]
    lines += [f"  {key} {'.' * (48 - len(key))} {value}" for key, value in sorted(arguments.items())]
    lines += ["-------------------- end of arguments ---------------------"]
    lines += [f" iteration {number:8d}/      20 | consumed samples: {number * batch:12d} | elapsed time per iteration (ms): "
              f"{step * 1000 * (3 if number == 1 else 1 + number % 3 / 1000):.1f} | global batch size: {batch:5d} |"
              for number in range(1, 11)]
    return "\n".join(lines) + "\n"


class PlanCalibrateTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.cluster, self.job = self.folder / "c.yaml", self.folder / "job.yaml"
        self.cluster.write_text(CLUSTER)
        self.job.write_text(JOB)
        self.kept = self.folder / "c.calibrated.json"

    def call(self, *arguments):
        done = lab_case.regatta("plan", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refused(self, *arguments):
        done = lab_case.regatta("plan", *arguments)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def predicted(self):
        runs = self.folder / "predicted.csv"
        runs.write_text(table([1] * len(RUNS)))
        sets = json.loads(self.call("replay", runs, "--json").stdout)["sets"]
        return [row["predicted_s"] for one in sets if one["set"] == "predicted" for row in one["rows"]]

    def logs(self):
        paths = []
        for number, (run, step) in enumerate(zip(RUNS, self.predicted())):
            paths.append(self.folder / f"train{number}.log")
            paths[-1].write_text(megatron_log(run, SLOWER * step))
        return paths

    def plan(self, *arguments):
        done = self.call(self.job, "--cluster", self.cluster, "--strategy", FIXED, "--json", *arguments)
        return json.loads(done.stdout), done.stderr

    def test_predicts_better_from_logs(self):
        before, notes = self.plan("--stack", "megatron-core")
        self.assertNotIn("calibrat", notes)
        answer = json.loads(self.call("calibrate", *self.logs(), "--cluster", self.cluster, "--json").stdout)
        self.assertEqual(answer["stack"], "megatron-core")
        self.assertEqual([log["framework"] for log in answer["logs"]], ["Megatron-LM"] * len(RUNS))
        self.assertAlmostEqual(answer["before"]["mape"], 1 - 1 / SLOWER, 2)
        self.assertLess(answer["after"]["mape"], 0.05)
        self.assertLess(answer["left_out"]["mape"], answer["before"]["mape"] / 2)
        self.assertFalse(answer["scalars"]["experts_sync_s"]["determined"])
        kept = json.loads(self.kept.read_text())
        self.assertEqual(kept["dense"]["runs"], len(RUNS))

        after, notes = self.plan()
        self.assertIn("c.calibrated.json calibrated it on 5 runs", notes)
        self.assertEqual(after["stack"], "megatron-core")
        self.assertEqual(after["calibration"]["runs"], len(RUNS))
        self.assertAlmostEqual(after["step_time_s"] / before["step_time_s"], SLOWER, delta=0.1)
        width = after["interval"]["high_s"] / after["interval"]["low_s"]
        self.assertAlmostEqual(width, kept["dense"]["high"] / kept["dense"]["low"], 6)
        text = self.call(self.job, "--cluster", self.cluster, "--strategy", FIXED).stdout
        self.assertIn("stack megatron-core calibrated on 5 runs of", text)

        other, notes = self.plan("--stack", "fsdp")
        self.assertIn("is of stack megatron-core and is not used for fsdp", notes)
        self.assertNotIn("calibration", other)

    def test_prints_what_it_did_for_a_table_and_saves_where_it_is_told(self):
        runs, out = self.folder / "runs.csv", self.folder / "fit.json"
        runs.write_text(table([SLOWER * step for step in self.predicted()]))
        text = self.call("calibrate", runs, "--out", out).stdout
        for part in ("measured", "of runs left out of the fit", "not determined by these runs", "matrix_efficiency",
                     f"saved: {out}"):
            self.assertIn(part, text)
        self.assertTrue(out.exists())
        self.assertFalse(self.kept.exists())
        self.assertIn("not saved: give --cluster", self.call("calibrate", runs).stdout)
        with runs.open() as file:
            self.assertEqual(len(list(csv.reader(file))), len(RUNS) + 1)

    def test_names_what_is_wrong_and_what_to_do(self):
        log = self.folder / "other.log"
        log.write_text("hello\n")
        self.assertIn("other.log: no step line of Megatron-LM", self.refused("calibrate", log))
        log.write_text(megatron_log(RUNS[0], 10))
        self.assertIn("does not say its servers; give the cluster of the run", self.refused("calibrate", log))
        self.assertIn("there is no software stack 'x'", self.refused("calibrate", log, "--stack", "x"))
        runs = self.folder / "runs.csv"
        runs.write_text(table([10] * len(RUNS), "dgx-a100-80g"))
        self.assertIn("calibrate each cluster on runs of its own", self.refused("calibrate", runs, "--cluster", self.cluster))
        self.assertFalse(self.kept.exists())
        self.kept.write_text("{}")
        complaint = self.refused(self.job, "--cluster", self.cluster)
        self.assertIn("c.calibrated.json: version: missing; run `regatta plan calibrate` again", complaint)


if __name__ == "__main__":
    unittest.main()
