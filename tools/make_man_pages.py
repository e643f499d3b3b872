#!/usr/bin/env python3
"""Writes manual pages from the --help of a program and of its commands.

  tools/make_man_pages.py build/release/bin/regatta build/release/man
"""
import pathlib
import re
import subprocess
import sys


def escaped(text):
    """Text as troff prints it: a backslash, a leading dot or quote and a hyphen mean nothing else."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def sections(help_text):
    """[(title, lines)] of a help text; the first title is "". Sections are apart by an empty line."""
    found = [("", [])]
    for line in help_text.splitlines():
        title = re.fullmatch(r"([A-Z][a-z]+):", line)
        if title:
            found.append((title[1], []))
        elif line.startswith("Usage: "):
            found.append(("Usage", [line.removeprefix("Usage: ")]))
            found.append(("", []))
        else:
            found[-1][1].append(line)
    return [(title, lines) for title, lines in found if any(lines)]


def items(lines):
    """[(term, text)] of indented two-column lines; deeper lines continue the text."""
    found = []
    for line in lines:
        row = re.fullmatch(r" {2}(\S.*?)(?: {2,}(.*))?", line)
        if row:
            found.append([row[1], [row[2] or ""]])
        elif line.strip() and found:
            found[-1][1].append(line.strip())
    return [(term, " ".join(text).strip()) for term, text in found]


def paragraphs(lines):
    """Lines that are indented are an example and keep their breaks."""
    out = []
    for line in lines:
        if line.startswith(" "):
            out += [".RS 2", ".nf", escaped(line.strip()), ".fi", ".RE"]
        else:
            out.append(escaped(line) if line.strip() else ".PP")
    return out


def page(words, parts, version):
    """The page of the command that `words` name."""
    name = "-".join(words)
    text = " ".join(line for line in parts[0][1]).strip()
    summary = re.split(r"[.:;] |[.:;]$", text)[0].removeprefix("Regatta ")
    out = [f'.TH "{escaped(name.upper())}" 1 "" "{version}" "Regatta"', ".SH NAME",
           f"{escaped(name)} \\- {escaped(summary)}"]
    for position, (title, lines) in enumerate(sorted(parts, key=lambda part: part[0] != "Usage")):
        if title == "Usage":
            out += [".SH SYNOPSIS", f".B {escaped(lines[0])}"]
        elif title in ("Arguments", "Options", "Commands"):
            out.append(f".SH {title.upper()}")
            for term, meaning in items(lines):
                out += [".TP", f".B {escaped(term)}", escaped(meaning)]
        else:
            out += [f".SH {(title or ('DESCRIPTION' if position == 1 else 'NOTES')).upper()}", *paragraphs(lines)]
    out += [".SH EXIT STATUS", "0: done; 1: the work failed; 2: the input is wrong."]
    if len(words) > 1:
        out += [".SH SEE ALSO", f".BR {escaped('-'.join(words[:-1]))} (1)"]
    return "\n".join(out) + "\n"


def write_pages(program, words, folder, version):
    help_text = subprocess.run([program, *words[1:], "--help"], capture_output=True, text=True, check=True).stdout
    parts = sections(help_text)
    (folder / f"{'-'.join(words)}.1").write_text(page(words, parts, version))
    commands = [term for title, lines in parts if title == "Commands" for term, _ in items(lines)]
    for command in commands:
        write_pages(program, [*words, command], folder, version)


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.1"):
        old.unlink()
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    write_pages(program, [pathlib.Path(program).name], folder, version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
