"""`regatta traffic` beside a job in a lab: whose traffic it is, during what, its bursts, and its steps from flows alone."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

import lab_case

# Two groups of four leaves and four spines, each spine with two super-spines above.
THREE_TIERS = """\
name: {name}
server_types:
  one: {{devices: {{count: 1, type: cpu, cpu_share: 2%}}, intra: {{kind: shm}}, nics: {{count: 1, rate: 1Gbps}}}}
fabric: {{tiers: [leaf, spine, super-spine], servers_per_leaf: 1, spines: 4, uplink: 1Gbps, leaves_per_group: 4, super_spines: 8}}
servers: {{count: 8, type: one}}
"""
SEED = "/proc/sys/net/ipv4/fib_multipath_hash_seed"
# To the servers of the other group, from many ports.
SEND = """\
import socket, sys
here = int(sys.argv[1])
for port in range(20000, 20100):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("", port))
    for there in range(8):
        if (here < 4) != (there < 4):
            one.sendto(bytes(1000), (f"10.64.0.{2 * there}", 9))
"""


class Traffic(lab_case.LabCase):
    def test_maps_flows_to_the_job_and_finds_its_steps_without_being_told(self):
        self.job.write_text(self.job.read_text().replace("global_batch: 6", "global_batch: 24"))
        self.start()
        page = self.folder / "traffic.html"
        view = self.look(page)
        # Jobs inferred from flows alone are estimates: when other work disturbs the first sample, a second may be needed.
        for _ in range(2):
            if [group["jobs"] for group in view["inferred"]] == [["tiny"]] and abs(self.off(view["jobs"][0])) < 0.02:
                break
            view = self.look(page)
        self.check_steps(view["jobs"][0], view)
        self.check_short_look()

    def check_short_look(self):
        """It may find time in a part of a step, and three or four of them; neither is told."""
        done = lab_case.regatta("traffic", "--lab", self.name, "--duration", "300ms", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        job = json.loads(done.stdout.splitlines()[-1])["jobs"][0]
        self.assertIsNone(job["steps"])
        self.assertGreater(job["step_by_ranks_s"], 0.06)

    def look(self, page):
        done = lab_case.regatta("traffic", "--lab", self.name, "--duration", "8s", "--json", "--html", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        *lines, view = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertGreaterEqual(len(lines), 6)
        self.assertEqual({pair["job"] for line in lines for pair in line["pairs"]}, {"tiny"})
        self.assertEqual([job["job"] for job in view["jobs"]], ["tiny"])
        job = view["jobs"][0]
        self.assertEqual(job["ranks"], 3)
        ends = {f"rank {rank} (s{rank})" for rank in range(3)}
        self.assertEqual({(pair["from"], pair["to"]) for pair in job["pairs"]},
                         {(a, b) for a in ends for b in ends if a != b})
        for pair in job["pairs"]:
            self.check_pair(pair)
        self.assertIn("Job tiny", page.read_text())
        self.assertEqual(view["other_bytes"], 0)
        return view

    def check_pair(self, pair):
        """It carries an all_reduce once a step, which a second hides."""
        self.assertRegex(pair["operations"][0]["operation"], "^all_reduce of ")
        in_calls = sum(one["bytes"] for one in pair["operations"] if one["operation"])
        self.assertGreater(in_calls, 0.8 * pair["bytes"])
        self.assertGreater(pair["peak_Bps"], 1.5 * pair["peak_1s_Bps"])
        self.assertGreaterEqual(len(pair["bursts"]), 10)
        steps = [burst["step"] for burst in pair["bursts"] if burst["step"] is not None]
        self.assertEqual(steps, sorted(steps))
        self.assertGreater(len(set(steps)), 10)

    def off(self, job):
        """The step from the flows over that by the ranks, less 1; 1 where none was found."""
        return job["steps"]["step_time_s"] / job["step_by_ranks_s"] - 1 if job["steps"] is not None else 1

    def check_steps(self, job, view):
        """The step from the flows beside what the ranks wrote down."""
        self.assertEqual([group["jobs"] for group in view["inferred"]], [["tiny"]])
        self.assertIsNotNone(job["steps"])
        off = self.off(job)
        print(f"  step {1e3 * job['steps']['step_time_s']:.2f} ms from flows, {1e3 * job['step_by_ranks_s']:.2f} ms by the "
              f"ranks ({100 * off:+.2f} %), {100 * view['cost']:.2f} % of a core for 3 servers")
        # On a machine that does nothing else it is a few tenths of a per cent.
        self.assertLess(abs(off), 0.02)


class TwoJobs(lab_case.LabCase):
    """Two jobs at once in one lab, of two servers each or on the same three servers."""

    def start_jobs(self, devices_of):
        """`devices_of`: name of a job -> its devices. The steps are of different length."""
        done = lab_case.regatta("lab", "up", self.cluster)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(lab_case.regatta, "lab", "down", self.name)
        text = self.job.read_text()
        for batch, (name, devices) in zip((12, 36), devices_of.items()):
            job = self.folder / f"{name}.yaml"
            job.write_text(text.replace("name: tiny", f"name: {name}").replace("global_batch: 6", f"global_batch: {batch}")
                           .replace("dp: 3", f"dp: {len(devices)}") + f"placement: [{', '.join(devices)}]\n")
            run = lab_case.Run(job, "--cluster", self.cluster, "--no-report")
            self.addCleanup(self.end, run)
            self.assertTrue(run.wait_for_steps(), run.text())

    def look(self):
        done = lab_case.regatta("traffic", "--lab", self.name, "--duration", "8s", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def check_ranks(self, view, devices_of):
        """By the ranks' own records each byte has its job."""
        self.assertEqual({job["job"]: job["ranks"] for job in view["jobs"]}, {name: len(all) for name, all in devices_of.items()})
        self.assertEqual(view["other_bytes"], 0)
        for job in view["jobs"]:
            servers = {device.split("/")[0] for device in devices_of[job["job"]]}
            ends = {end.split("(")[1].rstrip(")") for pair in job["pairs"] for end in (pair["from"], pair["to"])}
            self.assertEqual(ends, servers)

    def check_inferred(self, devices_of, tries):
        """What flows alone tell is a guess: each of a few looks may fail where other work disturbs it."""
        told = []
        for _ in range(tries):
            view = self.look()
            self.check_ranks(view, devices_of)
            told.append(sorted(group["jobs"] for group in view["inferred"]))
            print(f"  inferred: {told[-1]}")
            if told[-1] == sorted([name] for name in devices_of):
                return
        self.fail(f"told {told}")

    def test_tells_jobs_on_different_servers_apart(self):
        self.cluster.write_text(self.cluster.read_text().replace("count: 3", "count: 4").replace("servers_per_leaf: 3",
                                                                                                 "servers_per_leaf: 4"))
        devices_of = {"one": ["s0/0", "s1/0"], "two": ["s2/0", "s3/0"]}
        self.start_jobs(devices_of)
        self.check_inferred(devices_of, 2)

    def test_tells_jobs_on_the_same_servers_apart(self):
        self.cluster.write_text(self.cluster.read_text().replace("devices: {count: 1,", "devices: {count: 2,"))
        devices_of = {"one": [f"s{i}/0" for i in range(3)], "two": [f"s{i}/1" for i in range(3)]}
        self.start_jobs(devices_of)
        self.check_inferred(devices_of, 3)


