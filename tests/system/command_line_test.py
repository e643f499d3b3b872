"""What a wrong command line is answered: one sentence that names the object and the remedy, exit status 2."""
import json
import os
import pathlib
import resource
import socket
import subprocess
import tempfile
import time
import unittest

import lab_case

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
JOB, CLUSTER = EXAMPLES / "job.yaml", EXAMPLES / "cluster.yaml"
PLAN = ["plan", JOB, "--cluster", CLUSTER]
GPU_JOB, GPU_CLUSTER = EXAMPLES / "gpt3-175b.yaml", EXAMPLES / "a100-1024.yaml"
GPU_PLAN = ["plan", GPU_JOB, "--cluster", GPU_CLUSTER]
RUN = ["run", JOB, "--cluster", CLUSTER]
LITTLE = "is less than one of the 2 MiB blocks in which a program gets memory; give 2MiB or more"
NO_CLUSTER = ("nowhere.yaml: no such file; check the path, or write a cluster file like examples/cluster.yaml, or with "
              "regatta fabric design --gpus N --out FILE")
STEPS = "is not a whole number from 1 to 1000000000"

CASES = [
    (["xylophone"], "there is no command 'xylophone'; choose one of topo, measure, plan, run, lab, heal, probe, rates, bench, coll, fabric, traffic, gpu, sched, up, down, join, "
                    "submit, jobs, job, logs, cancel, hold, release, why, nodes, cordon, drain, resume, queues, events, alerts, tenants, login, users, tokens, token, "
                    "backup, restore, completion, audit"),
    (["plna"], "there is no command 'plna'; did you mean 'plan'?"),
    (["--jsn"], "there is no option '--jsn'; choose one of --version, --help, -h"),
    (["bench"], "bench: a command is missing; choose one of coll"),
    (["lab"], "lab: a command is missing; choose one of up, down, ls, status, exec, fault"),
    (["lab", "list"], "lab: there is no command 'list'; choose one of up, down, ls, status, exec, fault"),
    (["lab", "fault", "brek"], "lab fault: there is no command 'brek'; choose one of down, slow, drop, swap, stop, kill, clear"),
    (["lab", "fault", "slow", "s0.nic0-leaf0"],
     "lab fault slow: RATE is missing; write it like: regatta lab fault slow LINK RATE"),
    (["lab", "down"], "lab down: name a lab or its cluster file, or give --all"),
    (["lab", "exec", "s0", "ls", "--all"], "lab exec: there is no option '--all'; put -- before the command that it belongs to"),
    (["lab", "up", "nowhere.yaml"], NO_CLUSTER),
    (["probe"], "probe: give a cluster file, or name a lab with --lab"),
    (["probe", CLUSTER, "--lab", "x"], f"--lab x: the lab has a cluster file of its own; leave out {CLUSTER}"),
    (["probe", "--lab", "x", "--wait", "3s"],
     "--wait: is for real servers, with --listen; probers of a lab start at once, so leave it out"),
    (["probe", "--lab", "x", "--period", "5"], "--period: '5' has no unit; write it like 5ms"),
    (["probe", "--lab", "x", "--listen", "0"], "--listen: is for real servers; give their cluster file instead of --lab"),
    (["probe", CLUSTER, "--transport", "rdma"],
     "--transport: servers of a lab have no RDMA devices; leave it out, or give --listen for real servers"),
    (["probe", CLUSTER, "--listen", "head-1:x"], "--listen head-1:x: give a host and a port, like gpu-1:7000"),
    (["probe", CLUSTER, "--listen", "99999"], "--listen 99999: there is no such port; give one up to 65535, like 27899"),
    (["probe", CLUSTER, "--listen", "unix:/none/x"], "--listen /none/x: no such file or directory; choose another path"),
    (["probe", CLUSTER, "--listen", "0", "--wait=-1s"], "--wait: '-1s' is not from 100 ms to 1 d; give one like 20s"),
    (["probe", CLUSTER, "--listen", "0", "--wait", "0s"], "--wait: '0s' is not from 100 ms to 1 d; give one like 20s"),
    (["probe", CLUSTER, "--listen", "0", "--wait", "nan"], "--wait: 'nan' is not a number with a unit of time; write it like 10s"),
    (["probe", CLUSTER, "--listen", "127.0.0.1:0", "--heal"],
     "--heal: name the healer's socket with --heal-socket, as regatta heal --socket has it"),
    (["probe", CLUSTER, "--period", "1ms"], "--period: '1ms' is not from 10 ms to 1 s; give one like 10ms"),
    (["probe", CLUSTER, "--duration", "0s"], "--duration: must be above 0, like 10s"),
    (["lab", "down", "nowhere.yaml"], NO_CLUSTER),
    (["heal"], "heal: name a lab with --lab, or give a cluster file"),
    (["heal", CLUSTER, "--lab", "x"], "heal: a cluster file and --lab name two fabrics; leave out the file to heal the lab, "
                                      "or --lab to heal switches by commands"),
    (["heal", "--lab", "x", "--clean", "0s"], "--clean: must be above 0, as in 5s"),
    (["heal", "--lab", "x", "--clean", "5"], "--clean: '5' has no unit; write it like 5s"),
    (["heal", "--lab", "x", "--clean", "soon"], "--clean: 'soon' is not a number with a unit of time; write it like 10s"),
    (["heal", "--lab", "x", "--return-command", "true"],
     "--return-command: is for the switches of a cluster file, and those of a lab need none; leave it out, or give a "
     "cluster file instead of --lab"),
    (["fabric", "watch", "--period", "20"], "--period: '20' has no unit; write it like 20ms"),
    (["traffic", "--duration", "50ms"],
     "--duration: '50ms' is not from 100 ms, ten times --period, to 10 min; give one like 10s"),
    (["heal", "nowhere.yaml"], NO_CLUSTER),
    (["heal", CLUSTER], "heal: the switches of a cluster file are reached by commands; give --withdraw-command, --return-command "
                        "and --socket, or name a lab with --lab"),
    (["heal", CLUSTER, "--socket", "s", "--withdraw-command", "x {link}", "--return-command", "y"],
     "command 'x {link}': {switch} is missing, so it cannot tell where to act; put it in"),
    (["topo", ""], "topo: CLUSTER: the text is empty; write it or leave it out"),
    (["topo", "a", "b"], "topo: 'b' is one argument too many; see regatta topo --help"),
    (["topo", CLUSTER, "--machine", "x"], "topo: CLUSTER excludes --machine; give one of them"),
    (["topo", JOB], f"{JOB}: this is a job file; give a cluster file here"),
    (["plan", CLUSTER, "--cluster", CLUSTER], f"{CLUSTER}: this is a cluster file; give a job file here"),
    (["plan"], "plan: JOB is missing; write it like: regatta plan JOB --cluster CLUSTER"),
    (["plan", JOB], "plan: --cluster is missing; write it like: regatta plan JOB --cluster CLUSTER"),
    (["plan", "replay", "x.csv"], "x.csv: no such file or directory; give a table of published runs"),
    (["plan", "replay", JOB], f"{JOB}: job: no set of published runs is called so, and a table of other runs has the columns "
                              "model, server, stack, gpus, mbs, gbs, precision; see docs/formats/runs.md"),
    (GPU_PLAN + ["--stack", "megatron-cor"],
     "--stack: there is no software stack 'megatron-cor'; write megatron-core, or choose one of "
     "megatron-deepspeed-fp16, megatron-deepspeed-2020, megatron-lm-2021, megatron-lm-2022, megatron-deepspeed-bf16, "
     "megatron-core, llama3-2024, nemo, megatron-bridge-dense, megatron-bridge, megatron-bridge-alltoall, "
     "megatron-bridge-graphs, fsdp, automodel, llm-foundry, deepspeed-zero3-fp16"),
    (GPU_PLAN + ["--strategy", "{tp: 7, micro_batch: 1}"], "tp 7 does not divide heads 96; choose a divisor of 96"),
    (GPU_PLAN + ["--strategy", "{tp: 8, pp: 2, dp: 32, cp: 1}"],
     "strategy: tp 8 x cp 1 x pp 2 x dp 32 cannot fill 1024 devices; the degrees must multiply to it, so leave one out "
     "to have it chosen; --servers 64 has a plan: tp8 pp2 dp32 mb6 recompute=none vp24 sp zero3, 36.8 s a step"),
    (GPU_PLAN + ["--constraint", "pp <= 2", "--constraint", "pp >= 4"],
     "no strategy of 1024 devices meets pp <= 2 and pp >= 4; leave a constraint out"),
    (GPU_PLAN + ["--objective", "cost"], "plan: --objective requires --sizes"),
    (GPU_PLAN + ["--sizes", "--frontier"], "plan: --frontier excludes --sizes; give one of them"),
    (["plan", JOB, "--cluster", CLUSTER, "--launch", "megatron"],
     f"--launch: {CLUSTER} has no GPUs, which megatron needs; leave it out, or start the job with regatta run"),
    (GPU_PLAN + ["--strategy", "{schedule: interleaved, stage_layers: [23, 25, 25, 23]}"],
     "stage_layers: no number above 1 divides all of them, so stages have no equal parts to interleave; choose "
     "multiples of 2, or schedule 1f1b"),
    (GPU_PLAN + ["--sizes", "--objective", "tme"], "plan: --objective: 'tme' is not known; did you mean 'time'?"),
    (GPU_PLAN + ["--sizes", "--steps", "9", "--within", "30"], "--within: '30' is not a time; write it like 30d or 12h"),
    (["plan", "diff", "a.json"], "plan diff: B is missing; write it like: regatta plan diff A B"),
    (["plan", "diff", "{tp: 8}", "{tp: 4}"],
     "plan diff: {tp: 8} is a strategy; say of what with --job JOB --cluster CLUSTER"),
    (["plan", "diff", JOB, JOB],
     f"{JOB}: no plan; write one with regatta plan JOB --cluster CLUSTER --json > plan.json"),
    (["plan", "what-if", GPU_JOB, "--cluster", GPU_CLUSTER],
     "plan what-if: nothing to compare; give another --cluster, or a change like --with nic_rate=800Gbps"),
    (["plan", "what-if", GPU_JOB, "--cluster", GPU_CLUSTER, "--with", "nicrate=8Gbps"],
     "--with nicrate=8Gbps: only nic_rate, nics, servers, uplink, server can change; did you mean nic_rate?"),
    (["plan", "what-if", GPU_JOB, "--cluster", GPU_CLUSTER, "--with", "servers=0"],
     "--with servers=0: write a whole number from 1 to 32768"),
    (["plan", "replay", "--row"], "plan replay: there is no option '--row'; did you mean '--rows'?"),
    (["plan", JOB, "--cluster"], "plan: --cluster needs a value; see regatta plan --help"),
    (PLAN + ["--cluster", "x"], "plan: --cluster is given twice; keep one"),
    (PLAN + ["--top", "0"], "plan: --top: '0' is not a whole number from 1 to 10000"),
    (PLAN + ["--json=x"], "plan: --json takes no value; write --json alone"),
    (RUN + ["--steps", "0"], "run: --steps: '0' " + STEPS),
    (RUN + ["--steps", "-3"], "run: --steps: '-3' " + STEPS),
    (RUN + ["--steps=2.5"], "run: --steps: '2.5' " + STEPS),
    (RUN + ["--steps", "99999999999"], "run: --steps: '99999999999' " + STEPS),
    (RUN + ["--sweep", "few"], "run: --sweep: 'few' is not a whole number from 1 to 1000"),
    (RUN + ["--stepz", "3"], "run: there is no option '--stepz'; did you mean '--steps'?"),
    (RUN + ["--strategy", "{zero: 3}"],
     "run: zero 3 is not yet executed by the training runtime; use zero 0, or plan for a cluster of GPUs"),
    (PLAN + ["--strategy", "{cp: 2}"], "no plan of gpt-small fits lab-4x2: cp 2 is not yet executed by the training "
                                       "runtime; use cp 1, or plan for a cluster of GPUs"),
    (["bench", "coll"], "bench coll: op is missing; write it like: regatta bench coll all_reduce"),
    (["bench", "coll", "all_reduce", "--go-round"],
     "--round-robin: it places ranks on the servers of a cluster; name one with --cluster"),
    (["bench", "coll", "all_reduce", "--vs", "gloo,gloo"], "--vs: gloo is named twice; name it once"),
    (["bench", "coll", "all_to_all", "--sizes", "4", "--ranks", "4"],
     "benchmark: all_to_all of 4 bytes has no element for each of 4 ranks; take at least 16 bytes"),
    (["bench", "coll", "all_reduce", "--sizes", "1K,,2K"],
     '--sizes: "1K,,2K" is no list of sizes from 4 to 4G and ranges; write one as 64M, several as 1K,1M, or every '
     "fourfold from the first to the last as 1K:64M"),
    (["coll", "explain"], "coll explain: op is missing; write it like: regatta coll explain all_reduce"),
    (["coll", "explain", "all_reduce", "--tuning", "missing.json"],
     "missing.json: no such file or directory; give --tuning a file that `regatta coll explain --save` wrote"),
    (["coll", "explain", "all_reduce", "--tuning", ""], "coll explain: --tuning: the text is empty; write it or leave it out"),
    (["coll", "explain", "all_reduce", "--save", "/proc/none/t.json"],
     "/proc/none: no such file or directory; choose another place with --save"),
    (["coll", "inspect", "missing.json"], "missing.json: no such file; give a flight file, a PID or a job"),
    (["fabric"], "fabric: a command is missing; choose one of design, check, simulate, ports, watch, report"),
    (["fabric", "design"], "fabric design: --gpus is missing; write it like: regatta fabric design --gpus N"),
    (["fabric", "design", "--gpus", "13"], "gpus 13 are no whole servers of 8; take 16"),
    (["fabric", "design", "--gpus", "0"],
     "fabric design: --gpus: '0' is no number of GPUs; write a whole one, like 1024"),
    (["fabric", "design", "--gpus", "8", "--chip", "0Gbps"], "--chip: 0Gbps carries nothing; take a rate like 51.2Tbps"),
    (["fabric", "design", "--gpus", "8", "--uplink", "0Gbps"], "--uplink: 0Gbps carries nothing; take a rate like 400Gbps"),
    (["fabric", "design", "--gpus", "8", "--chip", "51.2"],
     "--chip: '51.2' has no unit; write it like 400Gbps or 50GB/s"),
    (["fabric", "design", "--gpus", "8", "--preset", "aipd"],
     "fabric design: --preset: 'aipd' is not known; did you mean 'aipod'?"),
    (["fabric", "design", "--gpus", "600000"],
     "gpus 600000 make more than 32768 servers; take at most 262144"),
    (["fabric", "design", "--gpus", "99999999999"],
     "gpus 99999999999 make more than 32768 servers; take at most 262144"),
    (["fabric", "design", "--gpus", "1024", "--port", "60Tbps"],
     "port 60 Tbps does not fit a switch of 51.2 Tbps; take ports of 3.20 Tbps, or a chip of 960 Tbps"),
    (["fabric", "design", "--gpus", "1024", "--port", "7Gbps"],
     "port 7 Gbps: a switch of 51.2 Tbps would have 7314 ports, and no switch has more than 1024; take 50 Gbps or more, or a slower chip"),
    (["fabric", "design", "--gpus", "8", "--out", "/dev/full"],
     "/dev/full: no space left on device; choose another place with --out"),
    (["fabric", "design", "--gpus", "8", "--out", "/tmp"], "/tmp: is a directory; choose another place with --out"),
    (["fabric", "design", "--gpus", "8", "--out", "a.yaml", "--svg", "./a.yaml"],
     "--out and --svg: both name a.yaml; name two files"),
    (["fabric", "ports", CLUSTER, "--ring", "--out", CLUSTER], f"--out: {CLUSTER} is used already; choose another place"),
    (["topo", CLUSTER, "--svg", CLUSTER], f"--svg: {CLUSTER} is used already; choose another place"),
    (["traffic", "--html", "/dev/full"], "/dev/full: no space left on device; choose another place with --html"),
    (["heal", CLUSTER, "--withdraw-command", "true {switch} {link}", "--return-command", "true {switch} {link}", "--socket", "/proc/none/s"],
     "/proc/none/s: no such file or directory; choose another path for the socket"),
    (["fabric", "check"], "fabric check: CLUSTER is missing; write it like: regatta fabric check CLUSTER"),
    (["fabric", "check", CLUSTER, "--failures", "0"], "fabric check: --failures: '0' is not a whole number from 1 to 8"),
    (["fabric", "check", CLUSTER, "--failures", "1", "--seed", "3"],
     "--seed: sets are drawn only of two or more simultaneous failures; add --failures 2, or leave it out"),
    (["fabric", "check", CLUSTER, "--sets", "3"],
     "--sets: sets are drawn only of two or more simultaneous failures; add --failures 2, or leave it out"),
    (["fabric", "check", CLUSTER, "--routes", "nowhere.txt"], "nowhere.txt: no such file or directory; check the path"),
    (["fabric", "watch", "--device", "nosuch0"],
     "nosuch0: no network device is called so; see ip link for their names"),
    (["fabric", "watch", "--device", "lo"],
     "lo: its driver counts no pauses; name NICs whose driver does (mlx5, bnxt, ice, i40e) with --device, or give the "
     "counters of switches with --counters"),
    (["fabric", "watch", "--counters", "nowhere.csv"], "nowhere.csv: no such file or directory; name a file of counters"),
    (["fabric", "watch", "--counters", JOB],
     f"{JOB}:1: the first line must be the heading at_s,device,port,priority,up,queued_bytes,sent_packets,rx_pauses,"
     "rx_paused_us,received_packets,tx_pauses,tx_paused_us"),
    (["fabric", "watch", "--counters", "x", "--device", "lo"],
     "fabric watch: --device excludes --counters; give one of them"),
    (["fabric", "watch", "--period", "1us"], "--period: must be from 1ms to 10s, like 100ms"),
    (["fabric", "watch", "--storm-after", "1ms"], "--storm-after: must be from --period to 100s, like 0.2s"),
    (["fabric", "ports", CLUSTER],
     "fabric ports: name the pairs of NICs with --pairs FILE, --ring or --permutation"),
    (["fabric", "ports", CLUSTER, "--ring", "--permutation"],
     "fabric ports: --ring excludes --permutation; give one of them"),
    (["gpu", "oci-hok"], "gpu: there is no command 'oci-hok'; did you mean 'oci-hook'?"),
    (["gpu", "enroll", "a"], "gpu enroll: --cgroup is missing; write it like: regatta gpu enroll NAME --cgroup PATH"),
    (["gpu", "run", "--name", "a"], "gpu run: PROGRAM is missing; write it like: regatta gpu run --name NAME -- PROGRAM"),
    (["gpu", "run", "--name", "a", "--", ""], "PROGRAM: the text is empty; write the program's name after --"),
    (["gpu", "run", "--name", "", "--", "true"], "gpu run: --name: the text is empty; write a name of one letter or more"),
    (["gpu", "run", "--name", "a", "--memory", "", "--", "true"], "gpu run: --memory: the text is empty; write it or leave it out"),
    (["gpu", "run", "--name", "a", "--memory", "1KiB", "--", "true"], "--memory: 1 KiB " + LITTLE),
    (["gpu", "run", "--name", "a", "--memory", "-4GiB", "--", "true"], "--memory: -4 GiB " + LITTLE),
    (["gpu", "run", "--name", "a", "--gpu", "1", "--", "true"], "gpu run: --gpu requires --memory"),
    (["gpu", "run", "--name", "a", "--overcommit", "--lease", "60", "--", "true"],
     "--lease: '60' is not a time from 1s to 194d; write it like 60s or 5min"),
    (["gpu", "run", "--name", "a", "--memory", "0=4GiB", "--gpu", "1", "--", "true"],
     "--memory: '0=4GiB' names its GPUs itself; leave --gpu out"),
    (["gpu", "run", "--name", "a", "--memory", "1=4GiB", "--gpu", "0", "--", "true"],
     "--memory: '1=4GiB' names its GPUs itself; leave --gpu out"),
    (["gpu", "run", "--name", "a", "--memory", "4GiB", "--compute", "0.00001", "--", "true"],
     "--compute: '0.00001' is no percentage from 0.0001 to 100; write it like 30"),
    (["gpu", "daemon", "--link", "99999999999999999999GB/s"],
     "--link: 99999999999999999999GB/s is not between 1MB/s and 1000TB/s; give what a GPU's copies reach, like 25GB/s"),
    (["gpu", "daemon"] + ["--gpu", "1GiB"] * 17,
     "--gpu: is given 17 times, and a daemon has 16 GPUs at most; leave the others out"),
    (["gpu", "cdi", "--library", CLUSTER, "--preload", "/etc"], "--preload: /etc: is a folder; name the file in it"),
    (["gpu", "set", "", "--memory", "1GiB"],
     "gpu set: NAME: the text is empty; write the tenant's name; regatta gpu ps shows those that there are"),
    (["gpu", "pool", "ls"],
     "gpu pool ls: --servers is missing; write it like: regatta gpu pool --servers HOST:PORT,... --token-file PATH ls"),
    (["gpu", "pool", "run", "--servers", "a:7000", "--memory", "1GiB", "--", "true"],
     "gpu pool run: --token-file is missing; write it like: regatta gpu pool --servers HOST:PORT,... --token-file PATH run "
     "--memory SIZE -- PROGRAM"),
    (["gpu", "pool", "ls", "--tokenfile", "x"], "gpu pool ls: there is no option '--tokenfile'; did you mean '--token-file'?"),
    (["gpu", "top", "--interval", "0"], "gpu top: --interval: '0' is not a number above 0, at most 3600"),
    (["gpu", "drain", "--wait", "0"], "gpu drain: --wait: '0' is not a whole number from 1 to 1000000"),
    (["gpu", "drain", "--undo", "--wait", "3"], "gpu drain: --wait excludes --undo; give one of them"),
    (["gpu", "oci-hook", "--priority", "low"], "gpu oci-hook: --priority: 'low' is not known; choose one of high, normal"),
    (["gpu", "cdi", "--name", "a/b"],
     "--name: 'a/b': a device's name has letters, digits, and between them '-', '_' and '.'"),
    (["gpu", "cdi", "--library", "nowhere.so"],
     "--library: nowhere.so: no such file; give the path of libregatta_gpu.so"),
    (RUN + ["--compare", "magic"], "run: --compare: 'magic' is not known; write pure-dp"),
]


