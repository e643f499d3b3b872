#!/usr/bin/env python3
"""Fails when a header does not compile alone, with the flags of the sources beside it.

A header that passed is skipped while its text, its flags and all it includes stay the same.

    tools/check_headers.py [BUILD_FOLDER]   (default build/dev; it needs compile_commands.json)
"""
import concurrent.futures
import pathlib
import subprocess
import sys

import sources

COMPILER = "c++"
# The source is one #include line on standard input: a header as the main file draws other warnings.
EXTRA = ["-Wno-unused-function", "-x", "c++", "-fsyntax-only"]


def dependencies(text):
    """The files of a make rule "x.o: a.h b.h \\ ..."."""
    return text.replace("\\\n", " ").partition(":")[2].split()


def fingerprint(files):
    parts = []
    for name in files:
        status = pathlib.Path(name).stat()
        parts.append(f"{name} {status.st_mtime_ns} {status.st_size}")
    return "\n".join(parts)


class Checker:
    def __init__(self, build):
        self.flags = sources.compile_flags(build)
        self.cache = sources.PassedCache(build / "checks" / "headers")

    def is_known(self, record, flags):
        """True when the record of the last pass still describes the files that the header reads."""
        if not record.exists():
            return False
        key, _, files = record.read_text().partition("\n")
        try:
            return key == self.cache.key(" ".join(flags), fingerprint(files.splitlines()))
        except OSError:
            return False

    def is_left_out(self, path):
        """True when sources beside it read it, and none of them is built here: a package of theirs is missing."""
        users = [source for source in path.parent.glob("*.cc") if f'{path.name}"' in source.read_text()]
        return bool(users) and all(source.resolve() not in self.flags for source in users)

    def check(self, name):
        """(name, output of the compiler or "", skipped)"""
        path = sources.ROOT / name
        flags = sources.flags_for(path, self.flags)
        record = self.cache.folder / self.cache.key(name)
        if self.is_known(record, flags):
            return name, "", True
        # -MD with -fsyntax-only makes the list of what was read in the same pass.
        rule = record.with_suffix(".d")
        command = [COMPILER, *flags, *EXTRA, "-MD", "-MF", str(rule), "-MT", "header", "-"]
        done = subprocess.run(command, input=f'#include "{path}"\n', cwd=sources.ROOT, capture_output=True,
                              text=True, check=False)
        if done.returncode:
            return name, done.stderr or "the compiler failed", False
        files = dependencies(rule.read_text())
        rule.unlink()
        key = self.cache.key(" ".join(flags), fingerprint(files))
        record.write_text(key + "\n" + "\n".join(files))
        return name, "", False


def main(arguments):
    build = pathlib.Path(arguments[0] if arguments else sources.ROOT / "build" / "dev").resolve()
    if not (build / "compile_commands.json").exists():
        print(f"headers: {build}/compile_commands.json is missing; run cmake --preset dev first")
        return 2
    checker = Checker(build)
    headers = sources.tracked(suffixes=(".h",))
    with concurrent.futures.ThreadPoolExecutor(sources.workers()) as pool:
        results = list(pool.map(checker.check, headers))
    failed = [(name, output) for name, output, _ in results if output]
    left_out = [name for name, _ in failed if checker.is_left_out(sources.ROOT / name)]
    failed = [(name, output) for name, output in failed if name not in left_out]
    for name, output in failed:
        print(f"{name}: does not compile alone\n{output}")
    if left_out:
        print(f"headers: left out, what reads them is not built here: {', '.join(map(str, left_out))}")
    skipped = sum(1 for _, _, is_skipped in results if is_skipped)
    print(f"headers: {len(headers)} compiled alone, {len(failed)} failed, {skipped} unchanged")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
