"""Unit tests of tools/check_words.py on texts given as a dictionary."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_words  # noqa: E402  (the path is set above)


class CheckWords(unittest.TestCase):
    def setUp(self):
        self.files = {}

    def write(self, name, text=""):
        self.files[pathlib.Path(name)] = text

    def retired(self, words):
        return check_words.retired_problems(sorted(self.files), self.files.get, words)

    def shared(self, listed=()):
        return check_words.shared_type_problems(sorted(self.files), self.files.get, set(listed))

    def sources(self):
        return check_words.source_name_problems(sorted(self.files), self.files.get)

    def readmes(self, name, text):
        return check_words.readme_problems(sorted(self.files), {pathlib.Path(name): text})

    def test_refuses_a_readme_that_names_a_header_which_is_gone(self):
        self.write("regatta/base/rpc/internal/a.h")
        readme = "regatta/base/rpc/README.md"
        self.assertEqual(self.readmes(readme, "Start at `a.h`, then `internal/a.h` and `rpc/internal/a.h`."), [])
        self.assertEqual(self.readmes(readme, "See `b.h`."), [f"{readme}: names b.h, which is not there"])
        self.assertEqual(len(self.readmes("regatta/base/os/README.md", "See `a.h`.")), 1)

    def test_splits_identifiers_into_words(self):
        self.assertEqual(check_words.words_of("kOpenDoor"), ["k", "open", "door"])
        self.assertEqual(check_words.words_of("open_door_"), ["open", "door"])
        self.assertEqual(check_words.words_of("TCPDoor2"), ["tcp", "door"])

    def test_finds_a_retired_word_in_an_identifier_and_names_the_term(self):
        self.write("regatta/base/rpc/a.h", "struct FrontDoor {};\n")
        self.assertEqual(len(self.retired({"door": "listener"})), 1)
        self.assertIn("'FrontDoor'", self.retired({"door": "listener"})[0])
        self.assertIn("use 'listener'", self.retired({"door": "listener"})[0])

    def test_finds_a_retired_word_in_a_file_name(self):
        self.write("regatta/base/rpc/front_door.h")
        self.assertIn("file name", self.retired({"door": "listener"})[0])

    def test_finds_a_retired_pair_of_words(self):
        self.write("a.cc", "int roll_call_of; int roll_the_call;\n")
        self.assertEqual(len(self.retired({"roll_call": "reporter_status"})), 1)

    def test_leaves_prose_strings_and_longer_words_alone(self):
        self.write("a.cc", '// behind the door\nconst char* text = "the door"; int doorbell;\n')
        self.write("b.py", 'TEXT = "door"  # a door\n')
        self.assertEqual(self.retired({"door": "listener"}), [])

    def test_refuses_a_public_type_of_one_name_in_two_modules(self):
        self.write("regatta/model/topo/a.h", "struct Link {\n};\n")
        self.assertEqual(self.shared(), [])
        self.write("regatta/runtime/comm/b.h", "class Link final : public Base {\n};\n")
        self.assertIn("Link: a public type of model/topo and runtime/comm", self.shared()[0])
        self.assertEqual(self.shared(["Link"]), [])

    def test_does_not_count_internal_nested_or_forward_declared_types(self):
        self.write("regatta/model/topo/a.h", "struct Link {\n};\n")
        self.write("regatta/runtime/comm/internal/b.h", "struct Link {\n};\n")
        self.write("regatta/runtime/comm/c.h", "struct Link;\nstruct Outer {\n  struct Link {\n  };\n};\n")
        self.assertEqual(self.shared(), [])

    def test_accepts_sources_named_after_a_header_a_class_or_a_part_of_one(self):
        self.write("regatta/base/rpc/line_server.h", "class Acceptor {\n};\n")
        for name in ("line_server", "line_server_limits", "acceptor", "line_server_test", "server_main"):
            self.write(f"regatta/base/rpc/{name}.cc")
        self.assertEqual(self.sources(), [])
        self.write("regatta/base/rpc/orders.cc")
        self.assertIn("orders.cc: named after no header and no class of base/rpc", self.sources()[0])

    def test_reads_the_tables_of_the_glossary(self):
        text = "# Glossary\n\n## Retired words\n\nWhy.\n\n| retired | use |\n|---|---|\n| `door` | `listener` |\n\n## Next\n\n| a | b |\n|---|---|\n| c | d |\n"
        self.assertEqual(check_words.table(text, "Retired words"), [["door", "listener"]])


if __name__ == "__main__":
    unittest.main()
