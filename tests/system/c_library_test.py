"""libregatta_coll as docs/c_library.md installs it: the example in C compiles against it alone, and runs."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ["REGATTA_BIN"]).parent


class CLibrary(unittest.TestCase):
    def run_command(self, *command, **options):
        done = subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=120, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_example_in_c_compiles_against_the_installed_library_and_adds_up(self):
        compiler = shutil.which("cc")
        if compiler is None:
            self.skipTest("there is no C compiler")
        with tempfile.TemporaryDirectory() as folder:
            self.run_command("cmake", "--install", BUILD, "--component", "coll", "--prefix", folder)
            library = next(pathlib.Path(folder).glob("lib*"))
            program = pathlib.Path(folder) / "all_reduce"
            self.run_command(compiler, "-Wall", "-Werror", "-I", f"{folder}/include", ROOT / "examples/all_reduce.c",
                             "-L", library, "-lregatta_coll", f"-Wl,-rpath,{library}", "-o", program, cwd=folder)
            lines = sorted(self.run_command(program, cwd=folder).splitlines())
        self.assertEqual(lines, ["rank 0 of 2: the sum is 3", "rank 1 of 2: the sum is 3"])


if __name__ == "__main__":
    unittest.main()
