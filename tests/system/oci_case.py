"""What the tests of containers share: a daemon, bundles whose root is this machine's /usr, and the edits of a CDI device."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ.get("REGATTA_BIN", pathlib.Path(__file__).parents[2] / "build/dev/bin")).resolve()
REGATTA = BIN / "regatta"
TENANT = BIN / "regatta-test-tenant"  # its exit status: how many MiB it got; 255: it belongs to no tenant

NAME = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"


class SpecError(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise SpecError(what)


def check_object(value, where, required, optional):
    """`required` and `optional` map keys to checks of their values."""
    expect(isinstance(value, dict), f"{where} is no object")
    expect(set(required) <= set(value), f"{where} lacks {set(required) - set(value)}")
    known = {**required, **optional}
    expect(set(value) <= set(known), f"{where} has unknown {set(value) - set(known)}")
    for key, one in value.items():
        known[key](one, f"{where}.{key}")


def text(pattern=".+"):
    def check(value, where):
        expect(isinstance(value, str) and re.fullmatch(pattern, value, re.DOTALL), f"{where}: {value!r} is not {pattern}")
    return check


def list_of(check_one, least=0):
    def check(value, where):
        expect(isinstance(value, list) and len(value) >= least, f"{where} is no list of at least {least}")
        for index, one in enumerate(value):
            check_one(one, f"{where}[{index}]")
    return check


def positive(value, where):
    expect(isinstance(value, int) and 0 < value < 2**32, f"{where}: {value!r} is no positive number")


def check_mount(value, where):
    check_object(value, where, {"hostPath": text("/.+"), "containerPath": text("/.+")}, {"options": list_of(text()), "type": text()})


def check_hook(value, where):
    names = "prestart|createRuntime|createContainer|startContainer|poststart|poststop"
    check_object(value, where, {"hookName": text(names), "path": text("/.+")},
                 {"args": list_of(text()), "env": list_of(text("[^=]+=.*")), "timeout": positive})


def check_edits(value, where):
    check_object(value, where, {}, {"env": list_of(text("[^=]+=.*")), "mounts": list_of(check_mount), "hooks": list_of(check_hook)})
    expect(value, f"{where} is empty")


def check_cdi(spec):
    """Container Device Interface 0.6.0, SPEC.md and schema/: raises SpecError. Knows the edits that are made here and no others."""
    def check_device(value, where):
        check_object(value, where, {"name": text(NAME), "containerEdits": check_edits}, {})
    check_object(spec, "spec", {"cdiVersion": text(r"0\.\d+\.\d+"), "kind": text(rf"{LABEL}(\.{LABEL})*/{NAME}"),
                                "devices": list_of(check_device, 1)}, {"containerEdits": check_edits})
    names = [device["name"] for device in spec["devices"]]
    expect(len(names) == len(set(names)), "two devices have one name")


def apply_cdi(config, spec):
    """What a runtime does to the container's configuration when it is asked for the spec's first device."""
    edits = spec["devices"][0]["containerEdits"]
    config["process"]["env"] += edits.get("env", [])
    for mount in edits.get("mounts", []):
        config["mounts"].append({"source": mount["hostPath"], "destination": mount["containerPath"], "type": mount["type"],
                                 "options": mount["options"]})
    for hook in edits.get("hooks", []):
        config.setdefault("hooks", {}).setdefault(hook["hookName"], []).append(
            {key: hook[key] for key in ("path", "args", "env", "timeout") if key in hook})


def left_cgroups():
    return [path for path in pathlib.Path("/sys/fs/cgroup").rglob(f"regatta-test-{os.getpid()}-*") if path.is_dir()]


class OciCase(unittest.TestCase):
    def setUp(self):
        self.addCleanup(lambda: self.assertEqual(left_cgroups(), []))  # the last thing that is done
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.socket = self.folder / "run/socket"
        self.count = 0
        self.library = self.folder / "lib/libregatta_gpu.so"
        self.library.parent.mkdir()
        # Any library tells by its name in the memory map that it was loaded.
        shutil.copy(os.path.realpath("/lib/x86_64-linux-gnu/libutil.so.1"), self.library)
        (self.folder / "lib/ld.so.preload").write_text(f"{self.library}\n")
        self.daemon = None
        self.start_daemon()
        self.addCleanup(self.kill_daemon)

    def start_daemon(self):
        self.daemon = subprocess.Popen([REGATTA, "gpu", "daemon", "--state", self.folder / "state", "--socket", self.socket,
                                        "--gpu", "1GiB"], stderr=subprocess.DEVNULL)
        self.wait_for(lambda: self.gpu("policy").returncode == 0)

    def kill_daemon(self):
        self.daemon.kill()
        self.daemon.wait(timeout=10)

    def wait_for(self, condition, seconds=20):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def gpu(self, *words, **options):
        return subprocess.run([REGATTA, "gpu", words[0], "--socket", self.socket, *words[1:]], capture_output=True, text=True,
                              timeout=30, **options)

    def tenants(self):
        return {tenant["name"]: tenant for tenant in json.loads(self.gpu("ps", "--json").stdout)["tenants"]}

    def cdi(self, *words):
        done = self.gpu("cdi", "--library", self.library, "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        spec = json.loads(done.stdout)
        check_cdi(spec)
        return spec

    def bundle(self, args, annotations, spec=None, user=0):
        """A bundle of this machine's /usr, read-only; returns the container's name and the bundle's folder."""
        self.count += 1
        name = f"regatta-test-{os.getpid()}-{self.count}"
        folder = self.folder / name
        for path in ("usr", "proc", "dev", "etc", "tmp", "out"):
            (folder / "rootfs" / path).mkdir(parents=True)
        (folder / "rootfs/out").chmod(0o777)
        for path in ("bin", "sbin", "lib", "lib64"):
            (folder / "rootfs" / path).symlink_to("usr/" + path)
        read_only = ["bind", "ro", "nosuid", "nodev"]
        config = {
            "ociVersion": "1.0.2",
            "process": {"terminal": False, "user": {"uid": user, "gid": user}, "args": [str(word) for word in args], "cwd": "/",
                        "env": ["PATH=/usr/bin:/bin"], "noNewPrivileges": True},
            "root": {"path": str(folder / "rootfs"), "readonly": False},
            "hostname": "box",
            "annotations": annotations,
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                       {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                       {"destination": "/usr", "type": "none", "source": "/usr", "options": read_only},
                       {"destination": str(BIN), "type": "none", "source": str(BIN), "options": read_only}],
            "linux": {"cgroupsPath": "/" + name, "namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
        }
        if spec is not None:
            apply_cdi(config, spec)
        (folder / "config.json").write_text(json.dumps(config))
        return name, folder
