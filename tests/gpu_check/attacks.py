"""The parts about programs that try to get more than their tenant has (tests/attacks). What each got the device says: its
memory, as NVML counts it, and how many kernels an honest tenant had done meanwhile."""
import contextlib
import dataclasses
import json
import select
import subprocess
import sys
import time

from outcome import Failed, NotRun, end_process
from progress import Progress

MIB = 1 << 20
ROOM_MIB = 128  # of a quota beyond one context
SPIKE_MIB = 64  # that may be there for a moment, beside a context: a call that is undone
MEMORY_BUDGET_S = 45
TIME_BUDGET_S = 45
HALF = 50  # percent of its rate alone that an honest tenant has beside each attack on time
ONLY_ON_STAND_IN, DRIVER_LACKS_IT = 77, 90  # exit statuses of the programs

# A process outside of all tenants. It says where the driver is, then at each line how many bytes are in use, the most
# that were since the line before, and which processes have some.
WATCHER = """
import ctypes as c, os, select, sys
driver, nvml = c.CDLL('libcuda.so.1'), c.CDLL('libnvidia-ml.so.1')
def call(library, name, *arguments):
    result = getattr(library, name)(*arguments)
    if result != 0:
        sys.exit(f'{name} returned {result}')
bus, device, memory = c.create_string_buffer(32), c.c_void_p(), (c.c_ulonglong * 3)()
call(driver, 'cuInit', 0)
call(driver, 'cuDeviceGetPCIBusId', bus, 32, 0)
call(nvml, 'nvmlInit_v2')
call(nvml, 'nvmlDeviceGetHandleByPciBusId_v2', bus, c.byref(device))
def used():
    call(nvml, 'nvmlDeviceGetMemoryInfo', device, memory)
    total, free, used = memory
    return used
class Process(c.Structure):
    _fields_ = [('pid', c.c_uint), ('bytes', c.c_ulonglong), ('instances', c.c_uint * 2)]
def processes():
    count, all_of_them = c.c_uint(99), (Process * 99)()
    call(nvml, 'nvmlDeviceGetComputeRunningProcesses_v3', device, c.byref(count), all_of_them)
    return [f'{one.pid}:{one.bytes >> 20}MiB' for one in all_of_them[:count.value]]
print(next(line.split(maxsplit=5)[5].strip() for line in open('/proc/self/maps') if 'libcuda.so' in line), flush=True)
most = 0
while True:
    asked = select.select([0], [], [], 0.005)[0]
    now = used()
    most = max(most, now)
    if asked and not os.read(0, 1):
        break
    if asked:
        print(now, most, *processes(), flush=True)
        most = now
"""


@dataclasses.dataclass(frozen=True)
class MemoryAttack:
    what: str  # as the page says it
    words: str  # the program of tests/attacks, and its words
    fills: bool = True  # it takes all that it can get: if it got nothing, it was no attack
    contexts: int = 1  # that it has at the same time
    beyond_mib: int = 0  # which nobody can undo
    ends: bool = False  # by itself; others keep what they got


MEMORY = (
    MemoryAttack("cuMemAlloc", "take_memory libcuda.so.1 {wanted}"),
    MemoryAttack("the driver by its path", "take_memory {driver} {wanted}"),
    MemoryAttack("a plug-in with deep binding", "deepbind {plugin} {wanted}"),
    *(MemoryAttack(f"modules ({way})", f"modules {{count}} 8 {way}")
      for way in ("data", "data-ex", "fat", "file", "pipe", "hidden", "library", "library-file")),
    # The driver has loaded it when the hook meets it.
    MemoryAttack("modules (table of the runtime)", "modules {count} 8 table", beyond_mib=8),
    MemoryAttack("modules beside threads", "modules {count} 8 data 3"),
    MemoryAttack("small libraries", "modules {count} 1800 small-library"),
    MemoryAttack("one module of all", "modules 1 {wanted} data", fills=False),
    MemoryAttack("a library that was unloaded", "kept_library 60", fills=False, contexts=2),
    MemoryAttack("functions of before CUDA 4", "first_version", fills=False),
    MemoryAttack("sizes that wrap", "wrapping_sizes", fills=False),
    *(MemoryAttack(f"random program {seed}", f"random_program seed={seed} calls=60 quota_mib={{quota}} hidden=0", fills=False, contexts=3, ends=True)
      for seed in (1, 2, 3)),
)


@dataclasses.dataclass(frozen=True)
class TimeAttack:
    what: str
    words: str


