#!/usr/bin/env python3
"""Fails when a tracked source differs from what clang-format makes of it (--fix writes it instead), or a
comment is wider than the code may be, since clang-format leaves comments as they are."""
import re
import subprocess
import sys

import sources


COLUMNS = 100
COMMENT = re.compile(r"(^|\s)//")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def wide_comments(text):
    """The lines, from 1, of the comments that end behind the last column."""
    return [number for number, line in enumerate(text.splitlines(), 1)
            if len(line) > COLUMNS and COMMENT.search(line if line.lstrip().startswith("//") else STRING.sub("", line))]


def main(arguments):
    files = [str(name) for name in sources.tracked()]
    mode = ["-i"] if "--fix" in arguments else ["--dry-run", "-Werror"]
    done = subprocess.run(["clang-format", *mode, *files], cwd=sources.ROOT, check=False)
    wide = [f"{name}:{number}" for name in files
            for number in wide_comments((sources.ROOT / name).read_text())]
    for place in wide:
        print(f"{place}: the comment is wider than {COLUMNS} columns; wrap it")
    if done.returncode == 0:
        print(f"format: {len(files)} files are as clang-format writes them")
    else:
        print("format: run tools/check_format.py --fix")
    return 1 if done.returncode or wide else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
