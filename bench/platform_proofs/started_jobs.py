"""Jobs that note their own starts and ends in a folder, so that no one needs to be believed about them."""
import pathlib
import random

# `set -C` opens with O_EXCL: a second start of a replica of an attempt is seen. The lock is held as long as a process of the replica lives:
# two replicas of one job at a time are seen, whatever their attempts.
SCRIPT = r"""
mark=$NOTES/$REGATTA_JOB.$REGATTA_ATTEMPT.$REGATTA_REPLICA
(set -C; : > $mark.start) 2> /dev/null || echo "$mark" >> $NOTES/double
exec 9> $NOTES/lock.$REGATTA_JOB.$REGATTA_REPLICA
flock -n 9 || echo "$mark" >> $NOTES/overlap
%s
sleep %.2f
: > $mark.end
exit %d
"""
ORPHAN = "setsid sh -c 'setsid sleep 300 & sleep 300' < /dev/null > /dev/null 2>&1 &"


class StartedJobs:
    def __init__(self, folder, seed):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.random = random.Random(seed)

    def spec(self, name, longest=1.0):
        draw = self.random
        script = SCRIPT % (ORPHAN if draw.random() < 0.1 else "", draw.random() * longest, 3 if draw.random() < 0.1 else 0)
        return {"name": name, "command": ["/bin/sh", "-c", script], "environment": {"NOTES": str(self.folder)},
                "roles": [{"replicas": draw.choice([1, 1, 2]), "devices": draw.choice([0, 1, 2, 4]), "cpus": 0.01, "memory": "1MiB"}],
                "restart": {"rule": "on_failure", "failures": 2, "pause": "0.1s"}}

    def problems(self, jobs):
        """What contradicts the final objects of all jobs, a sentence each."""
        said = []
        for name in ("double", "overlap"):
            path = self.folder / name
            if path.exists():
                said += [f"{name} start of {line}" for line in path.read_text().split()]
        for path in self.folder.glob("*.start"):
            job, attempt, _ = map(int, path.stem.split("."))
            if job not in jobs:
                said.append(f"{path.name}: no such job is known")
            elif attempt > jobs[job]["status"]["attempts"]:
                said.append(f"{path.name}: the job has {jobs[job]['status']['attempts']} attempts")
        for number, job in jobs.items():
            if job["status"]["phase"] != "succeeded":
                continue
            for replica in range(job["replicas"]):
                if not (self.folder / f"{number}.{job['status']['attempts']}.{replica}.end").exists():
                    said.append(f"job {number}: it is called succeeded, and replica {replica} has not ended well")
        return said

    def starts(self):
        return len(list(self.folder.glob("*.start")))

    def clear(self):
        for path in self.folder.iterdir():
            path.unlink()
