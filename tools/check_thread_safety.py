#!/usr/bin/env python3
"""Has clang check which mutex guards which member. It fails when
  - a source of regatta/ or experimental/ uses std::mutex or its locks instead of core/mutex.h, which has no lock for
    readers: files with a std::shared_mutex are left out,
  - a Mutex guards nothing: no member or function of its file names it in an attribute, and no comment on its line or
    before it says what it orders,
  - clang's -Wthread-safety finds an access without the mutex.
With ccache, a source that passed costs little while it and all it includes stay the same.

    tools/check_thread_safety.py [BUILD_FOLDER]   (default build/dev; it needs compile_commands.json and clang++)
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import sources

ROOTS = ("regatta", "experimental")
BARE = re.compile(r"\bstd::(?:mutex|recursive_mutex|lock_guard|scoped_lock|unique_lock|condition_variable)\b")
MEMBER = re.compile(r"(?P<before>^\s*//[^\n]*\n)?^\s*(?:mutable |static )?(?:regatta::)?Mutex (?P<name>\w+);(?P<after>[^\n]*)",
                    re.MULTILINE)
LOCKS = re.compile(r"\bMutexLock\b|\bREGATTA_(?:GUARDED_BY|REQUIRES|EXCLUDES)\b")
INCLUDE = re.compile(r'^#include "((?:regatta|experimental)/[^"]+)"', re.MULTILINE)
HOME = pathlib.Path("regatta/base/core/mutex.h")
CHECK = ["-Wno-everything", "-Wthread-safety", "-Werror=thread-safety"]
CCACHE = shutil.which("ccache")
# ccache keeps objects alone, so with it an object is made, as cheaply as possible. Its paths are
# relative to the checkout, as those of the build (cmake/regatta_ccache.cmake).
EFFORT = ["-O0", "-g0"] if CCACHE else ["-fsyntax-only"]
ENVIRONMENT = {**os.environ, "CCACHE_BASEDIR": str(sources.ROOT), "CCACHE_NOHASHDIR": "1"}


def is_test(name):
    return name.stem.endswith(("_test", "_bench")) or name.stem.startswith("test_")


def text_problems(texts):
    """`texts`: file -> its text, tests left out."""
    problems = []
    for name, text in sorted(texts.items()):
        if name == HOME or "std::shared_mutex" in text:
            continue
        code = re.sub(r"//[^\n]*", "", text)
        problems += [f"{name}: {bare}; use core/mutex.h" for bare in dict.fromkeys(BARE.findall(code))]
        for found in MEMBER.finditer(text):
            mutex = found["name"]
            is_explained = found["before"] or "//" in found["after"]
            if not is_explained and not re.search(rf"REGATTA_\w+\([^)]*\b{mutex}\b", code):
                problems.append(f"{name}: {mutex} guards nothing that clang could check; mark it with REGATTA_GUARDED_BY({mutex})")
    return problems


def sources_with_locks(texts):
    """Sources that lock, or include a header that does."""
    def locks(name):
        return name != HOME and bool(LOCKS.search(texts.get(name, "")))
    return [name for name in sorted(texts) if name.suffix == ".cc" and
            (locks(name) or any(locks(pathlib.Path(header)) for header in INCLUDE.findall(texts[name])))]


def findings(name, flags, folder):
    flags = [flag for flag in flags if not flag.startswith(("-W", "-f"))]
    made = pathlib.Path(folder) / (str(name).replace("/", "_") + ".o")
    command = [*([CCACHE] if CCACHE else []), "clang++", *flags, *CHECK, *EFFORT, "-c", str(sources.ROOT / name), "-o", str(made)]
    done = subprocess.run(command, cwd=sources.ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    made.unlink(missing_ok=True)
    return done.stderr if done.returncode else ""


def main(arguments):
    build = pathlib.Path(arguments[0] if arguments else sources.ROOT / "build" / "dev").resolve()
    if not (build / "compile_commands.json").exists():
        print(f"thread safety: {build}/compile_commands.json is missing; run cmake --preset dev first")
        return 2
    texts = {name: (sources.ROOT / name).read_text(errors="replace") for name in sources.tracked(suffixes=(".h", ".cc"))
             if name.parts[0] in ROOTS and not is_test(name)}
    problems = text_problems(texts)
    flags = sources.compile_flags(build)
    known = [name for name in sources_with_locks(texts) if (sources.ROOT / name).resolve() in flags]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(sources.workers()) as pool:
        problems += filter(None, pool.map(lambda name: findings(name, flags[(sources.ROOT / name).resolve()], folder), known))
    print("\n".join(problems) if problems else f"thread safety: {len(known)} sources with locks, clang found nothing")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
