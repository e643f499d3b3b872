#!/usr/bin/env python3
"""Installs the Debian packages of a folder into a root that holds only what they depend on, and runs them there.

  tools/check_packages.py build/release/packages      as root, on Debian, with the dependencies installed here

The root gets the files of the packages that theirs depend on, linked from this machine, and dpkg's records of them. So dpkg
refuses a package whose dependency is not declared or not known, and a program misses every library that is not declared.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def installed():
    """{name: (depends, is_essential)} of the packages of this machine, also under the names that they provide."""
    rows = output_of("dpkg-query", "-W", "-f",
                     "${Package}\t${Pre-Depends}, ${Depends}\t${Essential}\t${Provides}\n").splitlines()
    found = {}
    for row in rows:
        name, depends, essential, provides = row.split("\t")
        found[name] = (name, depends, essential == "yes")
        for other in re.findall(r"[a-z0-9][a-z0-9.+-]+(?= *(?:\(|,|$))", provides):
            found.setdefault(other, found[name])
    return found


def alternatives(depends):
    """[[name, ...]] of a Depends field: one of each list is needed."""
    return [[re.sub(r"[ (:\[].*", "", one.strip()) for one in group.split("|")]
            for group in depends.split(",") if group.strip()]


def closure(depends, known):
    """Names of all packages that a Depends field needs, with the essential ones."""
    waiting = alternatives(depends) + [[name] for name, (_, _, essential) in known.items() if essential] + [["cpp"]]
    names = set()
    while waiting:
        name = next((one for one in waiting.pop() if one in known), None)
        if name is None or known[name][0] in names:
            continue
        names.add(known[name][0])
        waiting += alternatives(known[name][1])
    return names


def link(path, root):
    """Makes `path` of this machine exist below `root`: folders anew, files as hard links."""
    target = root / path.relative_to("/")
    if os.path.lexists(target) or not os.path.lexists(path):
        return
    link(path.parent, root)
    if path.is_symlink():
        target.symlink_to(os.readlink(path))
    elif path.is_dir():
        target.mkdir()
    else:
        try:
            os.link(path, target)
        except OSError:
            shutil.copy2(path, target)


def make_root(root, names):
    for path in ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/bin", "/sbin", "/lib", "/lib64"):
        link(pathlib.Path(path), root)
    for name in names:
        for line in output_of("dpkg", "-L", name).splitlines():
            if line.startswith("/") and line != "/.":
                link(pathlib.Path(line), root)
    # Links that packages make when they are configured, as libblas.so.3: the second line of a record, and every
    # second one after it up to an empty line.
    for record in pathlib.Path("/var/lib/dpkg/alternatives").iterdir():
        lines = record.read_text().split("\n\n")[0].splitlines()
        for place in lines[1::2]:
            link(pathlib.Path(place), root)
    for choice in pathlib.Path("/etc/alternatives").iterdir():
        link(choice, root)
    admin = root / "var/lib/dpkg"
    (admin / "info").mkdir(parents=True, exist_ok=True)
    (admin / "updates").mkdir(exist_ok=True)
    records = pathlib.Path("/var/lib/dpkg/status").read_text().split("\n\n")
    kept = [record for record in records if re.search(r"^Package: (.*)", record, re.M)
            and re.search(r"^Package: (.*)", record, re.M)[1] in names]
    (admin / "status").write_text("\n\n".join(kept) + "\n")
    for record in pathlib.Path("/var/lib/dpkg/info").glob("*.list"):
        if record.stem.split(":")[0] in names:
            shutil.copy2(record, admin / "info")
    (root / "tmp").mkdir(exist_ok=True)
    (root / "dev").mkdir(exist_ok=True)
    (root / "proc").mkdir(exist_ok=True)


def inside(root, script):
    """Runs a shell script in the root, with its own /proc and /dev."""
    enter = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" /bin/sh -ec "$1"'
    subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", enter, str(root), script], check=True)


def check(packages, script, compiles=False):
    """Installs `packages` into a root of their dependencies and runs `script` there."""
    depends = ", ".join(output_of("dpkg-deb", "-f", package, "Depends") for package in packages)
    names = closure(depends, installed())
    with tempfile.TemporaryDirectory(dir=SOURCE / "build") as folder:
        root = pathlib.Path(folder)
        make_root(root, names)
        subprocess.run(["dpkg", f"--root={root}", "--log=/dev/null", "-i", *packages], check=True, stdout=subprocess.DEVNULL)
        if compiles:
            settings = {**os.environ, "PKG_CONFIG_PATH": str(root / "usr/lib/pkgconfig")}
            flags = subprocess.run(["pkg-config", "--cflags", "--libs", "regatta-coll"], check=True, env=settings,
                                   capture_output=True, text=True).stdout.split()
            subprocess.run(["cc", SOURCE / "examples/all_reduce.c", "-o", root / "tmp/all_reduce", *flags], check=True)
        inside(root, script)


def main():
    folder = pathlib.Path(sys.argv[1])
    named = {output_of("dpkg-deb", "-f", package, "Package").strip(): package for package in sorted(folder.glob("*.deb"))}
    check([named["regatta"]], """
      regatta --version
      cd /usr/share/doc/regatta/examples
      regatta plan gpt3-175b.yaml --cluster a100-1024.yaml | head -n 8
      test -s /usr/share/man/man1/regatta-plan.1.gz || test -s /usr/share/man/man1/regatta-plan.1
      bash -c '. /usr/share/bash-completion/completions/regatta
        COMP_WORDS=(regatta plan --clu) COMP_CWORD=2; _regatta; test "${COMPREPLY[*]}" = --cluster
        COMP_WORDS=(regatta fab) COMP_CWORD=1; _regatta; test "${COMPREPLY[*]}" = fabric'
    """)
    check([named["libregatta-coll"]], "/tmp/all_reduce", compiles=True)
    if "regatta-torch" in named:
        check(list(named.values()), "python3 -c 'import regatta_torch; print(regatta_torch.NAME)'\nregatta-worker 2>&1 | grep -q regatta-agent")
    print(f"packages: {', '.join(named)} install and run in a clean root")
    return 0


if __name__ == "__main__":
    sys.exit(main())
