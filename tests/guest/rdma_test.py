#!/usr/bin/env python3
"""Tests over RDMA: in a guest with two soft-RoCE devices. Without a filter those of coll.

  rdma_test.py KERNEL_FOLDER TEST_PROGRAM [GTEST_FILTER]
"""
import glob
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
SKIPPED = 77
# Each kind of test once, with few enough ranks and bytes for an emulated machine.
FILTER = ":".join([
    "RdmaWorld.*", "Worlds/CollectiveTest.*/Rdma_n2_*", "Worlds/CollectiveTest.*/Rdma_n3_c1000",
    "Worlds/CollectiveTest.AllReduce*/Rdma_n4_c1048576", "Worlds/WorldTest.*", "Worlds/DeathTest.*",
    "Worlds/ShrinkTest.RepeatsTheCollective*"])


def main():
    kernel, test = sys.argv[1:3]
    tests = sys.argv[3] if len(sys.argv) > 3 else FILTER
    drivers = glob.glob("/usr/lib/*/libibverbs/librxe-*.so")
    if not drivers:
        print("skipped: there is no soft-RoCE driver of libibverbs: install ibverbs-providers")
        return SKIPPED
    library = glob.glob("/usr/lib/*/libibverbs.so.1")
    command = (f". {HERE}/rdma.sh; /bin/{pathlib.Path(test).name} --gtest_filter='{tests}' --gtest_brief=1 --gtest_color=no; "
               "status=$?; "
               "echo packets on the cable: $(cat /sys/class/net/rdma0/statistics/tx_packets); exit $status")
    arguments = ["--kernel", kernel, "--limit", "150", "--memory", "2048", "--file", str(HERE / "rdma.sh"),
                 "--file", "/etc/libibverbs.d/rxe.driver"]
    for module in ("crc32_generic", "rdma_rxe", "veth", "rdma_ucm"):
        arguments += ["--module", module]
    for program in (test, "/usr/sbin/ip", "/usr/bin/rdma"):
        arguments += ["--program", program]
    for path in drivers + library:
        arguments += ["--library", path]
    return subprocess.run([sys.executable, str(HERE / "guest.py"), *arguments, command], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
