#!/usr/bin/env python3
"""Proves that includes point down: every #include "regatta/..." is allowed by the DEPS of the target
that owns the file, every target's DEPS point to a lower layer (or, among the abilities and programs,
sideways without a cycle).

    tools/check_layers.py [ROOT]
"""
import pathlib
import re
import sys

# Bottom first; a module of layer i may use the layers below it. In the layers of SIDEWAYS a module
# may also use a neighbour, as long as there is no cycle.
LAYERS = [
    ["core"],
    ["topo", "workload", "os"],
    ["cost", "pipeline", "fabric", "sched", "gpu", "rdma", "telemetry", "wire"],
    ["plan", "diag", "coll", "simulate", "vgpu", "probe", "lab", "heal", "report"],
    ["train", "agent", "measure", "bench", "controller", "replay"],
    ["cli"],
]
SIDEWAYS = {3, 4}
LEVEL = {module: level for level, layer in enumerate(LAYERS) for module in layer}
KEYWORDS = {"NAME", "SOURCES", "TESTS", "BENCHMARKS", "DEPS", "SYSTEM"}
SUFFIXES = {".h", ".c", ".cc", ".cu", ".inc"}


class Target:
    """A library or program of a folder: its own files and the regatta modules it links."""

    def __init__(self, name, files, deps):
        self.name, self.files, self.deps = name, set(files), set(deps)


def calls(text):
    """(command, words) of each CMake command; comments and quoted parentheses are handled."""
    text = re.sub(r"#[^\n]*", "", text)
    for match in re.finditer(r"(\w+)\s*\(", text):
        depth, end, quoted = 1, match.end(), False
        while depth and end < len(text):
            letter = text[end]
            quoted ^= letter == '"'
            if not quoted:
                depth += (letter == "(") - (letter == ")")
            end += 1
        yield match.group(1).lower(), text[match.end():end - 1].split()


def keyword_lists(words):
    lists, current = {}, None
    for word in words:
        if word in KEYWORDS:
            current = lists.setdefault(word, [])
        elif current is not None:
            current.append(word)
    return lists


def read_targets(text):
    """The targets of one CMakeLists.txt: regatta_module() calls, and plain libraries and programs
    with the regatta:: libraries they link."""
    targets = {}
    for command, words in calls(text):
        if command == "regatta_module":
            lists = keyword_lists(words)
            name = lists.get("NAME", ["?"])[0]
            files = lists.get("SOURCES", []) + lists.get("TESTS", []) + lists.get("BENCHMARKS", [])
            targets["regatta_" + name] = Target(name, files, lists.get("DEPS", []))
        elif command in ("add_library", "add_executable") and words and "ALIAS" not in words:
            targets[words[0]] = Target(words[0], words[1:], [])
        elif command == "target_sources" and words and words[0] in targets:
            targets[words[0]].files.update(words[1:])
        elif command == "target_link_libraries" and words and words[0].removesuffix("_test") in targets:
            linked = re.findall(r"regatta::(\w+)", " ".join(words[1:]))
            targets[words[0].removesuffix("_test")].deps.update(linked)
    return list(targets.values())


def owners(targets, name):
    """The targets that list the file, or list the source or test of the header; every target of the
    folder when none does (a header-only part)."""
    stem, suffix = name.rsplit(".", 1)
    names = {name}
    if suffix in ("h", "inc"):
        names = {stem + ".cc", stem + "_test.cc", stem + ".cu"}
    found = [target for target in targets if names & target.files]
    return found or targets


def folder_problems(root, folder, homes):
    """Includes of one folder that its targets do not allow; `homes`: target -> folder."""
    targets = read_targets((folder / "CMakeLists.txt").read_text())
    module, problems = folder.name, []
    for path in sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES):
        allowed = {module}
        for target in owners(targets, str(path.relative_to(folder))):
            allowed |= {homes.get(dep, dep) for dep in target.deps}
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            used = re.match(r'\s*#\s*include\s+["<]regatta/(\w+)/', line)
            if used and used.group(1) not in allowed:
                problems.append(f"{path.relative_to(root)}:{number}: {module} may not include "
                                f"{used.group(1)}; list it in DEPS or move the code")
    return problems


def layer_problems(edges):
    """Dependencies that point up or, in the low layers, sideways; `edges`: module -> modules."""
    problems = []
    for module in sorted(edges):
        if module not in LEVEL:
            problems.append(f"regatta/{module}: no layer; add it to LAYERS in tools/check_layers.py")
            continue
        for dep in sorted(edges[module] - {module}):
            if dep not in LEVEL:
                problems.append(f"regatta/{module}: depends on {dep}, which has no layer")
            elif LEVEL[dep] > LEVEL[module]:
                problems.append(f"regatta/{module}: depends on {dep}, which is in a higher layer")
            elif LEVEL[dep] == LEVEL[module] and LEVEL[dep] not in SIDEWAYS:
                problems.append(f"regatta/{module}: depends on {dep}, which is in the same layer")
    return problems


def find_cycle(edges):
    """One cycle of modules as a list, or None."""
    state, trail = {}, []

    def visit(module):
        state[module] = "open"
        trail.append(module)
        for dep in sorted(edges.get(module, set()) - {module}):
            if state.get(dep) == "open":
                return trail[trail.index(dep):] + [dep]
            if dep not in state and (cycle := visit(dep)):
                return cycle
        state[module] = "done"
        trail.pop()
        return None

    for module in sorted(edges):
        if module not in state and (cycle := visit(module)):
            return cycle
    return None


def check(root):
    """Every problem of the tree, as lines."""
    folders = sorted(path.parent for path in (root / "regatta").glob("*/CMakeLists.txt"))
    per_folder = {folder: read_targets((folder / "CMakeLists.txt").read_text()) for folder in folders}
    homes = {target.name.removeprefix("regatta_"): folder.name  # regatta::x is the target regatta_x
             for folder, targets in per_folder.items() for target in targets}
    edges = {folder.name: {homes.get(dep, dep) for target in targets for dep in target.deps}
             for folder, targets in per_folder.items()}
    problems = [line for folder in folders for line in folder_problems(root, folder, homes)]
    problems += layer_problems(edges)
    if cycle := find_cycle(edges):
        problems.append("cycle of modules: " + " -> ".join(cycle))
    return problems


def main(arguments):
    root = pathlib.Path(arguments[0]).resolve() if arguments else pathlib.Path(__file__).resolve().parent.parent
    problems = check(root)
    print("\n".join(problems) if problems else "layers: every include points down")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
