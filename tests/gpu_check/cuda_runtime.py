"""A program of the CUDA runtime library as a tenant: NVIDIA's on a real driver, one of our own on the stand-in."""
import re
import subprocess

from outcome import Failed, NotRun

QUOTA_MIB = 1024
PIECE = 16 << 20
LAUNCHES = 106  # that the program makes outside of captures


def part(machine):
    build = machine.bin.parent
    # Where the machine has none of its own: the one that scripts/cuda-runtime.sh fetched.
    folder = build / "tests" / "cudart" if machine.stand_in else build / "third_party" / "cuda-runtime"
    path = f"{machine.environment.get('LD_LIBRARY_PATH', '')}:{folder}".strip(":")
    with machine.daemon("fixed") as ask:
        process = machine.tenant(ask, "a", 100, ["env", f"LD_LIBRARY_PATH={path}", machine.bin / "regatta-test-cudart"],
                                 memory=f"{QUOTA_MIB}MiB")
        try:
            output, errors = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            raise Failed("the program did not end within 120 s") from None
    lines = output.strip().split("\n")
    if process.returncode == 77:
        raise NotRun(lines[-1].removeprefix("not run: "))
    saw = re.match(r"runtime (\d+), total (\d+), free (\d+)$", lines[0])
    took = re.search(r"^took (\d+) pieces of \d+, then 2$", output, re.MULTILINE)
    if process.returncode != 0 or not saw or not took:
        raise Failed(f"exit status {process.returncode}: {(output + errors).strip()[-300:]}")
    pieces = int(took.group(1))
    if int(saw.group(2)) != QUOTA_MIB << 20 or not 0 < pieces * PIECE <= int(saw.group(3)):
        raise Failed(f"of {QUOTA_MIB} MiB it saw {saw.group(2)} bytes and took {pieces} pieces of 16 MiB")
    if f"launches: {LAUNCHES} held" not in lines:
        raise Failed(f"of {LAUNCHES} launches: {lines[-2]}")
    return (f"library {saw.group(1)}: it sees {QUOTA_MIB} MiB, gets {pieces} pieces of 16 MiB, then cudaErrorMemoryAllocation; "
            f"{LAUNCHES} launches passed the gate")
