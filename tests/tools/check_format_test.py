"""Unit tests of tools/check_format.py on single texts."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_format  # noqa: E402  (the path is set above)

LONG = "x" * 100


class CheckFormat(unittest.TestCase):
    def test_names_comments_wider_than_the_code(self):
        self.assertEqual(check_format.wide_comments(f"int a;\n// {LONG}\nint b;  // {LONG}\n"), [2, 3])

    def test_lets_a_comment_of_100_columns_stand(self):
        self.assertEqual(check_format.wide_comments("// " + "x" * 97), [])

    def test_names_wide_comments_with_quotes(self):
        self.assertEqual(check_format.wide_comments(f'// "a" {LONG}\nf("b");  // {LONG}\n'), [1, 2])

    def test_lets_wide_strings_stand(self):
        self.assertEqual(check_format.wide_comments(f'R"(http://{LONG})"\n"// {LONG}"'), [])


if __name__ == "__main__":
    unittest.main()
