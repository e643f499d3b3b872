"""Unit tests of tools/check_thread_safety.py on texts given as a dictionary."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_thread_safety  # noqa: E402  (the path is set above)


def paths(texts):
    return {pathlib.Path(name): text for name, text in texts.items()}


class CheckThreadSafety(unittest.TestCase):
    def problems(self, text):
        return check_thread_safety.text_problems(paths({"regatta/base/rpc/a.h": text}))

    def test_refuses_a_bare_mutex(self):
        self.assertEqual(self.problems("std::mutex mutex_;\n"), ["regatta/base/rpc/a.h: std::mutex; use core/mutex.h"])
        self.assertEqual(self.problems("// std::mutex has no attributes\n"), [])

    def test_refuses_a_mutex_that_guards_nothing(self):
        self.assertEqual(len(self.problems("  Mutex mutex_;\n  int a_;\n")), 1)
        self.assertEqual(self.problems("  Mutex order_;  // orders the sends\n"), [])
        self.assertEqual(self.problems("  Mutex mutex_;\n  int a_ REGATTA_GUARDED_BY(mutex_);\n"), [])

    def test_checks_sources_that_lock_or_include_a_header_that_does(self):
        texts = paths({"regatta/x/y/a.h": "int a REGATTA_GUARDED_BY(m);", "regatta/x/y/b.cc": '#include "regatta/x/y/a.h"\n',
                       "regatta/x/y/c.cc": "int c;", "regatta/x/y/d.cc": "MutexLock lock(m);"})
        self.assertEqual([name.name for name in check_thread_safety.sources_with_locks(texts)], ["b.cc", "d.cc"])


if __name__ == "__main__":
    unittest.main()