class Refuses(unittest.TestCase):
    def test_a_lab_that_is_not_up_and_times_out_of_range(self):
        for arguments, words in ((["--lab", "nowhere"], "nowhere"), (["--period", "1us"], "--period: '1us' is not from"),
                                 (["--duration", "1d"], "--duration: '1d' is not from"),
                                 (["--html", "/nowhere/a.html"], "--html")):
            done = lab_case.regatta("traffic", *arguments)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(words, done.stderr)


@unittest.skipUnless(os.path.exists(SEED), "the kernel's hash has no seed")
class Polarisation(unittest.TestCase):
    """Without a job: what switches carry says whether they hash alike."""
    def setUp(self):
        self.name = f"polar-{os.getpid()}"
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        cluster = pathlib.Path(folder.name) / "cluster.yaml"
        cluster.write_text(THREE_TIERS.format(name=self.name))
        done = lab_case.regatta("lab", "up", cluster)
        if done.returncode == 2 and "namespaces" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(lab_case.regatta, "lab", "down", self.name)

    def exec(self, node, *command):
        return [lab_case.BIN / "regatta", "lab", "exec", "--lab", self.name, node, "--", *command]

    def found(self):
        with subprocess.Popen([lab_case.BIN / "regatta", "traffic", "--lab", self.name, "--duration", "60s", "--json"],
                              stdout=subprocess.PIPE, text=True) as watch:
            watch.stdout.readline()  # it has begun
            senders = [subprocess.Popen(self.exec(f"s{i}", "python3", "-c", SEND, str(i))) for i in range(8)]
            self.assertEqual([sender.wait() for sender in senders], [0] * 8)
            watch.send_signal(signal.SIGINT)
            lines = watch.stdout.read().splitlines()
        self.assertEqual(watch.returncode, 0)
        return json.loads(lines[-1])["polarisation"]

    def test_tiers_that_hash_alike_are_found_by_their_counters(self):
        self.assertEqual(self.found(), [])
        for kind in ("leaf", "spine", "super"):
            for i in range(8):
                subprocess.run(self.exec(f"{kind}{i}", "sh", "-c", f"echo 7 > {SEED}"), check=True)
        found = self.found()
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], "^spines hash as leaves do: 8 uplinks are empty, as spine")


if __name__ == "__main__":
    unittest.main(verbosity=2)
