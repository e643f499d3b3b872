#!/usr/bin/env python3
"""Measures what the collectives must hold and prints it as Markdown rows for docs/benchmarks.md.

  bench/collectives.py [--build build/dev] [--rounds 3] [shared] [lab] [choice]

shared: between processes of this machine, beside the peers (scripts/peers.sh makes them).
lab:    between servers of an emulated cluster (bench/clusters), against what the links allow.
choice: the automatic choice beside every forced setting, on all of these.
Without a name all three. Takes about half an hour on two cores; run it as root on an otherwise idle
machine.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLUSTERS = ROOT / "bench" / "clusters"
# The payload share of TCP in frames of 1500 bytes, without the headers of Ethernet, IP and TCP.
PAYLOAD_SHARE = 1448 / 1514
GRID = "1K,64K,1M,16M,64M"
# Everything in real time priority, or another program on the machine decides the figures; not with
# more ranks than cores, where the waiting would stop the working.
PRIORITY = ["chrt", "-r", "10"]

TWO, FOUR = 2, 4


class Bench:
    def __init__(self, build):
        self.program = ROOT / build / "bin" / "regatta"

    def times(self, op, sizes, ranks, *more, priority=False):
        """By size: {contender: median seconds}, and the bound where one is known."""
        command = (PRIORITY if priority else []) + [
            str(self.program), "bench", "coll", op, "--sizes", sizes, "--ranks", str(ranks), "--json",
            *(str(word) for word in more)]
        print("+ " + " ".join(command), file=sys.stderr, flush=True)
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
        rows = {}
        for row in json.loads(done.stdout)["sizes"]:
            rows[row["bytes"]] = {name: cell["time_s"] for name, cell in row.items() if isinstance(cell, dict)}
            rows[row["bytes"]]["bound"] = row.get("bound_s", 0)
            if any(cell["wrong"] for cell in row.values() if isinstance(cell, dict)):
                sys.exit(f"{op}: wrong results")
        return rows


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


def time_text(seconds):
    return f"{1e6 * seconds:.3g} us" if seconds < 1e-3 else f"{1e3 * seconds:.3g} ms"


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def shared(bench, rounds):
    peers = ["--vs", "openmpi,mpich,gloo", "--rounds", rounds, "--batches", 5]
    print("\n| all_reduce | private | shared | best peer |\n|---|---|---|---|")
    for ranks in (TWO, FOUR):
        # MPICH with more ranks than cores never yields: it is left out there.
        names = peers if ranks == TWO else ["--vs", "openmpi,gloo", *peers[2:]]
        for size, cell in bench.times("all_reduce", GRID, ranks, *names, priority=ranks == TWO).items():
            best = min((cell[name], name) for name in ("openmpi", "mpich", "gloo") if name in cell)
            row(f"{ranks} ranks, {size_text(size)}",
                *(f"{time_text(cell[kind])} ({best[0] / cell[kind]:.2f}x)" for kind in ("private", "shared")),
                f"{time_text(best[0])} {best[1]}")
    eight = bench.times("all_reduce", "1K", 8, "--rounds", rounds)
    row("8 ranks, 1 KiB", *(time_text(cell["private"]) for cell in eight.values()), "", "")
    print("\n| 64 MiB beside OpenMPI | private | shared | OpenMPI |\n|---|---|---|---|")
    for ranks in (TWO, FOUR):
        for op in ("reduce_scatter", "all_gather", "all_to_all", "broadcast"):
            for cell in bench.times(op, "64M", ranks, "--vs", "openmpi", "--rounds", rounds, "--batches", 5,
                                    priority=ranks == TWO).values():
                row(f"{op}, {ranks} ranks",
                    *(f"{time_text(cell[kind])} ({cell['openmpi'] / cell[kind]:.2f}x)"
                      for kind in ("private", "shared")), time_text(cell["openmpi"]))


LAB_CASES = [("4 servers x 1", "four-servers.yaml", []), ("2 servers x 2", "two-by-two.yaml", []),
             ("2 servers x 2, go round", "two-by-two.yaml", ["--round-robin"]),
             ("one slow of 4", "one-slow-link.yaml", [])]


def lab(bench, rounds):
    print("\n| all_reduce of 64 MiB in a lab | time | of what the lines carry | of the payload in that |")
    print("|---|---|---|---|")
    for name, cluster, more in LAB_CASES:
        times, bound = [], 0
        for _ in range(rounds):
            for cell in bench.times("all_reduce", "64M", FOUR, "--cluster", CLUSTERS / cluster, *more,
                                    "--rounds", 1, "--batches", 3).values():
                times.append(cell["private"])
                bound = cell["bound"]
        time = statistics.median(times)
        row(name, f"{time:.3f} s ({min(times):.3f} to {max(times):.3f})", f"{100 * bound / time:.1f} %",
            f"{100 * bound / time / PAYLOAD_SHARE:.1f} %")


def forced_settings(is_lab, size):
    if not is_lab:
        chunks = ["256K", "512K", "1M", "2M"] if size >= 1 << 17 else ["2M"]
        return [["--chunk", chunk] for chunk in chunks]
    algorithms = ["exchange", "doubling"] if size <= 1 << 16 else []
    algorithms += ["halving", "double-tree", "ring", "hierarchical"]
    connections = [2, 8] if size >= 1 << 20 else [2]
    return [["--algorithm", algorithm, "--connections", count]
            for algorithm in algorithms for count in connections]


def choice(bench, rounds):
    print("\n| automatic all_reduce | automatic | best forced | with | automatic takes |\n|---|---|---|---|---|")
    places = [("2 ranks here", TWO, []), ("4 ranks here", FOUR, [])]
    places += [(name, FOUR, ["--cluster", CLUSTERS / cluster, *more]) for name, cluster, more in LAB_CASES]
    for name, ranks, where in places:
        is_lab = bool(where)
        for size in (1 << 10, 1 << 20, 1 << 24) if is_lab else (1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 26):
            settings = {"": []}
            for setting in forced_settings(is_lab, size):
                settings[" ".join(str(word) for word in setting)] = setting
            times = {key: [] for key in settings}
            for _ in range(rounds):
                for key, setting in settings.items():
                    timed = bench.times("all_reduce", str(size), ranks, *where, *setting, "--rounds", 1,
                                        "--batches", 3 if is_lab else 7)
                    times[key] += [cell["private"] for cell in timed.values()]
            medians = {key: statistics.median(values) for key, values in times.items()}
            best = min((value, key) for key, value in medians.items() if key)
            row(f"{name}, {size_text(size)}", time_text(medians[""]), time_text(best[0]), best[1],
                f"{100 * (medians[''] / best[0] - 1):+.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("parts", nargs="*", choices=["shared", "lab", "choice", []])
    given = parser.parse_args()
    bench = Bench(given.build)
    for part in given.parts or ["shared", "lab", "choice"]:
        {"shared": shared, "lab": lab, "choice": choice}[part](bench, given.rounds)


if __name__ == "__main__":
    main()
