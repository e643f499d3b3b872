#!/usr/bin/env python3
"""Runs a command in a virtual machine that starts for it and ends with it: for tests that need a kernel of
their own (modules, devices). The machine is emulated; everything it uses lies in memory, so nothing is
left behind.

  guest.py --kernel FOLDER [--module NAME]... [--program PATH]... [--library PATH]... [--file PATH]...
           [--cores N] [--memory MIB] [--limit SECONDS] -- COMMAND

FOLDER is what scripts/guest-kernel.sh made. Programs and libraries take the shared libraries along that they
need; every file lies in the guest where it lies here, programs in /bin too. COMMAND is a line for busybox sh, run as
root after the modules. Its output is this program's output, its exit status this one's; 77: something that
is needed here is missing, 124: the limit is over, 125: the guest ended without a word.
"""
import argparse
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

SKIPPED, TIMED_OUT, NO_STATUS = 77, 124, 125
STATUS_MARK = "guest-status:"

INIT = """#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
stty -F /dev/ttyS1 raw -echo
exec </dev/null >/dev/ttyS1 2>&1
ip link set lo up
for module in {modules}; do
  insmod /modules/$module || echo "the guest cannot load $module"
done
cd /tmp
sh /command
echo {mark}$?
poweroff -f
"""


class Missing(Exception):
    """Something that this machine lacks; the test is skipped."""


class Archive:
    """The guest's files as a cpio archive (newc), which the kernel unpacks at its start."""

    def __init__(self):
        self.folders, self.parts, self.inode = set(), [], 0

    def add(self, path, mode, data=b""):
        path = path.strip("/")
        parent = os.path.dirname(path)
        if parent and parent not in self.folders:
            self.folders.add(parent)
            self.add(parent, 0o040755)
        self._append(path, mode, data)

    def _append(self, path, mode, data):
        self.inode += 1
        name = path.encode() + b"\0"
        fields = [self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name
        self.parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]

    def write(self, path):
        self._append("TRAILER!!!", 0, b"")
        with open(path, "wb") as out:
            out.writelines(self.parts)


def shared_libraries(path):
    """The files that the loader opens for a program or a library."""
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    if "not found" in listed:
        raise SystemExit(f"guest.py: {path} needs a library that is not here:\n{listed}")
    return re.findall(r"(?:=> |^\s+)(/\S+) \(0x", listed, re.MULTILINE)


def without_symbols(path, folder):
    """The bytes of a program or a library without what a debugger wants, which may be most of it."""
    stripped = os.path.join(folder, "stripped")
    done = subprocess.run(["strip", "-o", stripped, path], capture_output=True, check=False)
    return pathlib.Path(stripped if done.returncode == 0 else path).read_bytes()


def module_order(kernel, wanted):
    """The files of the modules and of those that they need, first things first."""
    files = {path.stem.replace("-", "_"): path for path in kernel.glob("lib/modules/**/*.ko")}
    builtin = {pathlib.Path(line).stem.replace("-", "_")
               for path in kernel.glob("lib/modules/*/modules.builtin") for line in path.read_text().split()}
    order = []

    def visit(name):
        if name in builtin or files.get(name) in order:
            return
        if name not in files:
            raise Missing(f"the kernel in {kernel} has no module {name}: run scripts/guest-kernel.sh again")
        depends = re.search(rb"\0depends=([^\0]*)\0", files[name].read_bytes())
        for other in depends.group(1).decode().split(",") if depends and depends.group(1) else []:
            visit(other.replace("-", "_"))
        order.append(files[name])

    for name in wanted:
        visit(name.replace("-", "_"))
    return order


