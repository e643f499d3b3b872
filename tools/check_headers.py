#!/usr/bin/env python3
"""Fails when a header does not compile alone, with the flags of the sources beside it.

A header that passed is skipped while its text, its flags and all it includes stay the same. With
ccache, what another checkout has compiled before costs little.

    tools/check_headers.py [BUILD_FOLDER]   (default build/dev; it needs compile_commands.json)
"""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

import sources

COMPILER = "c++"
CCACHE = shutil.which("ccache")
# ccache keeps objects alone, so with it an object is made, as cheaply as possible. Its paths are
# relative to the checkout, as those of the build (cmake/regatta_ccache.cmake).
EXTRA = ["-Wno-unused-function", *(["-O0", "-g0"] if CCACHE else ["-fsyntax-only"])]
ENVIRONMENT = {**os.environ, "CCACHE_BASEDIR": str(sources.ROOT), "CCACHE_NOHASHDIR": "1"}


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
        # The main file is one #include line: a header as the main file draws other warnings.
        main, rule, made = (record.with_suffix(suffix) for suffix in (".cc", ".d", ".o"))
        main.write_text(f'#include "{name}"\n')
        launcher = [CCACHE] if CCACHE else []
        command = [*launcher, COMPILER, *flags, *EXTRA, "-MD", "-MF", str(rule), "-c", str(main), "-o", str(made)]
        done = subprocess.run(command, cwd=sources.ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        for path_left in (main, made):
            path_left.unlink(missing_ok=True)
        if done.returncode:
            return name, done.stderr or "the compiler failed", False
        files = [str(sources.ROOT / file) for file in dependencies(rule.read_text()) if pathlib.Path(file).name != main.name]
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
