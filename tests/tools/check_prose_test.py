"""Unit tests of tools/check_prose.py on single texts."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_prose  # noqa: E402  (the path is set above)


def problems(name, text, avoided=None):
    return check_prose.problems_of(pathlib.Path(name), text, avoided or {})


class CheckProse(unittest.TestCase):
    def test_refuses_a_comment_that_begins_with_a_relative(self):
        self.assertEqual(len(problems("a.h", "// What it takes, in seconds.\n")), 1)
        self.assertEqual(len(problems("a.h", "int a;  // Of two paths the first.\n")), 1)
        self.assertEqual(len(problems("a.py", "# It waits. Who sleeps is late.\n")), 1)

    def test_joins_the_lines_of_a_comment(self):
        self.assertEqual(problems("a.h", "// It counts packets\n// Of the last window.\n"), [])
        self.assertEqual(len(problems("a.h", "// It counts packets.\n// Of the last window.\n")), 1)

    def test_begins_a_comment_anew_below_one_behind_code(self):
        self.assertEqual(len(problems("a.h", "int a;  // the count\n// Of the last window.\n")), 1)
        self.assertEqual(problems("a.h", "int a;  // the count\n        // Of the last window.\n"), [])

    def test_lets_questions_and_strings_stand(self):
        self.assertEqual(problems("a.h", '// What happens when it is empty?\nauto t = "// What it is.";\n'), [])

    def test_reads_documents_by_paragraph_item_and_cell(self):
        self.assertEqual(problems("a.md", "## What works\n\n```\n# Of code\n```\n"), [])
        self.assertEqual(len(problems("a.md", "- Of the two, one.\n- It works.\n\n| Who | it waits |\n")), 2)

    def test_names_the_term_for_a_word_that_prose_avoids(self):
        found = problems("a.h", "// A purse of leases; `purse` is the old key.\n", {"purse": "lease counter"})
        self.assertEqual(found, ["a.h:1: the word 'purse'; say 'lease counter'"])


if __name__ == "__main__":
    unittest.main()