def make_archive(options, kernel, busybox, folder):
    archive, added = Archive(), set()

    def add_file(path, as_path=None, strip=False):
        if (as_path or path) in added:
            return
        added.add(as_path or path)
        data = without_symbols(path, folder) if strip else pathlib.Path(path).read_bytes()
        archive.add(as_path or path, 0o100755, data)

    for path in ("proc", "sys", "dev", "tmp"):
        archive.add(path, 0o040755)
    add_file(busybox, "/bin/busybox")
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    programs = {os.path.basename(path) for path in options.program}
    for applet in sorted(set(applets) - programs - {"busybox"}):
        archive.add(f"/bin/{applet}", 0o120777, b"busybox")
    for path in options.program + options.library:
        for library in shared_libraries(path):
            add_file(library, strip=True)
    for path in options.program:
        add_file(path, f"/bin/{os.path.basename(path)}", strip=True)
    for path in options.library:
        add_file(path, strip=True)
    for path in options.file:
        add_file(path)
    modules = module_order(kernel, options.module)
    for path in modules:
        archive.add(f"/modules/{path.name}", 0o100644, path.read_bytes())
    init = INIT.format(modules=" ".join(path.name for path in modules), mark=STATUS_MARK)
    archive.add("/init", 0o100755, init.encode())
    archive.add("/command", 0o100755, options.command.encode() + b"\n")
    archive.write(os.path.join(folder, "initramfs"))


def die_with_parent():
    """Runs in the emulator before it starts: nobody else ends it when this program is killed."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def run_guest(options, kernel, qemu, folder):
    vmlinuz = next(kernel.glob("boot/vmlinuz-*"))
    # Emulated even where there is KVM: the same everywhere, and nested KVM may hang.
    command = [qemu, "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(options.cores), "-m",
               str(options.memory), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
               "-kernel", str(vmlinuz), "-initrd", os.path.join(folder, "initramfs"),
               "-append", "console=ttyS0 panic=-1 quiet mitigations=off random.trust_cpu=on",
               "-serial", "file:" + os.path.join(folder, "console"), "-serial", "stdio"]
    guest = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             preexec_fn=die_with_parent)
    is_late = threading.Event()

    def end():
        is_late.set()
        guest.kill()

    timer = threading.Timer(options.limit, end)
    timer.start()
    status = None
    for raw in guest.stdout:
        text, mark, number = raw.decode(errors="replace").partition(STATUS_MARK)
        if mark:
            status = int(number)
        sys.stdout.write(text)
        sys.stdout.flush()
    guest.wait()
    timer.cancel()
    if status is not None:
        return status
    console = pathlib.Path(folder, "console").read_text(errors="replace").splitlines()[-30:]
    print("\n".join(console), file=sys.stderr)
    why = f"did not end within {options.limit} s" if is_late.is_set() else "ended without an exit status"
    print(f"guest.py: the guest {why}; above are the last words of its kernel", file=sys.stderr)
    return TIMED_OUT if is_late.is_set() else NO_STATUS


def needed(program, package):
    path = shutil.which(program)
    if path is None:
        raise Missing(f"there is no {program}: install {package}")
    return path


def parse_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", required=True)
    for name in ("module", "program", "library", "file"):
        parser.add_argument("--" + name, action="append", default=[])
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", type=int, default=1024)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("command")
    return parser.parse_args(arguments)


def main():
    options = parse_options(sys.argv[1:])
    kernel = pathlib.Path(options.kernel)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TIMED_OUT))
    try:
        qemu = needed("qemu-system-x86_64", "qemu-system-x86")
        busybox = needed("busybox", "busybox-static")
        if not any(kernel.glob("boot/vmlinuz-*")):
            raise Missing(f"there is no kernel in {kernel}: run scripts/guest-kernel.sh {kernel}")
        for path in options.program + options.library + options.file:
            if not os.path.exists(path):
                raise Missing(f"there is no {path}")
        with tempfile.TemporaryDirectory(prefix="regatta-guest-") as folder:
            make_archive(options, kernel, busybox, folder)
            return run_guest(options, kernel, qemu, folder)
    except Missing as why:
        print(f"skipped: {why}")
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
