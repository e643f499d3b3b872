#!/usr/bin/env python3
"""Disks of the controller and of an agent that are full, read only, or fail to sync, under load: nothing that was acknowledged is lost, nothing
starts that is not noted, and all works again within 5 s of the disk's return. Each fault prints a line; exit status 1 with what is wrong, 77
where no file system can be mounted."""
import argparse
import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from platform_case import BIN, NO_ANSWER, Client, Platform, wait_until

SHIM = pathlib.Path(os.environ.get("REGATTA_FAULT_SHIM", BIN / "libregatta_fault_shim.so"))
HEAL_LIMIT = 5.0


class Disk:
    """An ext4 file system in a sparse file, which has room for the controller's reserve."""

    def __init__(self, image, folder, megabytes):
        self.image, self.folder = image, pathlib.Path(folder)
        with open(image, "wb") as file:
            file.truncate(megabytes << 20)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        self.folder.mkdir(parents=True)
        self.mount()

    def mount(self):
        subprocess.run(["mount", "-o", "loop", self.image, self.folder], check=True, capture_output=True)
        self.folder.chmod(0o700)

    def unmount(self):
        subprocess.run(["umount", self.folder], check=True)

    def fill(self):
        """To the last block."""
        with open(self.folder / "filler", "ab") as file:
            for size in (1 << 26, 1 << 20, 4096):
                while True:
                    try:
                        os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, size)
                    except OSError:
                        break

    def empty(self):
        (self.folder / "filler").unlink()

    def fail(self):
        """Read only at once, as ext4 does after an error of the device."""
        subprocess.run(["mount", "-o", "remount,abort", self.folder], check=True)

    def repair(self):
        self.unmount()
        subprocess.run(["fsck.ext4", "-y", self.image], capture_output=True)
        self.mount()


class Writer(threading.Thread):
    """Submits held jobs as fast as they are acknowledged."""

    def __init__(self, platform):
        super().__init__()
        self.client = Client(platform, timeout=3)
        self.statuses = collections.Counter()
        self.acknowledged, self.ends = [], threading.Event()

    def run(self):
        while not self.ends.is_set():
            try:
                status, answer = self.client.ask("POST", "/v1/jobs", {"name": "disk", "command": ["true"], "roles": [{"cpus": 0.01}], "hold": True})
            except NO_ANSWER:
                status = "no answer"
            self.statuses[status] += 1
            if status == 201:
                self.acknowledged.append((time.monotonic(), int(answer["id"])))
            else:
                time.sleep(0.02)


