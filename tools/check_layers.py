#!/usr/bin/env python3
"""Proves the walls of the tree. Every #include "regatta/..." is allowed by the DEPS of the target that
owns the file; DEPS point to modules that stand earlier in ORDER; a header below internal/ is read by its
own module alone; a module shows at most 8 public headers.

    tools/check_layers.py [ROOT]

Tests, fuzz targets and benchmarks (tests/, fuzz/, bench/) look inside the modules that they test.
"""
import pathlib
import re
import sys

# Bottom first, `domain/module`. A module may use those before it; domains follow one another.
ORDER = [
    "base/core", "base/os", "base/net", "base/rpc", "base/tls", "base/http",
    "model/topo", "model/workload", "model/pipeline", "model/cost", "model/collective",
    "gpu/device", "gpu/sharing",
    "network/port_counters", "network/fabric", "network/diag", "network/simulate", "network/lab", "network/rdma", "network/probe",
    "network/link_rates", "network/heal",
    "planning/plan", "planning/replay",
    "platform/packing", "platform/mixing", "platform/reliability", "platform/sched", "platform/cluster_replay", "platform/job_plan", "platform/trainer", "platform/container", "platform/store", "platform/identity", "platform/audit", "platform/control", "platform/history", "platform/node_protocol", "platform/monitoring", "platform/notification", "platform/node_agent", "platform/fault_simulation", "platform/controller", "platform/plan_service", "platform/api", "platform/login", "platform/controller_service",
    "runtime/comm", "runtime/bench", "runtime/train", "runtime/measure", "runtime/agent",
    "experimental/remote",
    "app/report", "app/cli",
]
LEVEL = {module: level for level, module in enumerate(ORDER)}
PUBLIC_HEADERS_MAX = 8
KEYWORDS = {"NAME", "SOURCES", "ALONE", "TESTS", "BENCHMARKS", "DEPS", "SYSTEM"}
SUFFIXES = {".h", ".c", ".cc", ".cu", ".inc"}
# experimental/ stands beside regatta/: `experimental/remote/internal/pool.h` is a header of the module `remote`.
INCLUDE = re.compile(r'\s*#\s*include\s+["<](?:regatta/(\w+/\w+)|(experimental/\w+))/([^">]+)[">]')


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
            files = sum((lists.get(key, []) for key in ("SOURCES", "ALONE", "TESTS", "BENCHMARKS")), [])
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


def module_of(root, path):
    """`domain/module` of a file below regatta/ or experimental/, or None."""
    parts = path.relative_to(root).parts
    if parts[0] == "regatta" and len(parts) > 3:
        return "/".join(parts[1:3])
    if parts[0] == "experimental" and len(parts) > 2:
        return "/".join(parts[:2])
    return None


def module_folders(root):
    """(module, folder) of every module with a CMakeLists.txt."""
    found = sorted((root / "regatta").glob("*/*/CMakeLists.txt")) + sorted((root / "experimental").glob("*/CMakeLists.txt"))
    return [(module_of(root, path), path.parent) for path in found]


def targets_of(folder):
    """The targets of a module, those of its subfolders too, with files relative to the module."""
    targets = []
    for lists in sorted(folder.rglob("CMakeLists.txt")):
        prefix = str(lists.parent.relative_to(folder))
        for target in read_targets(lists.read_text()):
            if prefix != ".":
                target.files = {f"{prefix}/{name}" for name in target.files}
            targets.append(target)
    return targets


def include_problems(root, module, folder, targets, homes):
    """Includes of one module that its targets do not allow; `homes`: target -> module."""
    problems = []
    library = [target for target in targets if target.name == folder.name]
    for path in sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES):
        allowed = {module}
        # Sources of the module's programs may include the headers that its library may include.
        for target in library + owners(targets, str(path.relative_to(folder))):
            allowed |= {homes.get(dep, dep) for dep in target.deps}
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            used = INCLUDE.match(line)
            if not used:
                continue
            other, header = used.group(1) or used.group(2), used.group(3)
            place = f"{path.relative_to(root)}:{number}"
            if other not in allowed:
                problems.append(f"{place}: {module} may not include {other}; list it in DEPS or move the code")
            elif other != module and header.startswith("internal/"):
                problems.append(f"{place}: {other}/{header} is internal to {other}; use a public header of it")
    return problems


def face_problems(root, module, folder):
    """A module that shows more headers than a reader can know; headers for tests do not count."""
    shown = [path for path in folder.rglob("*.h")
             if "internal" not in path.relative_to(folder).parts and not path.name.startswith("test_")]
    most = PUBLIC_HEADERS_MAX
    if len(shown) <= most:
        return []
    return [f"{folder.relative_to(root)}: {module} shows {len(shown)} public headers, {most} is the most; "
            "move what no other module reads to internal/, or split the module"]


def order_problems(edges):
    """Dependencies that do not point down; `edges`: module -> modules."""
    problems = []
    for module in sorted(edges):
        if module not in LEVEL:
            problems.append(f"{module}: has no place in ORDER of tools/check_layers.py; add it there")
            continue
        for dep in sorted(edges[module] - {module}):
            if dep not in LEVEL:
                problems.append(f"{module}: depends on {dep}, which has no place in ORDER")
            elif LEVEL[dep] > LEVEL[module]:
                problems.append(f"{module}: depends on {dep}, which stands above it")
    return problems


def check(root):
    """Every problem of the tree, as lines."""
    modules = module_folders(root)
    targets = {module: targets_of(folder) for module, folder in modules}
    homes = {target.name.removeprefix("regatta_"): module  # regatta::x is the target regatta_x
             for module, listed in targets.items() for target in listed}
    edges = {module: {homes.get(dep, dep) for target in listed for dep in target.deps}
             for module, listed in targets.items()}
    problems = []
    for module, folder in modules:
        problems += include_problems(root, module, folder, targets[module], homes)
        problems += face_problems(root, module, folder)
    return problems + order_problems(edges)


def main(arguments):
    root = pathlib.Path(arguments[0]).resolve() if arguments else pathlib.Path(__file__).resolve().parent.parent
    problems = check(root)
    print("\n".join(problems) if problems else "layers: every include points down, no header inside is read from outside")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
