#!/usr/bin/env python3
"""Fails when a source file is longer than 700 lines; prints the median and the 90th percentile."""
import statistics
import sys

import sources

LIMIT = 700
SUFFIXES = (".h", ".c", ".cc", ".py", ".sh", ".js", ".mjs", ".ts", ".tsx", ".css", ".proto", ".cmake")


def main():
    sizes = {name: len((sources.ROOT / name).read_text(errors="replace").splitlines())
             for name in sources.tracked(suffixes=SUFFIXES)}
    if not sizes:
        print("sizes: no source file found; run it inside the repository")
        return 1
    large = {name: size for name, size in sizes.items() if size > LIMIT}
    for name, size in sorted(large.items()):
        print(f"{name}: {size} lines; split it below {LIMIT}")
    ordered = sorted(sizes.values())
    percentile = ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]
    print(f"sizes: {len(ordered)} files, {sum(ordered)} lines, median {statistics.median(ordered):.0f}, "
          f"90th percentile {percentile}, longest {ordered[-1]}")
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main())
