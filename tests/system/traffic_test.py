"""`regatta traffic` beside a job in a lab: whose traffic it is, during what, its bursts, and its steps from flows alone."""
import json
import unittest

import lab_case


class Traffic(lab_case.LabCase):
    def test_maps_flows_to_the_job_and_finds_its_steps_without_being_told(self):
        self.job.write_text(self.job.read_text().replace("global_batch: 6", "global_batch: 24"))
        self.start()
        page = self.folder / "traffic.html"
        view = self.look(page)
        # What flows alone tell of jobs is a guess: where other work disturbs the first, it may take another look.
        for _ in range(2):
            if [group["jobs"] for group in view["inferred"]] == [["tiny"]] and abs(self.off(view["jobs"][0])) < 0.02:
                break
            view = self.look(page)
        self.check_steps(view["jobs"][0], view)

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


class Refuses(unittest.TestCase):
    def test_a_lab_that_is_not_up_and_times_out_of_range(self):
        for arguments, words in ((["--lab", "nowhere"], "nowhere"), (["--period", "1us"], "--period: '1us' is not from"),
                                 (["--duration", "1d"], "--duration: '1d' is not from"),
                                 (["--html", "/nowhere/a.html"], "--html")):
            done = lab_case.regatta("traffic", *arguments)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
