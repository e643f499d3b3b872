"""The library that stands in for the driver elsewhere knows every function that the stand-in driver has."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ROW = re.compile(r"^(\w+)\((\w+), (\w+)((?:, .*)?)\)$", re.MULTILINE)


def known():
    """Symbols that have a row in calls.inc; a pair is two."""
    symbols = set()
    for kind, _, symbol, rest in ROW.findall((ROOT / "experimental/remote/internal/calls.inc").read_text()):
        symbols.add(symbol)
        if kind == "PAIR":
            symbols.add(symbol + rest.split(", ")[1])
    return symbols


def exported():
    rows = ROW.findall((ROOT / "tests/standin/symbols.inc").read_text())
    return {rest.split(", ")[1] if kind == "TWIN" else symbol for kind, _, symbol, rest in rows}


class KnownCalls(unittest.TestCase):
    def test_every_function_is_forwarded_or_refused_by_name(self):
        self.assertEqual(sorted(exported() - known()), [])

    def test_there_are_many(self):
        self.assertGreater(len(exported()), 250)


if __name__ == "__main__":
    unittest.main()
