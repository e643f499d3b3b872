#!/usr/bin/env python3
"""Holds comments and documents to plain sentences. It fails when
  - a sentence begins with Of, Who, Whom, Whose, Whoever, What or Whatever and asks nothing,
  - a comment or a document has a word of the glossary's table "Words that prose avoids".

    tools/check_prose.py [ROOT]
"""
import pathlib
import re
import sys

import sources
from check_words import table

GLOSSARY = "docs/glossary.md"
CODE = (".h", ".cc", ".c", ".inc", ".proto", ".ts", ".tsx", ".mjs")
SCRIPTS = (".py", ".sh", ".cmake")
# Strings come first, so that `//` in an address is not taken for a comment.
CODE_TOKEN = re.compile(
    r'R"(?P<d>\w*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/',
    re.DOTALL)
RELATIVE = re.compile(r"(?:Of|Who|Whom|Whose|Whoever|What|Whatever)\b")
SENTENCE_END = re.compile(r"(?<=[.!?:])\s+")


def code_blocks(text):
    """(line number, text) of each comment; line comments below each other in one column are one."""
    blocks, last, last_column = [], -1, -1
    for match in CODE_TOKEN.finditer(text):
        words = match.group("line") if match.group("line") is not None else match.group("block")
        if words is None:
            continue
        number = text.count("\n", 0, match.start()) + 1
        before = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        # A comment below another in its column goes on with it; in another column it is a new one.
        goes_on = not before.strip() and number == last + 1 and len(before) == last_column
        if goes_on and match.group("line") is not None and words.strip():
            blocks[-1] = (blocks[-1][0], blocks[-1][1] + " " + words.strip())
        else:
            blocks.append((number, re.sub(r"\s*\n\s*\*?\s*", " ", words.strip())))
        last, last_column = (number, len(before)) if words.strip() else (-1, -1)
    return blocks


def script_blocks(text):
    blocks, last = [], -1
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"\s*#(?!!)\s?(.*)", line)
        if not match or not match.group(1).strip():
            continue
        if blocks and number == last + 1:
            blocks[-1] = (blocks[-1][0], blocks[-1][1] + " " + match.group(1).strip())
        else:
            blocks.append((number, match.group(1).strip()))
        last = number
    return blocks


def document_blocks(text):
    """Paragraphs, list items and table cells; headings and code are left out."""
    blocks, fenced, open_block = [], False, False
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line.startswith("```"):
            fenced, open_block = not fenced, False
        elif fenced or not line or line.startswith("#"):
            open_block = False
        elif line.startswith("|"):
            blocks += [(number, cell.strip()) for cell in line.strip("|").split("|")]
            open_block = False
        elif open_block and not re.match(r"[-*] |\d+\. ", line):
            blocks[-1] = (blocks[-1][0], blocks[-1][1] + " " + line)
        else:
            blocks.append((number, re.sub(r"^([-*]|\d+\.) ", "", line)))
            open_block = True
    return blocks


def blocks_of(name, text):
    if name.suffix in CODE:
        return code_blocks(text)
    return document_blocks(text) if name.suffix == ".md" else script_blocks(text)


def problems_of(name, text, avoided):
    """`avoided`: word in lower case -> what to say instead."""
    problems = []
    words = re.compile(r"\b(" + "|".join(map(re.escape, avoided)) + r")\b", re.IGNORECASE) if avoided else None
    for number, block in blocks_of(name, text):
        for sentence in SENTENCE_END.split(block):
            sentence = sentence.strip("`*_( ")
            if RELATIVE.match(sentence) and not sentence.endswith("?"):
                problems.append(f"{name}:{number}: '{sentence[:60]}' begins with a relative; say subject, verb, object")
        for word in dict.fromkeys(found.lower() for found in words.findall(re.sub(r"`[^`]*`", "", block))) if words else ():
            problems.append(f"{name}:{number}: the word '{word}'; say '{avoided[word]}'")
    return problems


def main(arguments):
    root = pathlib.Path(arguments[0]).resolve() if arguments else sources.ROOT
    avoided = {row[0].lower(): row[1] for row in table((root / GLOSSARY).read_text(), "Words that prose avoids")}
    names = [name for name in sources.tracked(root, CODE + SCRIPTS + (".md",))
             if "history" not in name.parts and "testdata" not in name.parts and str(name) != GLOSSARY]
    problems = [problem for name in names
                for problem in problems_of(name, (root / name).read_text(errors="replace"), avoided)]
    print("\n".join(problems) if problems else f"prose: {len(names)} files, {len(avoided)} avoided words")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
