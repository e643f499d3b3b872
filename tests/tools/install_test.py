"""scripts/install.sh with stand-ins for dpkg-query, apt-get, id and sudo: what it installs, and what it says when it cannot."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts/install.sh"

# Knows the packages of the file `installed`; ninja-build is known for two architectures.
DPKG_QUERY = """\
#!/bin/bash
name=${@: -1}
grep -qx "$name" "$FAKE/installed" || exit 1
echo installed
[ "$name" != ninja-build ] || echo not-installed
"""

# Notes what it is called with; an install fails until there was an update, when `stale` exists, and
# always when `broken` does.
APT_GET = """\
#!/bin/bash
echo "$*" >>"$FAKE/calls"
case "$*" in
  *" update"*) touch "$FAKE/updated"; exit 100 ;;
esac
if [ -e "$FAKE/broken" ] || { [ -e "$FAKE/stale" ] && [ ! -e "$FAKE/updated" ]; }; then
  echo "E: unable to locate package"
  exit 100
fi
"""


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program("dpkg-query", DPKG_QUERY)
        self.program("apt-get", APT_GET)
        self.program("id", "#!/bin/bash\necho ${FAKE_ID:-0}\n")
        self.program("sudo", "#!/bin/bash\nexit 1\n")
        wanted = (SCRIPT.parent / "packages.txt").read_text()
        self.wanted = [word for line in wanted.splitlines() for word in line.split("#")[0].split()]
        self.installed(self.wanted)

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)

    def installed(self, names):
        (self.folder / "installed").write_text("".join(name + "\n" for name in names))

    def run_script(self, **environment):
        path = f"{self.folder}:{os.environ['PATH']}"
        return subprocess.run([SCRIPT], text=True, capture_output=True, timeout=60,
                              env={**os.environ, "PATH": path, "FAKE": str(self.folder), **environment})

    def calls(self):
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def test_does_nothing_when_all_is_there(self):
        done = self.run_script(FAKE_ID="1000")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, f"== packages: all {len(self.wanted)} are installed\n")
        self.assertEqual(self.calls(), [])

    def test_installs_only_what_is_missing(self):
        self.installed(self.wanted[1:])
        done = self.run_script()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        (call,) = self.calls()
        self.assertRegex(call, rf"install -y --no-install-recommends {self.wanted[0].replace('+', '.')}$")

    def test_refreshes_stale_lists_even_when_one_source_is_broken(self):
        self.installed([])
        (self.folder / "stale").touch()
        done = self.run_script()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([("update" in call.split(), "install" in call.split()) for call in self.calls()],
                         [(False, True), (True, False), (False, True)])

    def test_shows_why_apt_failed(self):
        self.installed(self.wanted[1:])
        (self.folder / "broken").touch()
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertIn("E: unable to locate package\n", done.stderr)
        self.assertTrue(done.stderr.endswith(
            f"install.sh: apt-get could not install {self.wanted[0]}; the lines above say why\n"), done.stderr)

    def test_tells_an_ordinary_user_what_root_must_install(self):
        self.installed(self.wanted[1:])
        done = self.run_script(FAKE_ID="1000")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "install.sh: these packages are missing and only root can install them: "
                                      f"{self.wanted[0]}; run scripts/install.sh as root\n")
        self.assertEqual(self.calls(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
