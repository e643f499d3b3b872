#!/usr/bin/env python3
"""Programs on GPUs of other servers over RDMA: in a guest with two soft-RoCE devices.

  gpu_rdma_test.py KERNEL_FOLDER PROGRAM_FOLDER DRIVER [COMMAND]

PROGRAM_FOLDER has regatta and its tests, DRIVER is the stand-in's libcuda.so.1. COMMAND in place of gpu_rdma.sh is for looking around.
"""
import glob
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
SKIPPED = 77
PROGRAMS = ["regatta", "regatta-gpu-host", "regatta-standin-device", "standin_cuda_test", "remote_bench", "remote_test"]
LIBRARIES = ["libregatta_gpu.so", "libregatta_gpu_remote.so"]
# Copies of all lengths, launches, streams, events, code; few enough for an emulated machine.
TESTS = ":".join([
    "CudaMemory.BringsBytes*", "CudaMemory.SetsWords*", "CudaMemory.GivesLarge*", "CudaStream.FindsKernels*", "CudaStream.LaunchesByA*",
    "CudaStream.WaitsForAnEvent*", "CudaCode.KeepsVariables*", "CudaCode.TakesParameters*"])
# MiB of a copy, and calls: of remote_bench. Figures to be written down want more of both.
BENCH = os.environ.get("REGATTA_REMOTE_BENCH", "1 50")


def main():
    kernel, folder, driver = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), str(pathlib.Path(sys.argv[3]).absolute())
    verbs = glob.glob("/usr/lib/*/libibverbs/librxe-*.so")
    if not verbs:
        print("skipped: there is no soft-RoCE driver of libibverbs: install ibverbs-providers")
        return SKIPPED
    command = sys.argv[4] if len(sys.argv) > 4 else (
        f". {HERE}/rdma.sh; remote_test --gtest_filter='RdmaRendezvousTest.*' --gtest_brief=1 --gtest_color=no || exit 1; "
        f"FOLDER={folder} DRIVER={driver} TESTS='{TESTS}' BENCH='{BENCH}' sh {HERE}/gpu_rdma.sh")
    arguments = ["--kernel", kernel, "--limit", "280", "--memory", "2048", "--file", "/etc/libibverbs.d/rxe.driver"]
    for name in ("rdma.sh", "gpu_rdma.sh"):
        arguments += ["--file", str(HERE / name)]
    for module in ("crc32_generic", "rdma_rxe", "veth", "rdma_ucm"):
        arguments += ["--module", module]
    for program in [str(folder / name) for name in PROGRAMS] + ["/usr/sbin/ip", "/usr/bin/rdma"]:
        arguments += ["--program", program]
    for path in [str(folder / name) for name in LIBRARIES] + [driver] + verbs + glob.glob("/usr/lib/*/libibverbs.so.1"):
        arguments += ["--library", path]
    return subprocess.run([sys.executable, str(HERE / "guest.py"), *arguments, command], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