RATES = {"version": 1, "source": "measured", "shared_cores": False,
         "devices": {"cpu": {"matmul": [{"m": 64, "n": 64, "k": 64, "precision": "fp32", "rate_flops": 1e10}],
                             "pointwise": [], "copy_bandwidth_Bps": 4e9, "pointwise_bandwidth_Bps": 2e9,
                             "operator_overhead_s": 1e-5, "described_flops": 14.4e9}},
         "paths": [{"path": path, "latency_s": 5e-5, "bandwidth_Bps": rate, "described_Bps": rate}
                   for path, rate in (("same_server", 4e9), ("same_leaf", 25e6), ("same_group", 25e6))]}


class CommandLine(unittest.TestCase):
    def check(self, arguments, sentence):
        done = lab_case.regatta(*arguments)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (2, f"regatta: {sentence}\n", ""), arguments)

    def test_answers_in_one_sentence(self):
        for arguments, sentence in CASES:
            with self.subTest(arguments=arguments):
                self.check(arguments, sentence)

    def test_tells_which_lab_does_not_exist(self):
        for arguments in (["lab", "down", "no-such-lab"], ["lab", "status", "no-such-lab"],
                          ["heal", "--lab", "no-such-lab"], ["traffic", "--lab", "no-such-lab"],
                          ["lab", "exec", "--lab", "no-such-lab", "s0", "--", "true"]):
            done = lab_case.regatta(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, r"^regatta: lab no-such-lab: not up; [^\n]+\n$")

    def test_names_the_place_where_a_collector_cannot_listen(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            place = f"127.0.0.1:{other.getsockname()[1]}"
            done = lab_case.regatta("probe", CLUSTER, "--listen", place)
        self.assertEqual((done.returncode, done.stderr, done.stdout),
                         (1, f"regatta: --listen {place}: cannot listen there: address already in use; "
                             "choose an address of this machine and a free port\n", ""))

    def test_looks_at_places_before_it_starts(self):
        with tempfile.TemporaryDirectory() as folder:
            taken = pathlib.Path(folder, "taken")
            taken.touch()
            self.check(RUN + ["--out", taken], f"{taken}: file exists; choose another place with --out")
            self.check(RUN + ["--out", taken / "x"], f"{taken}: not a directory; choose another place with --out")
            missing = pathlib.Path(folder, "missing")
            self.check(["measure", CLUSTER, "--out", missing / "x.json"],
                       f"{missing}: no such file or directory; choose another place with --out")
            self.check(["measure", CLUSTER, "--out", folder], f"{folder}: is a directory; choose another place with --out")
            job = pathlib.Path(folder, "job.yaml")
            job.write_text(JOB.read_text().replace("/usr/share/common-licenses", "missing"))
            self.check(["run", job, "--cluster", CLUSTER],
                       f"job gpt-small: data.text: {missing}: no such file or folder; correct the path")

    def test_leaves_nothing_of_a_file_that_may_not_grow(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "cluster.svg")
            done = lab_case.regatta("topo", CLUSTER, "--svg", out,
                                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
            self.assertEqual((done.returncode, done.stderr),
                             (1, f"regatta: {out}: file too large; choose another place with --svg\n"))
            self.assertEqual(os.listdir(folder), [])

    def test_plans_what_it_cannot_run_yet(self):
        with tempfile.TemporaryDirectory() as folder:
            job, config = pathlib.Path(folder, "job.yaml"), pathlib.Path(folder, "config.json")
            job.write_text("name: small\nmodel: {from: config.json, seq: 64}\nglobal_batch: 8\n")
            self.check(["plan", job, "--cluster", CLUSTER],
                       f"{job}:2: model.from: {config}: no such file or directory; check the path")
            config.write_text(json.dumps({"model_type": "gpt2", "n_embd": 64, "n_head": 8, "n_layer": 8, "vocab_size": 512}))
            done = lab_case.regatta("plan", job, "--cluster", CLUSTER)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check(["run", job, "--cluster", CLUSTER], "run: data is missing; add data: {text: FILE} to the job")
            job.write_text(job.read_text() + "data: {text: .}\n")
            self.check(["run", job, "--cluster", CLUSTER],
                       "run: steps is missing; add steps: 100 to the job, or give --steps 100")
            onnx = pathlib.Path(folder, "model.onnx")
            job.write_text(job.read_text().replace("config.json", "model.onnx"))
            self.check(["plan", job, "--cluster", CLUSTER], f"{job}:2: model.from: {onnx}: no such file or directory; check the path")
            onnx.write_text("hello")
            self.check(["plan", job, "--cluster", CLUSTER],
                       f"{job}:2: model.from: {onnx}: no ONNX file, or cut off; export the model again")
            onnx.unlink()
            onnx.mkdir()
            self.check(["plan", job, "--cluster", CLUSTER], f"{job}:2: model.from: {onnx}: is no file; check the path")

    def test_names_a_folder_where_a_file_belongs(self):
        with tempfile.TemporaryDirectory() as folder:
            self.check(["topo", folder], f"{folder}: is a directory; check the path")
            self.check(["plan", folder, "--cluster", CLUSTER], f"{folder}: is a directory; check the path")
            cluster = pathlib.Path(folder, "c.yaml")
            cluster.write_text(CLUSTER.read_text())
            rates = pathlib.Path(folder, "c.measured.json")
            rates.mkdir()
            self.check(["plan", JOB, "--cluster", cluster],
                       f"{rates}: is a directory; remove it and run `regatta measure {cluster}` again")
            self.check(["measure", cluster], f"{rates}: is a directory; choose another place with --out")

    def test_warns_of_rates_of_another_description(self):
        with tempfile.TemporaryDirectory() as folder:
            cluster = pathlib.Path(folder, "c.yaml")
            pathlib.Path(folder, "c.measured.json").write_text(json.dumps(RATES))
            for change, complaint in (("", ""), ("15%", "device cpu was described as 14.4 GFLOPS, now as 48 GFLOPS"),
                                      ("200Mbps", "path same_leaf was described as 200 Mbps, now as 50 Mbps")):
                cluster.write_text(CLUSTER.read_text().replace(change or "none", "50%" if "%" in change else "50Mbps"))
                done = lab_case.regatta("plan", JOB, "--cluster", cluster)
                self.assertEqual(done.returncode, 0, done.stderr)
                warning = f"regatta: warning: {folder}/c.measured.json is out of date: {complaint}; run `regatta measure {cluster}` again\n"
                self.assertEqual(done.stderr, warning if complaint else "")

    def test_answers_for_the_other_programs(self):
        listen = ["--listen", "unix:/nonexistent/agent"]
        agent = [([], "--listen is missing"), (["--lisen", "x:7"], "there is no option '--lisen'"),
                 (listen + ["--port"], "there is no option '--port'"), (listen + ["--listen"], "--listen: 1 required TEXT missing")]
        cases = [("regatta-agent", arguments, problem + "; see regatta-agent --help") for arguments, problem in agent]
        cases += [("regatta-prober", arguments, problem) for arguments, problem in [
            ([], "give a cluster file and --server, or --plan"),
            ([CLUSTER], "--server is missing; name the server that this is"),
            ([CLUSTER, "--server", "s99"], "--server s99: is not in cluster lab-4x2; it has s0, s1, s2, s3"),
            ([GPU_CLUSTER, "--server", "x"],
             "--server x: is not in cluster a100-1024; it has s0, s1, s2, s3, s4, s5 and 122 others"),
            ([JOB, "--server", "s0"], f"{JOB}: this is a job file; give a cluster file here"),
            ([CLUSTER, "--sever", "s0"], "there is no option '--sever'; did you mean '--server'?"),
            ([CLUSTER, "--server"], "--server needs a value; see regatta-prober --help"),
            ([CLUSTER, "--server", ""], "--server: the text is empty; write it or leave it out"),
            ([CLUSTER, "--server", "s0", "--collector", "head-1:x"],
             "--collector head-1:x: give a host and a port, like gpu-1:7000"),
            ([CLUSTER, "--server", "s0", "--collector", "localhost:0"],
             "--collector localhost:0: nobody listens at port 0; give the port of regatta probe --listen, like localhost:27899"),
            ([CLUSTER, "--server", "s0", "--collector", ":7"], "--collector :7: names no host; write it like head-1:7"),
            ([CLUSTER, "--server", "s0", "--collector", "unix:/none/x"],
             "--collector unix:/none/x: there is no folder /none; make it, or name the socket where regatta probe --listen has it"),
            ([CLUSTER, "--server", "s0", "--collector", "no host"],
             "--collector no host: no host is called so; correct the name, or make it known in DNS or /etc/hosts"),
            ([CLUSTER, "--server", "s0", "--transport", "tcp"], "--transport: 'tcp' is not known; choose one of udp, rdma"),
            ([CLUSTER, "--server", "s0", "--period", "1ms"], "--period: '1ms' is not from 10 ms to 1 s; give one like 10ms"),
            ([CLUSTER, "--plan", "-"], f"--plan -: has all that {CLUSTER} would say; leave one of them out"),
            (["nowhere.yaml", "--server", "s0"], NO_CLUSTER),
            (["--plan", "nowhere"], "nowhere: no such file or directory; check the path"),
            (["--plan", "-"], "--plan -: plan of probes: line 1 is none of a plan of this version; "
                              "give the cluster file and --server instead")]]
        if (lab_case.BIN / "regatta-worker").exists():
            cases += [("regatta-worker", arguments, "give it one mode, train or measure; regatta-agent starts it")
                      for arguments in ([], ["tarin"], ["train", "twice"])]
        for program, arguments, sentence in cases:
            with self.subTest(program=program, arguments=arguments):
                done = subprocess.run([lab_case.BIN / program, *arguments], capture_output=True, text=True, timeout=20,
                                      stdin=subprocess.DEVNULL)
                self.assertEqual((done.returncode, done.stderr, done.stdout), (2, f"{program}: {sentence}\n", ""))

    def test_counts_plans_and_strategies(self):
        done = lab_case.regatta(*PLAN, "--strategy", "{tp: 8}")
        self.assertRegex(done.stdout, r"^job gpt-small on cluster lab-4x2: \d+ plans of 10 strategies evaluated, in [^;]+; rates: ")

    def test_refuses_to_run_or_measure_on_gpus_before_anything_starts(self):
        for command in (["run", GPU_JOB, "--cluster", GPU_CLUSTER], ["measure", GPU_CLUSTER]):
            begin = time.monotonic()
            done = lab_case.regatta(*command)
            self.assertLess(time.monotonic() - begin, 5)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, rf"^regatta: {command[0]}: cluster \S+ has GPUs \(a100-sxm4-80g\), and this build "
                                          "runs jobs on CPU devices only; predict the job with regatta plan ")

    def test_knows_the_words_help_and_version(self):
        for words, same in ((["help"], ["--help"]), (["help", "plan", "diff"], ["plan", "diff", "--help"]), (["version"], ["--version"])):
            done = lab_case.regatta(*words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout, lab_case.regatta(*same).stdout)
        self.check(["help", "plna"], "there is no command 'plna'; did you mean 'plan'?")

    def test_shows_no_more_of_the_frontier_than_top(self):
        done = lab_case.regatta(*GPU_PLAN, "--frontier", "--top", 2, "--json")
        found = json.loads(done.stdout)
        self.assertEqual((len(found["ranked"]), len(found["frontier"])), (2, 2))

    def test_fits_every_help_into_120_columns(self):
        def check(command):
            done = lab_case.regatta(*command, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            options = done.stdout.partition("\nExample")[0]  # an example is one line to copy
            self.assertLessEqual(max(map(len, options.splitlines())), 120, done.stdout)
            rest = done.stdout.partition("\nCommands:\n")[2].partition("\n\n")[0]
            for line in rest.splitlines():
                if line.startswith("  ") and line[2] != " ":
                    check([*command, line.split()[0]])
        check([])

    def test_has_an_example_in_every_help(self):
        faults = [["lab", "fault", kind] for kind in ("down", "slow", "drop", "stop", "kill", "clear")]
        labs = [["lab", name] for name in ("up", "down", "status", "exec", "fault")]
        for command in [[], ["topo"], ["measure"], ["plan"], ["run"], ["lab"], *labs, *faults]:
            done = lab_case.regatta(*command, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"Examples?:\n  regatta " + " ".join(command))
            self.assertLessEqual(max(map(len, done.stdout.splitlines())), 110, done.stdout)

    def test_explains_the_prober_as_it_does_its_own_commands(self):
        done = subprocess.run([lab_case.BIN / "regatta-prober", "--help"], capture_output=True, text=True, timeout=20)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\nUsage: regatta-prober \[CLUSTER\] \[OPTION...\]\n\nArguments:\n")
        self.assertIn("\nExample:\n  regatta-prober ", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 110, done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
