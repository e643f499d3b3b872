"""What the checkers share: the list of source files, the compile commands, a cache of passed files."""
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = (".h", ".c", ".cc")


def tracked(root=ROOT, suffixes=CODE):
    """Tracked files with one of the suffixes, relative to root, sorted; without git, every file
    below the folders of code."""
    command = ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False)
    if listing.returncode == 0:
        names = [name for name in listing.stdout.split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for top in ("regatta", "tests", "bench", "tools", "scripts")
                 for path in (root / top).rglob("*") if path.is_file()]
    return sorted(pathlib.Path(name) for name in names
                  if name.endswith(tuple(suffixes)) and (root / name).is_file())


def compile_flags(build):
    """Source file -> the flags of its compile command (no compiler, output or source)."""
    flags = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"]) if "command" in entry else entry["arguments"]
        source = pathlib.Path(entry["directory"], entry["file"]).resolve()
        kept, skip = [], True  # the launcher and the compiler come before the first flag
        words = iter(words)
        for word in words:
            if skip and not word.startswith("-"):
                continue
            skip = False
            if word in ("-o", "-MF", "-MT", "-MQ"):
                next(words, None)
            elif word in ("-c", "-MD", "-MMD") or word == entry["file"]:
                continue
            else:
                kept.append(word)
        flags[source] = kept
        if source.parent.name == "Unity":  # CMake's file of a group includes its sources
            flags.update({pathlib.Path(name).resolve(): kept for name in included(source)})
    return flags


def included(path):
    """The names that a file includes in quotes; none where CMake has not written it."""
    return re.findall(r'^#include "([^"]+)"', path.read_text(), re.M) if path.is_file() else []


def flags_for(path, flags):
    """The flags of the source beside a header (x.cc or x_test.cc), else of any source of its folder or
    the nearest one above, else of any source at all: enough to find every include. Headers are read
    as C++, those of C sources, too."""
    path = path.resolve()
    flags = {source: kept for source, kept in flags.items() if source.suffix != ".c"}
    for name in (path.stem + ".cc", path.stem + "_test.cc"):
        if path.with_name(name) in flags:
            return flags[path.with_name(name)]
    for folder in path.parents:
        if near := sorted(source for source in flags if source.parent == folder):
            return flags[near[0]]
    return max(flags.values(), key=len, default=["-std=c++20", f"-I{ROOT}"])


class PassedCache:
    """Keys of the inputs that passed, one empty file each, below build/: a failure is never kept."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def key(self, *parts):
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part if isinstance(part, bytes) else str(part).encode())
            digest.update(b"\0")
        return digest.hexdigest()

    def has(self, key):
        return (self.folder / key).exists()

    def add(self, key):
        (self.folder / key).touch()


def workers():
    return max(1, min(2, os.cpu_count() or 1))