TIME = (
    TimeAttack("short processes", "short_processes 20000000 1"),
    TimeAttack("two lengths in a beat", "launch_pattern every-8th-short"),
    TimeAttack("two lengths by chance", "launch_pattern coin-20us-2ms"),
    TimeAttack("graphs of two lengths", "launch_pattern graphs-of-two-lengths"),
    TimeAttack("eight processes", "many_processes 200000 8"),
    TimeAttack("no descriptors left", "no_descriptors 1000000 600000 leak"),
    TimeAttack("a kernel that never ends", "endless_kernel"),
)


class DeviceMemory:
    """Bytes in use on the device, by all processes."""

    def __init__(self, machine):
        self.process = machine.spawn([sys.executable, "-c", WATCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)
        self.driver = self.process.stdout.readline().strip()
        if not self.driver:
            raise NotRun("nothing says what the device has: " + self.process.stderr.read().strip().split("\n")[-1])

    def read(self):
        """Now, and the most since the last question."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        now, most, *self.processes = self.process.stdout.readline().split()
        return int(now), int(most)

    def now(self):
        return self.read()[0]


class Trial:
    """A daemon, and the attacks on it, one after the other, until the time for them is over."""

    def __init__(self, machine, ask, watch, budget_s):
        self.machine, self.ask, self.watch = machine, ask, watch
        self.end = time.monotonic() + budget_s
        self.number, self.tried = 0, 0
        self.seen, self.wrong = [], []
        # A real driver takes and keeps some memory of its own.
        self.slack = 0 if machine.stand_in else 32 * MIB

    def attempt(self, what, attack):
        try:
            if time.monotonic() > self.end:
                raise NotRun("no time was left")
            self.seen.append(f"{what} {attack()}")
            self.tried += 1
        except NotRun as why:
            self.seen.append(f"{what} not tried ({why})")
        except Failed as why:
            self.wrong.append(f"{what}: {why}")

    def command(self, words, **values):
        program, *rest = words.split()
        folder = self.machine.bin.parent / "tests" / "attacks"
        values.update(driver=self.watch.driver, plugin=folder / "libregatta_attack_deepbind_plugin.so")
        return ["env", f"TMPDIR={self.machine.folder}", folder / f"regatta-attack-{program}",
                *(word.format(**values) for word in rest)]

    @contextlib.contextmanager
    def tenant(self, words, memory_mib):
        """Gives the process and the tenant's name; then ends it, and nothing of it is left on the device and in the books."""
        self.number += 1
        name = f"attack{self.number}"
        before = self.watch.now()
        process = self.machine.tenant(self.ask, name, 50, words, memory=f"{memory_mib}MiB")
        try:
            yield process, name
        finally:
            end_process(process)
        self.wait_for_end(before, name)

    def wait_for_end(self, bytes_before, name=None):
        self.machine.wait_for(lambda: name not in self.used_bytes(), f"the end of {name} in the books", 10)
        left = 0
        def is_free():
            nonlocal left
            left = self.watch.now() - bytes_before
            return left <= self.slack
        try:
            self.machine.wait_for(is_free, "the memory of what has ended", 10)
        except Failed as why:
            raise Failed(f"{why}: {left / MIB:.0f} MiB too much, by {', '.join(self.watch.processes) or 'no process'}") from None

    def used_bytes(self):
        """Bytes in use by each tenant."""
        listing = json.loads(subprocess.run(self.ask("ps", "--json"), capture_output=True, text=True).stdout)
        return {tenant["name"]: sum(each["used_bytes"] for each in tenant["memory"]) for tenant in listing["tenants"]}

    def context_bytes(self):
        """What a program has that has a context and nothing else, and how much of it the hook counts."""
        words = self.command("take_memory libcuda.so.1 0")
        before = self.watch.now()
        process = self.machine.spawn(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for_line(process)
        whole = self.watch.now() - before
        end_process(process)
        self.wait_for_end(before)
        with self.tenant(words, whole // MIB + ROOM_MIB) as (process, name):
            wait_for_line(process)
            return whole, min(whole, self.used_bytes().get(name, 0))

    def outcome(self, begin):
        text = begin + ", ".join(self.seen)
        if self.wrong:
            raise Failed("; ".join(self.wrong + [text] * bool(self.seen)))
        if self.tried == 0:
            raise NotRun(text)
        return text


def check_alive(process):
    """Raises where a program ended otherwise than by having done all that it wanted."""
    if process.poll() in (None, 0):
        return
    output, errors = process.communicate(timeout=10)
    if process.returncode in (ONLY_ON_STAND_IN, DRIVER_LACKS_IT):
        raise NotRun(errors.strip().split("\n")[-1])
    raise Failed(f"exit status {process.returncode}: {(errors or output).strip()[-200:]}")


def wait_for_line(process, seconds=10):
    """Until a program says what it got, or its time is over."""
    readable = select.select([process.stdout], [], [], seconds)[0]
    if not readable or process.stdout.readline():
        return
    process.wait(timeout=seconds)  # it has closed its output
    check_alive(process)


def wait_for_exit(process, seconds=10):
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)
    check_alive(process)


def attack_memory(trial, attack, quota_mib, context, counted):
    # Compilers keep the sizes of a text's variables in 32 bits.
    wanted = min(3072, trial.machine.memory // MIB * 3 // 4)
    words = trial.command(attack.words, wanted=wanted, count=wanted // 8, quota=quota_mib)
    allowed = (quota_mib + attack.beyond_mib) * MIB + attack.contexts * (context - counted) + trial.slack
    before = trial.watch.now()
    with trial.tenant(words, quota_mib) as (process, name):
        (wait_for_exit if attack.ends else wait_for_line)(process)
        if not trial.machine.stand_in:
            time.sleep(0.2)  # NVML may be late
        held, most = (bytes_seen - before for bytes_seen in trial.watch.read())
        booked = trial.used_bytes().get(name, 0)
    text = f"{held / MIB:.0f} ({booked / MIB:.0f})"
    if held > allowed or most > allowed + context + SPIKE_MIB * MIB:
        raise Failed(f"{text}, for a moment {most / MIB:.0f}, of {quota_mib} MiB")
    if attack.fills and held < context + ROOM_MIB * MIB // 2:
        raise Failed(f"{text} of {quota_mib} MiB: it got too little to be an attack")
    return f"at most {most / MIB:.0f}" if attack.ends else text


def memory_part(machine):
    """Each with a quota of its own: what the device has for it, beside what the books say."""
    watch = DeviceMemory(machine)
    with machine.daemon("fixed") as ask:
        trial = Trial(machine, ask, watch, MEMORY_BUDGET_S)
        context, counted = trial.context_bytes()
        quota_mib = -(-context // MIB) + ROOM_MIB
        for attack in MEMORY:
            trial.attempt(attack.what, lambda: attack_memory(trial, attack, quota_mib, context, counted))
    return trial.outcome(f"MiB on the device (in the books), of a quota of {quota_mib} MiB: ")


def attack_time(trial, attack, memory_mib, context, honest):
    """Percent of its kernels a second alone that the honest tenant has."""
    before = trial.watch.now()
    with trial.tenant(trial.command(attack.words), memory_mib) as (process, _):
        trial.machine.wait_for(lambda: process.poll() is not None or trial.watch.read()[1] >= before + context // 2,
                               "its context")
        time.sleep(0.3)
        begin = time.monotonic()
        time.sleep(trial.seconds)
        end = time.monotonic()
        check_alive(process)
        if process.poll() == 0:
            raise NotRun(f"it ended by itself and said {process.stdout.read().strip()}")
        had = honest(begin, end)
    if had < HALF - trial.tolerance:
        raise Failed(f"{had:.1f} %; {trial.tolerance} points are allowed")
    return f"{had:.1f} %"


def time_part(machine):
    """Each beside one honest tenant with an equal part, that never waits."""
    solo = machine.solo_rate()
    watch = DeviceMemory(machine)
    memory_mib = machine.memory // MIB * 2 // 5
    with machine.daemon("fixed") as ask:
        trial = Trial(machine, ask, watch, TIME_BUDGET_S)
        trial.seconds, trial.tolerance = min(3, machine.seconds / 3), 15 if machine.stand_in else 3
        context, _ = trial.context_bytes()
        honest = machine.tenant(ask, "honest", 50, machine.words("kernels", seconds=10 * TIME_BUDGET_S),
                                memory=f"{memory_mib}MiB")
        progress = Progress(honest)
        machine.wait_for(lambda: len(progress.counts) > 2, "the honest tenant")
        for attack in TIME:
            trial.attempt(attack.what, lambda: attack_time(
                trial, attack, memory_mib, context, lambda begin, end: 100 * progress.rate(begin, end) / solo))
        time.sleep(1)  # the end of the last one may hold the device up
        trial.seen.append(f"its longest pause was {progress.longest_pause():.1f} s")
        end_process(honest)
    return trial.outcome("an honest tenant with half of the time had, of its rate alone, beside ")