class DiskFaults:
    def __init__(self, folder):
        self.folder = folder
        self.said = []

    def expect(self, holds, sentence):
        if not holds:
            self.said.append(sentence)

    def platform(self, name, disk_of, megabytes):
        platform = Platform(f"{self.folder}/{name}", 1)
        self.disk = Disk(f"{self.folder}/{name}.img", platform.folder / disk_of, megabytes) if megabytes else None
        return platform

    def writers(self, platform):
        writers = [Writer(platform) for _ in range(3)]
        for writer in writers:
            writer.start()
        time.sleep(0.7)
        return writers

    def all_there(self, platform, writers, when):
        client = Client(platform)
        known = sum((writer.acknowledged for writer in writers), [])
        # The last ones, and a sample of the others.
        for _, number in known[-200:] + known[:: max(1, len(known) // 200)]:
            status, _ = client.insist("GET", f"/v1/jobs/{number}", limit=10)
            self.expect(status == 200, f"{when}: job {number} was acknowledged, and its status is {status}")

    def writes_again(self, platform, what):
        client, begin = Client(platform, timeout=3), time.monotonic()

        def accepted():
            try:
                return client.ask("POST", "/v1/jobs", {"name": "again", "command": ["true"], "roles": [{"cpus": 0.01}], "hold": True})[0] == 201
            except NO_ANSWER:
                return False
        wait_until(accepted, 30, f"{what}: writes are accepted")
        taken = time.monotonic() - begin
        self.expect(taken <= HEAL_LIMIT, f"{what}: writes were accepted after {taken:.1f} s")
        return taken

    def end(self, platform, writers):
        for writer in writers:
            writer.ends.set()
        for writer in writers:
            writer.join()
        return sum((writer.statuses for writer in writers), collections.Counter())

    def full(self):
        platform = self.platform("full", "controller", 640)
        writers = []
        try:
            platform.start_all()
            writers = self.writers(platform)
            self.disk.fill()
            time.sleep(2.5)
            # With a change under way that the disk has no room for, the reserve included, reads wait: to answer would be to tell of it.
            try:
                reads = Client(platform, timeout=2).ask("GET", "/v1/jobs?limit=1")[0] == 200
            except NO_ANSWER:
                reads = False
            if reads:
                self.all_there(platform, writers, "full disk")
            late = time.monotonic()
            time.sleep(0.5)
            self.expect(all(moment <= late for writer in writers for moment, _ in writer.acknowledged), "full disk: writes are accepted")
            platform.kill("controller")
            self.expect(platform.start_controller(), "full disk: a killed controller does not start")
            self.all_there(platform, writers, "full disk, after a kill")
            self.disk.empty()
            taken = self.writes_again(platform, "full disk")
            statuses = self.end(platform, writers)
            self.all_there(platform, writers, "full disk, after it")
            self.expect(set(statuses) <= {201, 507, "no answer"} and statuses[507], f"full disk: answers {dict(statuses)}")
            print(f"controller, full disk: reads {'were answered' if reads else 'waited'}; answers {dict(statuses)}; writes accepted {taken:.2f} s after there was space", flush=True)
        finally:
            self.end(platform, writers)
            platform.stop(remove=False)
            self.disk.unmount()

    def read_only(self):
        platform = self.platform("read-only", "controller", 640)
        writers = []
        try:
            platform.start_all()
            writers = self.writers(platform)
            self.disk.fail()
            late = time.monotonic() + 0.3
            time.sleep(1.5)
            ended = platform.processes["controller"].poll()
            self.expect(all(moment <= late for writer in writers for moment, _ in writer.acknowledged), "read-only disk: writes are accepted")
            if ended is None:
                self.all_there(platform, writers, "read-only disk")
                platform.kill("controller")
            else:
                self.expect(ended == 1, f"read-only disk: the controller ended with {ended}")
            begin = time.monotonic()
            if platform.start_controller():
                self.all_there(platform, writers, "read-only disk, started on it")
                platform.kill("controller")
            refused = time.monotonic() - begin
            self.disk.repair()
            self.expect(platform.start_controller(), "read-only disk: the controller does not start after the repair")
            taken = self.writes_again(platform, "read-only disk")
            statuses = self.end(platform, writers)
            self.all_there(platform, writers, "read-only disk, after the repair")
            print(f"controller, read-only disk: {'it went on' if ended is None else f'it ended with status {ended}'}, a start on it ended after "
                  f"{refused:.2f} s; answers {dict(statuses)}; writes accepted {taken:.2f} s after its start on the repaired disk", flush=True)
        finally:
            self.end(platform, writers)
            platform.stop(remove=False)
            self.disk.unmount()

    def sync_error(self):
        platform = self.platform("sync-error", "controller", 0)
        error = pathlib.Path(self.folder) / "sync-fails"
        platform.environments["controller"] = {"LD_PRELOAD": str(SHIM), "PROOF_SYNC_ERROR": str(error)}
        writers = []
        try:
            platform.start_all()
            writers = self.writers(platform)
            error.touch()
            late = time.monotonic() + 0.3
            time.sleep(1.5)
            ended = platform.processes["controller"].poll()
            self.expect(ended == 1, f"failing sync: the controller's exit status is {ended}")
            self.expect(all(moment <= late for writer in writers for moment, _ in writer.acknowledged), "failing sync: writes are accepted")
            if ended is None:
                platform.kill("controller")
            error.unlink()
            self.expect(platform.start_controller(), "failing sync: the controller does not start after it")
            taken = self.writes_again(platform, "failing sync")
            statuses = self.end(platform, writers)
            self.all_there(platform, writers, "failing sync, after it")
            print(f"controller, failing sync: it ended with status {ended}; answers {dict(statuses)}; writes accepted {taken:.2f} s after its "
                  "start", flush=True)
        finally:
            self.end(platform, writers)
            platform.stop(remove=False)

    def agent(self, fault):
        """A job is submitted while the agent's disk is full or its syncs fail: it does not start before it can be noted."""
        platform = Platform(f"{self.folder}/agent-{fault.replace(' ', '-')}", 1)
        name, error = platform.names()[0], pathlib.Path(self.folder) / "agent-sync-fails"
        disk = Disk(f"{self.folder}/agent-{fault}.img", platform.folder / name, 16) if fault == "full disk" else None
        platform.environments[name] = {"LD_PRELOAD": str(SHIM), "PROOF_SYNC_ERROR": str(error)}
        notes = pathlib.Path(self.folder) / f"notes-{fault.replace(' ', '-')}"
        try:
            platform.start_all()
            disk.fill() if disk else error.touch()
            status, job = Client(platform).insist("POST", "/v1/jobs", {
                "name": "disk", "command": ["/bin/sh", "-c", f"echo $REGATTA_ATTEMPT >> '{notes}'"], "roles": [{"cpus": 0.01}]})
            time.sleep(2.0)
            early, ended = notes.exists(), platform.processes[name].poll()
            self.expect(not early, f"agent, {fault}: the job was started")
            if ended is not None:  # the init system starts it again
                platform.restart(name)
            disk.empty() if disk else error.unlink()
            begin = time.monotonic()

            def is_over():
                if platform.processes[name].poll() is not None:
                    platform.restart(name)
                return Client(platform).ask("GET", f"/v1/jobs/{job['id']}")[1]["status"]["phase"] == "succeeded"
            wait_until(is_over, 60, f"agent, {fault}: the job has run")
            taken = time.monotonic() - begin
            self.expect(taken <= HEAL_LIMIT, f"agent, {fault}: the job had run after {taken:.1f} s")
            self.expect(len(notes.read_text().split()) == 1, f"agent, {fault}: attempts {notes.read_text().split()}")
            print(f"agent, {fault}: {'it went on' if ended is None else f'it ended with status {ended}'}; the job had run {taken:.2f} s after the "
                  "disk was well", flush=True)
        finally:
            platform.stop(remove=False)
            if disk:
                disk.unmount()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", nargs="*", help="some of: full read_only sync_error agent_full agent_sync (all)")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="regatta-proof-")
    proof = DiskFaults(folder)
    works = {"full": proof.full, "read_only": proof.read_only, "sync_error": proof.sync_error,
             "agent_full": lambda: proof.agent("full disk"), "agent_sync": lambda: proof.agent("failing sync")}
    try:
        Disk(f"{folder}/try.img", f"{folder}/try", 8).unmount()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"no file system can be mounted here: {error}")
        shutil.rmtree(folder)
        return 77
    for name in options.faults or works:
        works[name]()
    for sentence in proof.said[:20]:
        print(sentence)
    if proof.said:
        print(f"the logs are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
