"""The command line of `regatta sched`: decisions, explanations, replays, and what it refuses."""
import json
import pathlib
import tempfile
import unittest

import lab_case

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
STATE = EXAMPLES / "sched_state.yaml"
NODES = "nodes:\n  - {name: n, count: 2, devices: 8, device_type: h100, device_memory: 80GiB, cpus: 64, memory: 1TiB}\n"
TRACE = "submit_s,duration_s,num_gpus,vc\n" + "".join(f"{60 * i},{600 + 10 * (i % 7)},{1 << i % 5},vc{i % 3}\n" for i in range(200))


class SchedCommand(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def done(self, *arguments):
        done = lab_case.regatta("sched", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refused(self, *arguments):
        done = lab_case.regatta("sched", *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        return done.stderr.removeprefix("regatta: ").strip()

    def test_decides_with_reasons(self):
        self.assertEqual(self.done("decide", STATE),
                         "policy regatta: 1 action\n"
                         "  start   chat  starts on 24 devices on 3 nodes below leaf 1 after 1 min\n"
                         "2 jobs wait, no room: notebook, finetune\n")
        decision = json.loads(self.done("decide", STATE, "--json"))
        self.assertEqual([replica["node"] for replica in decision["actions"][0]["replicas"]], ["b1", "b2", "b3"])
        self.assertEqual(decision["waiting"], [{"job": "notebook", "cause": "no_room"}, {"job": "finetune", "cause": "no_room"}])

    def test_mixes_jobs_on_devices_with_the_flags_that_carry_it_out(self):
        mixed = EXAMPLES / "sched_state_mixed.yaml"
        decision = json.loads(self.done("decide", mixed, "--json"))
        self.assertEqual([(mix["node"], mix["device"], mix["mode"]) for mix in decision["mixes"]], [("n0", 0, "preemptive"), ("n0", 1, "shared")])
        self.assertEqual([setting["job"] for setting in decision["mixes"][0]["settings"]], ["chat", "training"])
        self.assertIn("regatta gpu run --name chat --memory 24576MiB --weight 1000 --priority high", self.done("decide", mixed))

    def test_says_why_a_job_waits_and_until_when(self):
        lines = self.done("why", STATE, "finetune").split("\n")
        self.assertEqual(lines[0], "job finetune waits for 16 of 16 devices and 64 of 128 cores under one leaf; held by job pretraining for about 1.44 d")
        self.assertRegex(lines[1], r"^starts in about [0-9.]+ d \(80 %: [0-9.]+ h to [0-9.]+ d\)$")
        why = json.loads(self.done("why", STATE, "finetune", "--json"))
        self.assertEqual([job["job"] for job in why["blocking"]], ["pretraining"])
        self.assertLessEqual(why["earliest_in_s"], why["start_in_s"])
        self.assertEqual(self.done("why", STATE, "chat"), "job chat starts on 24 devices on 3 nodes below leaf 1 after 1 min\n")

    def test_says_which_limit_or_resource_a_job_waits_for(self):
        job = "roles: [{name: r, devices: %d, cpus: %d}], run_time: {median: 1h}"
        state = self.write("state.yaml", NODES + "queues:\n  - {name: a, limit: {gpus: 4}}\n  - {name: b}\nrunning:\n"
                           "  - {name: holder, queue: a, running_for: 20min, replicas: [{node: n0, devices: [0, 1, 2, 3]}], " + job % (4, 60) + "}\n"
                           "  - {name: other, queue: b, running_for: 30min, replicas: [{node: n1, devices: [0, 1]}], " + job % (2, 60) + "}\n"
                           "pending:\n  - {name: limited, queue: a, " + job % (4, 4) + "}\n  - {name: starved, queue: b, " + job % (4, 32) + "}\n")
        self.assertEqual(self.done("why", state, "limited").split("\n")[:2],
                         ["job limited waits for 4 devices of the limit of queue a; held by job holder for about 40 min",
                          "starts in about 40 min (80 %: 40 min to 40 min)"])
        self.assertEqual(self.done("why", state, "starved").split("\n")[:2],
                         ["job starved waits for 28 of 32 cores on one server, where its 4 devices are free; held by job other for about 30 min",
                          "starts in about 30 min (80 %: 30 min to 30 min)"])
        self.assertEqual(json.loads(self.done("why", state, "limited", "--json"))["limits"][0]["missing"], "4 devices")

    def test_says_why_no_start_is_predicted(self):
        job = "roles: [{devices: 8}]"
        held = NODES.replace("count: 2", "count: 1") + "running:\n  - {name: t, running_for: 30min, run_time: {median: 2h}, replicas: [{node: n0, devices: [0, 1, 2, 3, 4, 5, 6, 7]}], " + job + "}\n"
        state = self.write("state.yaml", held + "pending:\n  - {name: first, waited: 1h, " + job + "}\n  - {name: w, run_time: {median: 1h}, " + job + "}\n")
        words = ["why", state, "w", "--policy", "backfill"]
        self.assertEqual(self.done(*words),
                         "job w waits for 8 of 8 devices on one server; held by job t for about 1.50 h\n"
                         "no start is predicted: job first goes before it, and its run time is not known\n")
        self.assertEqual(json.loads(self.done(*words, "--json"))["start"], "no start is predicted: job first goes before it, and its run time is not known")
        self.assertEqual(self.done("why", state, "first", "--policy", "backfill").split("\n")[1], "starts in about 1.50 h (80 %: 1.50 h to 1.50 h)")
        state = self.write("state.yaml", held.replace("run_time: {median: 2h}, ", "") + "pending:\n  - {name: w, " + job + "}\n")
        self.assertEqual(self.done("why", state, "w", "--policy", "backfill").split("\n")[1], "no start is predicted: when job t ends is not known")
        state = self.write("state.yaml", NODES + "  - {name: x, devices: 8, device_type: h100, health: failed}\npending:\n  - {name: w, roles: [{devices: 8, replicas: 3}]}\n")
        self.assertEqual(self.done("why", state, "w"),
                         "job w waits for node x, which is not ready or has failed devices: without it the cluster does not hold its 24 devices; would start now with 16 devices\n"
                         "no start is predicted: when nodes return is not known\n")

    def test_predicts_starts_beside_limits_of_device_types_and_spares(self):
        job = "roles: [{devices: 8}], run_time: {median: 1h}"
        state = self.write("state.yaml", NODES + "queues: [{name: q, device_types: {h100: {limit: 8}}}]\nrunning:\n"
                           "  - {name: r, queue: q, running_for: 20min, replicas: [{node: n0, devices: [0, 1, 2, 3, 4, 5, 6, 7]}], " + job + "}\n"
                           "pending:\n  - {name: w, queue: q, " + job + "}\n")
        self.assertEqual(self.done("why", state, "w"),
                         "job w waits for 8 devices of type h100 of the limit of queue q; held by job r for about 40 min\n"
                         "starts in about 40 min (80 %: 40 min to 40 min)\n")
        policy = self.write("policy.yaml", "base: backfill\nname: p\nspares: {nodes: 1, gang: 8}\n")
        state.write_text(state.read_text().replace("limit: 8", "limit: 32"))
        self.assertEqual(self.done("why", state, "w", "--policy", policy),
                         "job w waits for 8 of 8 devices of type h100 on one server; held by job r for about 40 min\n"
                         "would fit on nodes that are kept as spares for large gangs\n"
                         "starts in about 40 min (80 %: 40 min to 40 min)\n")

    def test_replays_a_trace_to_the_same_bytes_and_draws_it(self):
        trace, cluster = self.write("trace.csv", TRACE), self.write("cluster.yaml", NODES)
        page, log = self.folder / "page.html", self.folder / "log"
        words = ["replay", trace, "--cluster", cluster, "--policy", "regatta", "fifo"]
        text = self.done(*words, "--html", page, "--log", log)
        self.assertEqual(text, self.done(*words))
        self.assertIn("2 nodes, 16 devices", text)
        self.assertIn("Mean waiting by size", page.read_text())
        events = log.read_text()
        self.done(*words, "--log", log)
        self.assertEqual(events, log.read_text())
        result = json.loads(self.done(*words, "--json"))
        first, last = (replay["all"]["pending"] for replay in result["replays"])
        self.assertEqual((first["jobs"], last["jobs"]), (200, 200))
        self.assertLessEqual(first["mean_s"], last["mean_s"])

    def test_replays_pods_and_requests_over_time(self):
        cluster = self.write("cluster.yaml", NODES)
        samples = [f"{60 * minute},{pod},{20 * pod}" for minute in range(120) for pod in (1, 2)]
        duty = self.write("duty.csv", "\n".join(["t_s,pod,duty_pct"] + samples) + "\n")
        words = ["replay", duty, "--cluster", cluster, "--past", "1h", "--json"]
        pods = json.loads(self.done(*words))["replays"][0]
        self.assertAlmostEqual(pods["used_share"], 0.6 / 16, places=3)
        self.assertEqual((pods["service_intervals"], pods["missed"]["all"]), (118, 0))
        rates = [f"{60 * minute},{1 + minute % 60}" for minute in range(120)]
        requests = self.write("qps.csv", "\n".join(["t_s,qps"] + rates) + "\n")
        words = ["replay", requests, "--cluster", cluster, "--past", "1h", "--replicas", "4", "--policy", "backfill"]
        self.assertIn("0 of 59", self.done(*words))
        pairs = self.write("pairs.csv", "gpu,job,scale\n")
        self.assertTrue(self.refused(*words, "--interference", pairs).startswith(f"{pairs}:1: no column"))
        self.assertIn("is not a number from 0 to 2", self.refused(*words, "--interference", "3"))

    def test_mixes_by_the_interference_of_the_replay(self):
        cluster = self.write("cluster.yaml", "nodes: [{name: n, devices: 1, device_type: h100, device_memory: 80GiB, cpus: 64, memory: 1TiB}]\n")
        duty = self.write("duty.csv", "t_s,pod,duty_pct\n" + "".join(f"{60 * minute},{pod},40\n" for minute in range(120) for pod in (1, 2)))
        own = self.write("own.yaml", "name: own\ninterference: 0\n")
        words = ["replay", duty, "--cluster", cluster, "--past", "1h", "--policy", "regatta", own, "--json", "--interference"]
        for factor, mixed in (("0", [True, True]), ("2", [False, True])):
            replays = json.loads(self.done(*words, factor))["replays"]
            self.assertEqual([replay["mixes"] > 0 for replay in replays], mixed, factor)

    def test_refuses_flags_that_say_nothing_about_the_trace(self):
        trace, cluster = self.write("trace.csv", TRACE), self.write("cluster.yaml", NODES)
        replay = lambda load, *flags: self.refused("replay", load, "--cluster", cluster, *flags)
        self.assertEqual(replay(trace, "--past", "1h"), f"--past: it is for traces of GPU use or requests, and {trace} has the jobs of Philly; leave it out")
        self.assertIn("--replicas: it is for traces of requests, and", replay(trace, "--replicas", "4"))
        duty = self.write("duty.csv", "t_s,pod,duty_pct\n0,a,5\n60,a,5\n120,a,5\n")
        self.assertIn("has GPU use of pods; leave it out", replay(duty, "--replicas", "4"))
        requests = self.write("qps.csv", "t_s,qps\n0,5\n60,5\n120,5\n")
        self.assertIn("--checkpoint: the trace has services alone", replay(requests, "--past", "60s", "--checkpoint", "1h"))
        requests.write_text("t_s,qps\n0,5\n60,0\n120,0\n")
        self.assertEqual(replay(requests, "--past", "60s"), f"{requests}: qps: it is 0 at all times after the first 1 min; give a trace with requests")
        self.assertIn("--failures-from: it is a time of a trace of failures; give --failures", replay(trace, "--failures-from", "1d"))
        self.assertEqual(replay(trace, "--repair", "1h"), "--repair: no node fails; give failures, or leave it out")
        self.assertIn("--repair: no node fails", self.refused("simulate", "--cluster", cluster, "--duration", "1h", "--repair", "1h"))
        faults = self.write("faults.csv", "node,start_d,end_d\n1,0.01,0.02\n")
        self.assertIn("says when each failed node returns; leave it out", replay(trace, "--failures", faults, "--repair", "1h"))
        self.assertEqual(replay(trace, "--policy", "fifo", "fifo"), "--policy: fifo is given twice; leave one out")
        policy = self.write("p.yaml", "name: fifo\n")
        self.assertIn("have the name fifo; give one of the files another name", replay(trace, "--policy", "fifo", policy))
        self.assertIn("state: the text is empty; write it", self.refused("decide", ""))

    def test_simulates_failures(self):
        cluster = self.write("cluster.yaml", NODES)
        words = ["simulate", "--cluster", cluster, "--duration", "10d", "--load", "0.5", "--policy", "backfill", "--json"]
        calm = json.loads(self.done(*words))["replays"][0]
        failing = json.loads(self.done(*words, "--failures-per-day", "0.5", "--price", "2"))["replays"][0]
        self.assertEqual(calm["lost_device_s"], 0)
        self.assertGreater(failing["lost_device_s"], 0)
        self.assertAlmostEqual(failing["lost_money"], failing["lost_device_s"] / 3600 * 2)
        self.assertLess(failing["effective_share"], 1)

    def test_replays_failures_of_a_trace(self):
        trace, cluster = self.write("trace.csv", TRACE), self.write("cluster.yaml", NODES)
        faults = self.write("faults.csv", "node,start_d,end_d\n" + "".join(f"{node},0.05,0.06\n" for node in range(400)))
        words = ["replay", trace, "--cluster", cluster, "--failures", faults]
        replay = json.loads(self.done(*words, "--json"))["replays"][0]
        self.assertEqual(replay["failure_costs"]["failures"], 2)
        self.assertGreater(replay["failure_costs"]["undone_device_s"], 0)
        self.assertLess(replay["ettr"], 1)
        self.assertIn("2 failures of 2 nodes", self.done(*words).split("\n")[0])
        self.assertEqual(self.refused(*words, "--failures-from", "2d"),
                         f"{faults}: the trace is 1.44 h long and is to be replayed from 2 d on; give an earlier time")
        self.assertIn("give one of them", self.refused("simulate", "--cluster", cluster, "--failures", faults, "--failures-per-day", "1"))
        faults.write_text("node,start_d,end_d\n400,1,2\n")
        self.assertTrue(self.refused(*words).startswith(f"{faults}:2: "))

    def test_asks_for_the_gang_of_a_planned_job(self):
        request = self.done("request", EXAMPLES / "gpt3-175b.yaml", "--cluster", EXAMPLES / "a100-1024.yaml", "--queue", "research")
        self.assertIn("replicas_max: 128, devices: 8", request)
        cluster = f"cluster: {EXAMPLES / 'a100-1024.yaml'}\nqueues: [{{name: research}}]\n"
        state = self.write("state.yaml", cluster + request)
        decision = json.loads(self.done("decide", state, "--json"))
        self.assertEqual(len(decision["actions"][0]["replicas"]), 128)

    def test_refuses_bad_input_in_one_sentence(self):
        state = lambda text: self.write("state.yaml", NODES + text)
        job = "pending:\n  - {name: a, roles: [{devices: 8}]"
        self.assertEqual(self.refused("decide", self.folder / "none.yaml").split(":")[0], str(self.folder / "none.yaml"))
        for text, line, sentence in (
                ("pending: [{name: a, roles: [{device: 8}]}]\n", 3, "unknown key; did you mean 'devices'?"),
                (job + ", topology: {required: rack}}\n", 4, "'rack' is not one of server, leaf, group, cluster"),
                ("queues: [{name: a, parent: b}, {name: b, parent: a}]\n", 3, ""),
                ("queues: [{name: a, guaranteed: {gpus: -1}}]\n", 3, ""),
                (job + ", queue: x}\n", 4, ""),
                ("running:\n  - {name: a, roles: [{devices: 8}], replicas: [{node: n9}]}\n", 4,
                 "no node is called 'n9'"),
                ("running:\n  - {name: a, roles: [{devices: 1}], replicas: [{node: n0, devices: [9]}]}\n", 4,
                 "a replica on node n0 has device 9, and the node has 8, numbered from 0"),
                ("running:\n  - {name: a, roles: [{devices: 1, replicas: 3}], replicas: [{node: n0, devices: [0]}]}\n", 4,
                 "its role worker runs with 1 replica, and the gang has at least 3"),
                ("pending:\n  - {name: a, roles: [{name: x, devices: 8}, {name: x, cpus: 1}]}\n", 4,
                 "two roles are called x; give each a name of its own"),
                (job + ", waited: 5}\n", 4, "'5' has no unit; write it like 5s"),
                ("pending:\n  - {name: a, roles: [{cpus: 4000m}]}\n", 4, "'4000m' is not a number; write a number from 0 to 1000000 without a unit"),
                ("queues: [{name: q}]\n" + job + "}\n", 5, "queue: missing; name the queue in which the job waits"),
                (job + "}\n  - {name: a, roles: [{devices: 8}]}\n", 5, "another job has this name; give each a name of its own")):
            with self.subTest(text=text):
                error = self.refused("decide", state(text))
                self.assertTrue(error.startswith(f"{self.folder / 'state.yaml'}:{line}: "), error)
                self.assertIn(sentence, error)
        self.assertIn("no scheduling policy is called 'fair'", self.refused("decide", STATE, "--policy", "fair"))
        trace = self.write("trace.csv", "submit_s,duration_s,vc\n0,1,a\n")
        self.assertEqual(self.refused("replay", trace, "--cluster", STATE),
                         f"{trace}:1: no column 'num_gpus'; name the columns submit_s, duration_s, num_gpus, vc in the first line")
        self.assertIn(f"{trace}:1: no table of nodes has these columns;", self.refused("replay", self.write("jobs.csv", TRACE), "--cluster", trace))
        self.assertIn("is not pending; name one of pending", self.refused("why", STATE, "nobody"))
        self.assertEqual(self.refused("why", STATE, "finetun"), "job finetun: it is not pending; did you mean 'finetune'?")
        self.assertIn("job pretraining: it runs;", self.refused("why", STATE, "pretraining"))
        self.assertIn("--duration", self.refused("simulate", "--cluster", STATE, "--duration", "10"))
        self.assertIn("no job comes within 1h", self.refused("simulate", "--cluster", STATE, "--duration", "1h", "--run-time", "300d"))

    def test_refuses_two_outputs_that_are_one_file(self):
        trace, cluster = self.write("trace.csv", TRACE), self.write("cluster.yaml", NODES)
        real, link = self.folder / "real", self.folder / "link"
        link.symlink_to("real")
        for html, log in ((real, link), (link, real)):
            error = self.refused("replay", trace, "--cluster", cluster, "--html", html, "--log", log)
            self.assertEqual(error, f"--html and --log: both name {html}; name two files")
        self.assertFalse(real.exists())

    def test_names_what_a_job_that_never_fits_lacks(self):
        for job, lack in (
                ("roles: [{devices: 8}], device_types: [b200]", "no node has devices of type b200; the types are h100"),
                ("roles: [{devices: 16}]", "a replica takes 16 devices, and no node that it may use has more than 8 devices"),
                ("roles: [{devices: 8, replicas: 3}]", "it takes 24 devices, and the cluster has no more than 16 of one type")):
            state = self.write("state.yaml", NODES + f"pending: [{{name: a, {job}}}]\n")
            self.assertEqual(self.done("why", state, "a"), f"job a waits: {lack}\n")
            why = json.loads(self.done("why", state, "a", "--json"))
            self.assertEqual((why["cause"], why["detail"]), ("never_fits", lack))


if __name__ == "__main__":
    unittest.main()
