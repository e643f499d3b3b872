#!/usr/bin/env python3
"""Fails when a tracked source differs from what clang-format makes of it; --fix writes it instead."""
import subprocess
import sys

import sources


def main(arguments):
    files = [str(name) for name in sources.tracked()]
    mode = ["-i"] if "--fix" in arguments else ["--dry-run", "-Werror"]
    done = subprocess.run(["clang-format", *mode, *files], cwd=sources.ROOT, check=False)
    if done.returncode == 0:
        print(f"format: {len(files)} files are as clang-format writes them")
    else:
        print("format: run tools/check_format.py --fix")
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
