"""What the package regatta_torch says where it is incomplete."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import ranks  # noqa: F401 (skips where torch is missing)

SOURCES = pathlib.Path(__file__).parents[1] / "regatta_torch"


def error_of_import(library=None):
    """The errors that a Python prints which imports the package from a folder with this file in place of its library."""
    with tempfile.TemporaryDirectory() as folder:
        package = pathlib.Path(folder) / "regatta_torch"
        shutil.copytree(SOURCES, package)
        if library is not None:
            (package / "_C.py").write_text(library, encoding="utf-8")
        ran = subprocess.run([sys.executable, "-c", "import regatta_torch"], env={"PYTHONPATH": folder},
                             capture_output=True, text=True, check=False)
        return ran.stderr


class Package(unittest.TestCase):
    def test_import_without_the_library_says_what_to_build(self):
        self.assertRegex(error_of_import(), r"is incomplete \(.*_C.*\): build the target torch_backend")

    def test_import_with_a_library_that_does_not_load_gives_the_reason(self):
        broken = "raise ImportError('libregatta_coll.so.1: cannot open shared object file')"
        self.assertRegex(error_of_import(broken), r"incomplete \(libregatta_coll.so.1: .*\): build the target")

    def test_build_holds_the_whole_package(self):
        import regatta_torch
        built = pathlib.Path(regatta_torch.__file__).parent
        for source in SOURCES.glob("*.py"):
            self.assertEqual((built / source.name).read_text(encoding="utf-8"), source.read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
