"""The part about the driver's checkpoint calls: another process leaves the GPU as a whole and comes back as it was."""
import json
import subprocess
import sys

from outcome import Failed, NotRun

MIB = 1 << 20
ROUNDS = 3
# A helper as the daemon has them, which says what was free before, with the process away, and after, and how long each way took.
HELPER = """
import ctypes as c, json, sys, time
driver, pid, rounds = c.CDLL(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
def call(name, *arguments):
    result = getattr(driver, name)(*arguments)
    if result != 0:
        sys.exit(f"{name} returned {result}")
def free():
    room, whole = c.c_size_t(), c.c_size_t()
    call("cuMemGetInfo_v2", c.byref(room), c.byref(whole))
    return room.value
def state():
    value = c.c_int(-1)
    call("cuCheckpointProcessGetState", pid, c.byref(value))
    return value.value
if not hasattr(driver, "cuCheckpointProcessLock"):
    sys.exit(77)
context = c.c_void_p()
call("cuInit", 0)
call("cuCtxCreate_v2", c.byref(context), 0, 0)
timeout = (c.c_uint * 16)(10_000)
seen = []
for _ in range(rounds):
    one = {"before": free(), "states": [state()]}
    begin = time.monotonic()
    call("cuCheckpointProcessLock", pid, timeout)
    one["states"].append(state())
    call("cuCheckpointProcessCheckpoint", pid, None)
    one["out_s"] = time.monotonic() - begin
    one["states"].append(state())
    one["away"] = free()
    begin = time.monotonic()
    call("cuCheckpointProcessRestore", pid, None)
    one["states"].append(state())
    call("cuCheckpointProcessUnlock", pid, None)
    one["in_s"] = time.monotonic() - begin
    one["states"].append(state())
    one["after"] = free()
    seen.append(one)
print(json.dumps(seen))
"""


def checkpoint(machine):
    environment = dict(machine.environment, REGATTA_CUDA_LIBRARY=machine.library)
    held = 16 * MIB  # of memory of four kinds, and its context
    with subprocess.Popen([machine.bin / "standin_cuda_test", "--client", "hold", "0x55"], env=environment, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            told = process.stdout.readline()
            if not told.endswith(" 55 55 55 55\n"):
                raise Failed(f"the process that is to leave says: {told.strip() or 'nothing'}")
            done = subprocess.run([sys.executable, "-c", HELPER, machine.library, str(process.pid), str(ROUNDS)], env=environment,
                                  capture_output=True, text=True, timeout=300)
            if done.returncode == 77:
                raise NotRun("the driver has no checkpoint calls; they came with CUDA 12.8")
            if done.returncode != 0:
                raise Failed((done.stderr or done.stdout).strip()[-300:])
            rounds = json.loads(done.stdout)
            process.stdin.write("again\n")
            process.stdin.flush()
            again = process.stdout.readline()
        finally:
            process.kill()
    text = (f"out in {max(one['out_s'] for one in rounds):.2f} s, back in {max(one['in_s'] for one in rounds):.2f} s at most, "
            f"{min(one['away'] - one['before'] for one in rounds) // MIB} MiB free meanwhile")
    if any(one["states"] != [0, 1, 2, 1, 0] for one in rounds):
        raise Failed(f"{text}; its states were {[one['states'] for one in rounds]}")
    if any(one["away"] - one["before"] < held or abs(one["after"] - one["before"]) > 64 * MIB for one in rounds):
        raise Failed(f"{text}; free before, away and after: {[(one['before'], one['away'], one['after']) for one in rounds]}")
    if again != told:
        raise Failed(f"{text}; it had {told.strip()}, and {again.strip() or 'nothing'} afterwards")
    return f"{text}; addresses and contents as before, {ROUNDS} times"
