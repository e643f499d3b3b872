#!/usr/bin/env python3
"""Runs clang-tidy on every tracked source that the build compiles; any finding fails.

A source that passed is skipped while its preprocessed text, its flags and .clang-tidy stay the same.

    tools/check_tidy.py [--build FOLDER] [--seconds N] [FILE...]

--seconds stops starting new files after N seconds, says how many were left, and still fails on what
was found.
"""
import argparse
import concurrent.futures
import pathlib
import subprocess
import sys
import time

import sources

SETTINGS = (sources.ROOT / ".clang-tidy").read_bytes()


class Checker:
    def __init__(self, build, seconds):
        self.build = build
        self.flags = sources.compile_flags(build)
        self.cache = sources.PassedCache(build / "checks" / "tidy")
        self.end = time.monotonic() + seconds if seconds else None

    def preprocessed(self, path):
        """What clang-tidy would read; None when clang cannot preprocess it (the finding will say)."""
        flags = [flag for flag in self.flags[path] if flag not in ("-Werror", "-Wno-restrict")]
        command = ["clang++", *flags, "-E", str(path)]
        done = subprocess.run(command, cwd=self.build, capture_output=True, check=False)
        return done.stdout if done.returncode == 0 else None

    def check(self, path):
        """(path, output or "", "checked" | "unchanged" | "left")"""
        if self.end and time.monotonic() > self.end:
            return path, "", "left"
        text = self.preprocessed(path)
        key = self.cache.key(SETTINGS, " ".join(self.flags[path]), text or b"")
        if text is not None and self.cache.has(key):
            return path, "", "unchanged"
        command = ["clang-tidy", "-p", str(self.build), "--quiet", "--extra-arg=-Wno-unknown-warning-option",
                   str(path)]
        done = subprocess.run(command, cwd=sources.ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            return path, done.stdout + done.stderr, "checked"
        self.cache.add(key)
        return path, "", "checked"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=sources.ROOT / "build" / "dev")
    parser.add_argument("--seconds", type=float, default=0)
    options = parser.parse_args()
    build = options.build.resolve()
    if not (build / "compile_commands.json").exists():
        print(f"tidy: {build}/compile_commands.json is missing; run cmake --preset dev first")
        return 2
    checker = Checker(build, options.seconds)
    names = options.files or [sources.ROOT / name for name in sources.tracked(suffixes=(".cc",))]
    paths = [path.resolve() for path in names]
    known = [path for path in paths if path in checker.flags]
    with concurrent.futures.ThreadPoolExecutor(sources.workers()) as pool:
        results = list(pool.map(checker.check, known))
    failed = [(path, output) for path, output, _ in results if output]
    for path, output in failed:
        print(f"{path.relative_to(sources.ROOT)}:\n{output}")
    counts = {kind: sum(1 for result in results if result[2] == kind) for kind in ("unchanged", "left")}
    print(f"tidy: {len(known)} files, {len(failed)} with findings, {counts['unchanged']} unchanged, "
          f"{counts['left']} left for want of time, {len(paths) - len(known)} not in the build")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
