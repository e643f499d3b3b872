#!/usr/bin/env python3
"""Holds the tree to the words of docs/glossary.md. It fails when
  - an identifier or a file name has a retired word (the glossary's table "Retired words"),
  - two modules show public types of one name that the table "Shared type names" does not list,
  - a .cc file is named neither after a header, nor after a class, nor after a part of one (`trainer_steps.cc`),
  - the README of a module or a domain names a header that is not there.

    tools/check_words.py [ROOT]
"""
import collections
import pathlib
import re
import sys

import sources

GLOSSARY = "docs/glossary.md"
CODE = (".h", ".cc", ".c", ".inc", ".py", ".sh", ".proto", ".ts", ".tsx", ".mjs")
STRINGS_AND_COMMENTS = re.compile(
    r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
SCRIPT_COMMENTS = re.compile(r'"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*')
TYPE = re.compile(r"^(?:class|struct|enum class|union) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: :[^;{]*)? \{", re.MULTILINE)
ANY_TYPE = re.compile(r"^\s*(?:class|struct|enum class|union) (?:\[\[\w+\]\] )?(\w+(?:::\w+)*)", re.MULTILINE)


def words_of(identifier):
    """The lower-case words of `snake_case`, `PascalCase` and `kConstant`."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)]


def snake(name):
    return "_".join(words_of(name))


def table(text, heading):
    """The rows of the first table below a heading, as lists of cells without code marks."""
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in rows[2:]]


def module_of(path):
    """`domain/module` of a file below regatta/ or experimental/, else its top folder."""
    parts = path.parts
    if parts[0] == "regatta" and len(parts) > 3:
        return "/".join(parts[1:3])
    return "/".join(parts[:2])


def retired_problems(names, read, retired):
    """`retired`: a word, or words joined by "_", -> what to say instead."""
    problems = []

    def found(identifier):
        parts = "_" + "_".join(words_of(identifier)) + "_"
        return next((word for word in retired if f"_{word}_" in parts), None)

    for name in names:
        if word := found(name.stem):
            problems.append(f"{name}: file name with the retired word '{word}'; use '{retired[word]}'")
        blank = SCRIPT_COMMENTS if name.suffix in (".py", ".sh") else STRINGS_AND_COMMENTS
        identifiers = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", blank.sub(" ", read(name))))
        for identifier in identifiers:
            if word := found(identifier):
                problems.append(f"{name}: identifier '{identifier}' with the retired word '{word}'; use '{retired[word]}'")
    return problems


def is_public_header(path):
    return path.suffix == ".h" and path.parts[0] == "regatta" and "internal" not in path.parts and \
        not path.name.startswith("test_")


def shared_type_problems(names, read, listed):
    """`listed`: type names that the glossary explains."""
    owners = collections.defaultdict(set)
    for name in filter(is_public_header, names):
        for found in TYPE.findall(read(name)):
            owners[found].add(module_of(name))
    return [f"{found}: a public type of {' and '.join(sorted(modules))}; give one of them the qualifier that says what it is, "
            f"or list it in {GLOSSARY}"
            for found, modules in sorted(owners.items()) if len(modules) > 1 and found not in listed]


def source_name_problems(names, read):
    """Sources that a reader would not find from a header or a class."""
    headers = collections.defaultdict(set)  # module -> stems
    classes = collections.defaultdict(set)
    for name in names:
        if name.suffix in (".h", ".inc", ".cc"):
            module = module_of(name)
            if name.suffix != ".cc":
                headers[module].add(name.stem)
            classes[module] |= {snake(found.split("::")[-1]) for found in ANY_TYPE.findall(read(name))}
    problems = []
    for name in names:
        if name.suffix != ".cc" or name.parts[0] not in ("regatta", "experimental"):
            continue
        stem, module = name.stem, module_of(name)
        if re.search(r"(_test|_bench|_fuzz|_main|^main|^test_\w+)$", stem):
            continue
        known = headers[module] | classes[module]
        if not any(stem == one or stem.startswith(one + "_") for one in known):
            problems.append(f"{name}: named after no header and no class of {module}; rename it")
    return problems


def readme_problems(names, texts):
    """`texts`: README -> its text. A header may be named from any folder above it inside the README's own folder,
    with more of its path also when it is another module's."""
    known = {str(name) for name in names}
    problems = []
    for readme, text in texts.items():
        for header in dict.fromkeys(re.findall(r"`([\w/]+\.(?:h|inc))`", text)):
            folder = "" if "/" in header else str(readme.parent) + "/"
            if not any(name.startswith(folder) and ("/" + name).endswith("/" + header) for name in known):
                problems.append(f"{readme}: names {header}, which is not there")
    return problems


def main(arguments):
    root = pathlib.Path(arguments[0]).resolve() if arguments else sources.ROOT
    glossary = (root / GLOSSARY).read_text()
    retired = {row[0]: row[1] for row in table(glossary, "Retired words")}
    listed = {row[0] for row in table(glossary, "Shared type names")}
    names = sources.tracked(root, CODE)
    texts = {}

    def read(name):
        if name not in texts:
            texts[name] = (root / name).read_text(errors="replace")
        return texts[name]

    problems = retired_problems(names, read, retired) + shared_type_problems(names, read, listed) + \
        source_name_problems(names, read) + \
        readme_problems(names, {name: read(name) for name in sources.tracked(root, (".md",))
                                if name.name == "README.md" and name.parts[0] in ("regatta", "experimental")})
    print("\n".join(problems) if problems else
          f"words: {len(names)} files, {len(retired)} retired words, {len(listed)} shared type names")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
