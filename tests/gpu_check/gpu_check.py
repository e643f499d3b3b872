"""What a machine with a GPU is to prove of sharing it, part by part: each passes, fails, or says why it could not run.

gpu_check.py BUILD [--stand-in] [--seconds N] [--only PART,...] [--results FILE] [--log FILE]
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time

import attacks
import cuda_runtime
from checkpoint import checkpoint
from driver_tests import DriverTests
from outcome import Failed, NotRun, end_process, finish
from progress import counts_of, rate

MIB = 1 << 20
KERNEL_NS = 500_000  # of batch work
REQUEST_NS = 200_000
PART_LIMIT_S = 240  # a driver may hang, and with it what waits for a program's next line


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


class Machine:
    """A GPU, or one that stands in for it, and the programs of a build."""

    def __init__(self, build, stand_in, seconds, log=None):
        self.bin = build / "bin"
        self.seconds = seconds
        self.stack = contextlib.ExitStack()
        self.log = log or self.stack.enter_context(open(os.devnull, "w"))  # what daemons and failed tests say
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.environment = dict(os.environ)
        self.stand_in = stand_in
        self.quota_mib = 512 if stand_in else 4096  # a context alone takes some hundred MiB of a real GPU
        self.library = "libcuda.so.1"
        if stand_in:
            self.start_device(build / "tests" / "standin")
        self.device, self.driver, self.memory = self.describe()
        self.rounds_per_us = float(self.run([self.work, "calibrate"], 60))

    def start_device(self, driver):
        socket = self.folder / "device"
        self.spawn([self.bin / "regatta-standin-device", "--socket", socket, "--memory", "2GiB", "--context-memory", "16MiB"])
        self.wait_for(socket.exists, "the stand-in device")
        self.library = str(driver / "libcuda.so.1")
        self.environment.update(REGATTA_STANDIN=str(socket), LD_LIBRARY_PATH=str(driver))

    @property
    def work(self):
        return self.bin / "regatta-gpu-work"

    def spawn(self, words, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen([str(word) for word in words], env=self.environment, text=True, **options)
        self.stack.callback(end_process, process)
        return process

    def run(self, words, seconds):
        return finish(self.spawn(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE), seconds)

    @staticmethod
    def wait_for(condition, what, seconds=20):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise Failed(f"{what}: not there after {seconds} s")
            time.sleep(0.02)

    def describe(self):
        """Name, driver and bytes of the first GPU, as the driver says them."""
        code = ("import ctypes as c; d=c.CDLL('libcuda.so.1'); v=c.c_int(); n=c.create_string_buffer(99); b=c.c_size_t()\n"
                "r=d.cuInit(0) or d.cuDriverGetVersion(c.byref(v)) or d.cuDeviceGetName(n,99,0) or "
                "d.cuDeviceTotalMem_v2(c.byref(b),0)\n"
                "print(r, v.value, b.value, n.value.decode())")
        done = subprocess.run([sys.executable, "-c", code], env=self.environment, capture_output=True, text=True)
        words = done.stdout.split(maxsplit=3)
        if done.returncode != 0 or words[0] != "0":
            raise NotRun("no CUDA driver with a device: " + (done.stderr.strip().split("\n")[-1] or done.stdout.strip()))
        driver = f"CUDA {int(words[1]) // 1000}.{int(words[1]) % 1000 // 10}"
        with contextlib.suppress(OSError):
            found = re.search(r"Module(?: for \S+)?\s+([0-9.]+)", pathlib.Path("/proc/driver/nvidia/version").read_text())
            driver += f", {found.group(1)}" if found and not self.stand_in else ""
        return words[3].strip(), driver, int(words[2])

    def rounds(self, ns):
        return max(1, int(self.rounds_per_us * ns / 1000))

    def words(self, what, ns=KERNEL_NS, seconds=None):
        return [self.work, what, str(seconds or self.seconds), str(ns), str(self.rounds(ns))]

    @contextlib.contextmanager
    def daemon(self, policy, *words):
        """A daemon of this GPU; gives a function that runs `regatta gpu WORD`."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        socket = folder / "socket"
        process = self.spawn([self.bin / "regatta", "gpu", "daemon", "--state", folder / "state", "--socket", socket, "--policy",
                              policy, "--gpu", f"{self.memory // MIB}MiB", *words], stderr=self.log)
        def ask(word, *rest):
            return [self.bin / "regatta", "gpu", word, "--socket", socket, *rest]
        self.wait_for(lambda: subprocess.run(ask("policy"), capture_output=True).returncode == 0, "the daemon")
        try:
            yield ask
        finally:
            process.kill()
            process.wait()

    def tenant(self, ask, name, compute, words, *limits, memory=None):
        memory = memory or f"{self.quota_mib}MiB"
        return self.spawn(ask("run", "--name", name, "--memory", memory, "--compute", str(compute), *limits, "--", *words),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def counts(self, process):
        return counts_of(finish(process, 10 * self.seconds + 60))

    def solo_rate(self, what="kernels"):
        counts = self.counts(self.spawn(self.words(what), stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return rate(counts, counts[0][0] + 0.2, counts[-1][0])


def rates_together(machine, processes):
    """Kernels a second of each, in the time in which all of them worked."""
    all_counts = [machine.counts(process) for process in processes]
    begin = max(counts[0][0] for counts in all_counts) + 0.5
    end = min(counts[-1][0] for counts in all_counts)
    if end - begin < 0.5:
        raise Failed("the programs did not work at the same time")
    return [rate(counts, begin, end) for counts in all_counts]


def conformance(machine):
    nvml = str(pathlib.Path(machine.library).parent / "libnvidia-ml.so.1") if machine.stand_in else "libnvidia-ml.so.1"
    tests = DriverTests(machine.bin / "standin_cuda_test", machine.log,
                        dict(machine.environment, REGATTA_CUDA_LIBRARY=machine.library, REGATTA_NVML_LIBRARY=nvml))
    outcomes = tests.run_together(tests.names("*"))
    # An error that stays with a process fails what comes after it there.
    for name in [name for name, outcome in outcomes.items() if outcome not in ("passed", "skipped")]:
        outcomes[name] = tests.run_alone(name)
    if not outcomes:
        raise Failed("there are no tests")
    failed = [f"{name} ({outcome})" for name, outcome in outcomes.items() if outcome not in ("passed", "skipped")]
    said = list(outcomes.values())
    text = f"{said.count('passed')} tests passed, {said.count('skipped')} ask the stand-in device itself and were skipped"
    if failed:
        raise Failed(f"{text}; {len(failed)} failed: {', '.join(failed)}")
    return text


def collectives(machine):
    """Each test in a process of its own: some fork, after which a driver that was used before cannot be."""
    tests = DriverTests(machine.bin / "comm_test", machine.log, dict(machine.environment, REGATTA_TEST_CUDA=machine.library))
    outcomes = {name: tests.run_alone(name) for name in tests.names("Device*:CudaDriver*")}
    failed = [f"{name} ({outcome})" for name, outcome in outcomes.items() if outcome not in ("passed", "skipped")]
    passed = list(outcomes.values()).count("passed")
    if failed or passed == 0:
        raise Failed(f"of {len(outcomes)} tests of buffers in device memory failed: {', '.join(failed)}")
    return f"{passed} tests of buffers in device memory passed"


def quota(machine):
    """A program takes all it gets in pieces of 2 MiB."""
    with machine.daemon("fixed") as ask:
        process = machine.spawn(ask("run", "--name", "a", "--memory", f"{machine.quota_mib}MiB", "--compute", "50", "--",
                                    machine.bin / "regatta-test-cuda", "take", str(2 * MIB)), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = process.stdout.readline().strip()
        tenants = json.loads(subprocess.run(ask("ps", "--json"), capture_output=True, text=True).stdout)["tenants"]
        process.stdin.close()
        process.wait(timeout=60)
    found = re.fullmatch(r"(\d+), then 2", line)
    if not found or not 1 <= int(found.group(1)) <= machine.quota_mib // 2 or not tenants:
        raise Failed(f"of {machine.quota_mib} MiB it got: {line or 'nothing'}")
    return f"{found.group(1)} pieces of 2 MiB of a quota of {machine.quota_mib} MiB, context included, then out of memory"


def overhead(machine):
    """Alone, with the hook and without, in turns."""
    plain, hooked = [], []
    for _ in range(3):
        plain.append(machine.solo_rate())
        with machine.daemon("burst-weight") as ask:
            counts = machine.counts(machine.tenant(ask, "a", 100, machine.words("kernels")))
            hooked.append(rate(counts, counts[0][0] + 0.2, counts[-1][0]))
    loss = 100 * (1 - percentile(hooked, 0.5) / percentile(plain, 0.5))
    text = f"{loss:+.2f} % fewer kernels of {KERNEL_NS / 1000:.0f} us a second alone (medians of 3)"
    if loss > (15 if machine.stand_in else 3):
        raise Failed(text)
    return text


def shares(machine, what, parts, tolerance):
    with machine.daemon("fixed") as ask:
        rates = rates_together(machine, [machine.tenant(ask, f"t{part}", part, machine.words(what)) for part in parts])
    solo = machine.solo_rate(what)
    had = [100 * each / solo for each in rates]
    text = ", ".join(f"{each:.1f} % for {part} %" for each, part in zip(had, parts))
    if any(abs(each - part) > tolerance for each, part in zip(had, parts)):
        raise Failed(f"{text}; {tolerance} points are allowed")
    return text


def tenants_30_70(machine):
    return shares(machine, "kernels", [30, 70], 15 if machine.stand_in else 3)


def graphs_30(machine):
    return shares(machine, "graphs", [30], 15 if machine.stand_in else 3)


def storm(machine):
    """Processes that take and give memory are killed at random; then everything is free again."""
    deaths = 20 if machine.stand_in else int(100 * machine.seconds)
    with machine.daemon("fixed") as ask:
        process = machine.spawn(ask("run", "--name", "a", "--memory", "300MiB" if machine.stand_in else "16GiB", "--compute",
                                    "100", "--", machine.bin / "regatta-test-cuda", "storm", "8", str(deaths)),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        last = ""
        for line in process.stdout:
            if line.startswith("step "):
                process.stdin.write("\n")
                process.stdin.flush()
            else:
                last = line.strip()
        if process.wait(timeout=60) != 0:
            raise Failed(f"exit status {process.returncode}: {last}")
        def used():
            tenants = json.loads(subprocess.run(ask("ps", "--json"), capture_output=True, text=True).stdout)["tenants"]
            return [tenant["name"] for tenant in tenants]
        machine.wait_for(lambda: not used(), "the end of the tenant in the books")
    return f"{deaths} killed; {last}; the books were empty afterwards"


def inference(machine):
    """Requests of one tenant, alone and beside another's batch work."""
    alone = [float(word) for word in machine.run(machine.words("requests", REQUEST_NS), 10 * machine.seconds + 60).split()]
    with machine.daemon("burst-weight") as ask:
        batch = machine.tenant(ask, "batch", 30, machine.words("kernels", seconds=machine.seconds + 2))
        time.sleep(1)
        serve = machine.tenant(ask, "serve", 70, machine.words("requests", REQUEST_NS), "--priority", "high")
        beside = [float(word) for word in finish(serve, 10 * machine.seconds + 60).split()]
        finish(batch, 10 * machine.seconds + 60)
    text = ", ".join(f"p{round(100 * part)} {percentile(beside, part):.0f} us beside batch, {percentile(alone, part):.0f} us alone"
                     for part in (0.5, 0.99))
    if percentile(beside, 0.5) > percentile(alone, 0.5) + (20000 if machine.stand_in else 3 * KERNEL_NS / 1000):
        raise Failed(text)
    return text


def has_option(machine, word, option):
    return option in subprocess.run([machine.bin / "regatta", "gpu", word, "--help"], capture_output=True, text=True).stdout


def swap(machine):
    """Two tenants, each with three quarters of the GPU's memory."""
    if not has_option(machine, "run", "--overcommit"):
        raise NotRun("this build has no --overcommit")
    pieces = machine.memory * 3 // 4 // (64 * MIB)
    with machine.daemon("fixed", "--host-memory", f"{2 * machine.memory // MIB}MiB") as ask:
        def start(name):
            return machine.spawn(ask("run", "--name", name, "--overcommit", "--memory", f"{machine.memory * 3 // 4 // MIB}MiB",
                                     "--compute", "50", "--", machine.bin / "regatta-test-cuda", "take", str(64 * MIB)),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        both = [start("a"), start("b")]
        lines = [process.stdout.readline().strip() for process in both]
        for process in both:
            process.stdin.close()
            process.wait(timeout=120)
    got = [int(line.split(",")[0]) if "," in line else 0 for line in lines]
    if any(each < pieces - 8 for each in got):
        raise Failed(f"of {pieces} pieces of 64 MiB each they got {got[0]} and {got[1]}")
    return f"{got[0]} and {got[1]} pieces of 64 MiB at once, {100 * 64 * MIB * sum(got) / machine.memory:.0f} % of the GPU's memory"


def pytorch(machine):
    code = "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 3)"
    status = subprocess.run([sys.executable, "-c", code], env=machine.environment, capture_output=True).returncode
    if status == 1:
        raise NotRun("python3 has no torch")
    if status != 0:
        raise NotRun("torch finds no GPU here" + (": the stand-in driver runs no compiled kernels" if machine.stand_in else ""))
    code = ("import torch\nx=torch.randn(4096,4096,device='cuda')\nfor _ in range(50): y=x@x\ntorch.cuda.synchronize()\n"
            "assert torch.isfinite(y).all()\nfree,total=torch.cuda.mem_get_info()\nprint(total)\n"
            "try:\n torch.empty(8<<30,dtype=torch.uint8,device='cuda'); print('too much')\n"
            "except torch.OutOfMemoryError: print('out of memory')")
    with machine.daemon("fixed") as ask:
        lines = finish(machine.tenant(ask, "torch", 100, [sys.executable, "-c", code], memory="4GiB"), 300).split("\n")
    if lines[:2] != [str(4 << 30), "out of memory"]:
        raise Failed(f"it saw {lines[:2]}")
    return "50 products of matrices, sees 4 GiB, and is refused 8 GiB"


def channels(machine):
    """Time slices of a channel group, by the tenant's own file descriptor."""
    if not pathlib.Path("/dev/nvidiactl").exists():
        raise NotRun("there is no /dev/nvidiactl" + (": the stand-in has no kernel driver" if machine.stand_in else ""))
    raise NotRun("no part of this build sends controls to channels yet")


PARTS = {"conformance": conformance, "collectives": collectives, "quota": quota, "overhead alone": overhead,
         "two tenants 30/70": tenants_30_70, "graphs at 30 %": graphs_30, "SIGKILL storm": storm,
         "inference beside batch": inference, "swap": swap, "checkpoint": checkpoint, "PyTorch under the hook": pytorch,
         "CUDA runtime under the hook": cuda_runtime.part, "attacks on memory": attacks.memory_part,
         "attacks on time": attacks.time_part, "channel controls": channels}


def end_part(*_):
    raise Failed(f"did not end within {PART_LIMIT_S} s")


@contextlib.contextmanager
def part_of(machine, name):
    """For so long a part may take; what it has started ends with it."""
    machine.log.write(f"== {name}\n")
    machine.log.flush()
    whole, handler = machine.stack, signal.signal(signal.SIGALRM, end_part)
    try:
        with contextlib.ExitStack() as machine.stack:
            signal.alarm(PART_LIMIT_S)
            try:
                yield
            finally:
                signal.alarm(0)
    finally:
        machine.stack = whole
        signal.signal(signal.SIGALRM, handler)


def run_parts(machine, names):
    rows = []
    for name in names:
        begin = time.monotonic()
        try:
            with part_of(machine, name):
                row = (name, "passed", PARTS[name](machine))
        except NotRun as why:
            row = (name, "not run", str(why))
        except Failed as why:
            row = (name, "failed", str(why))
        except (OSError, subprocess.SubprocessError, ValueError, IndexError, KeyError) as error:
            row = (name, "failed", f"{type(error).__name__}: {error}")
        row = tuple(re.sub(r"\s+", " ", cell) for cell in row)
        rows.append(row)
        print(f"{row[0]}: {row[1]}: {row[2]} ({time.monotonic() - begin:.0f} s)", flush=True)
    return rows


def render(rows, where):
    """The page of the results."""
    lines = ["# What a real GPU showed", "", "Written by `scripts/gpu-check.sh`. A part that could not run says why.", "", where, "",
             "| part | outcome | what was seen |", "|---|---|---|"]
    return "\n".join(lines + ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--stand-in", action="store_true")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--log", type=argparse.FileType("w"))
    options = parser.parse_args()
    names = options.only.split(",")
    unknown = [name for name in names if name not in PARTS]
    if unknown or (options.stand_in and options.results):
        parser.error(f"{unknown[0]}: no such part; there are {', '.join(PARTS)}" if unknown else
                     "--results: only of a real GPU; leave it out with --stand-in")
    try:
        machine = Machine(options.build.resolve(), options.stand_in, options.seconds, options.log)
    except NotRun as why:
        print(f"not run: {why}")
        return 77
    except Failed as why:
        print(f"failed: {why}")
        return 1
    with machine.stack:
        rows = run_parts(machine, names)
        where = f"{datetime.date.today()}, {machine.device} ({machine.memory // MIB} MiB), {machine.driver}, Linux {platform.release()}."
        where += f" Programs worked for {machine.seconds:g} s each."
    if options.results:
        options.results.write_text(render(rows, where))
    return 1 if any(row[1] == "failed" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
