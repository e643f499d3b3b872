#!/usr/bin/env python3
"""Submissions to a controller and to Slurm's slurmctld on the same machine and disk, one after the other in each round: held jobs, so that no job
runs. Starts munged, slurmctld and the controller as its own processes, with files below one folder. Needs slurmctld, munge and slurm-client."""
import argparse
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from platform_case import BIN, Platform, wait_until

SLURM_CONF = """\
ClusterName=proof
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={port}
SlurmdPort={agent_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
MaxJobCount=1000000
MaxArraySize=10001
SchedulerParameters=defer,max_rpc_cnt=150
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Slurm:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.processes = []
        for name in ("state", "spool"):
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o755)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self.start("munged", "-F", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munge.pid",
                   f"--log-file={self.folder}/munge.log", f"--seed-file={self.folder}/munge.seed")
        wait_until(lambda: (self.folder / "munge.socket").exists(), 10, "munged listens")
        conf = self.folder / "slurm.conf"
        conf.write_text(SLURM_CONF.format(folder=self.folder, host=socket.gethostname().split(".")[0], port=free_port(), agent_port=free_port()))
        self.environment = {**os.environ, "SLURM_CONF": str(conf)}
        self.start("slurmctld", "-D", "-c", "-f", conf)
        wait_until(lambda: subprocess.run(["sinfo"], env=self.environment, capture_output=True).returncode == 0, 30, "slurmctld answers")

    def start(self, *command):
        with open(self.folder / f"{command[0]}.out", "wb") as log:
            self.processes.append(subprocess.Popen([shutil.which(command[0], path=f"{os.environ['PATH']}:/usr/sbin"), *map(str, command[1:])],
                                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            process.wait()


def loop(command, threads, seconds, environment=None):
    """How often a second `command` ran well in so many loops."""
    counts, said, ends = [0] * threads, [], time.monotonic() + seconds

    def work(i):
        while time.monotonic() < ends:
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            if done.returncode:
                said.append(done.stderr)
                return
            counts[i] += 1
    begin = time.monotonic()
    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not said, said[0]
    return sum(counts) / (time.monotonic() - begin)


def line(name, rates, unit):
    print(f"{name}: median {statistics.median(rates):.0f} {unit} ({min(rates):.0f} to {max(rates):.0f})", flush=True)
    return statistics.median(rates)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loops", type=int, default=4, help="of sbatch and of `regatta submit` at once")
    options = parser.parse_args()
    if not all(shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") for name in ("munged", "slurmctld", "sbatch")):
        print("Slurm is not installed: packages slurmctld, slurm-client, munge")
        return 77
    folder = pathlib.Path(tempfile.mkdtemp(prefix="regatta-proof-"))
    folder.chmod(0o755)
    platform = Platform(folder / "platform", 0)
    slurm = None
    rates = {name: [] for name in ("sbatch", "array", "cli", "single", "batch")}
    try:
        platform.start_all()
        slurm = Slurm(folder / "slurm")
        job = folder / "job.yaml"
        job.write_text("name: bench\ncommand: ['true']\nroles: [{devices: 8}]\nhold: true\n")
        access = ["--server", f"https://127.0.0.1:{platform.port}", "--ca", folder / "platform/controller/ca.pem", "--token-file",
                  folder / "platform/controller/admin.token"]
        cli = [str(word) for word in [BIN / "regatta", "submit", job, *access]]
        bench = [BIN / "regatta-submissions", folder / "platform/controller", f"https://127.0.0.1:{platform.port}", "--seconds",
                 str(int(options.seconds))]
        sbatch = ["sbatch", "-H", "-p", "all", "-o", "/dev/null"]

        def measured(*more):
            text = subprocess.run([*bench, *more], check=True, capture_output=True, text=True).stdout
            print(text.strip(), flush=True)
            return float(re.search(r"([0-9]+) jobs/s", text)[1])
        for _ in range(options.rounds):
            rates["sbatch"].append(loop([*sbatch, "--wrap", "true"], options.loops, options.seconds, slurm.environment))
            rates["cli"].append(loop(cli, options.loops, options.seconds))
            rates["array"].append(100 * loop([*sbatch, "--array=0-99", "--wrap", "true"], options.loops, options.seconds, slurm.environment))
            rates["single"].append(measured("--clients", "64"))
            rates["batch"].append(measured("--clients", "16", "--batch", "100"))
        base = line(f"sbatch, {options.loops} loops", rates["sbatch"], "jobs/s")
        array = line(f"sbatch with arrays of 100, {options.loops} loops", rates["array"], "jobs/s")
        own = line(f"regatta submit, {options.loops} loops", rates["cli"], "jobs/s")
        single = line("POST /v1/jobs, 64 clients", rates["single"], "jobs/s")
        batch = line("POST /v1/jobs in batches of 100, 16 clients", rates["batch"], "jobs/s")
        print(f"ratios: command {own / base:.1f}, requests {single / base:.1f}, batches against arrays {batch / array:.1f}")
    finally:
        if slurm:
            slurm.stop()
        platform.stop(remove=False)
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
