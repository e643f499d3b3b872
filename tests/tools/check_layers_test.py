"""Unit tests of tools/check_layers.py on small trees made in a temporary folder."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_layers  # noqa: E402  (the path is set above)


class CheckLayers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = self.root / "regatta" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def module(self, name, lists):
        self.write(f"{name}/CMakeLists.txt", f"regatta_module(NAME {name}\n  {lists})\n")

    def problems(self):
        return check_layers.check(self.root)

    def test_accepts_an_include_that_deps_list(self):
        self.module("core", "SOURCES a.cc")
        self.module("topo", "SOURCES t.cc DEPS core SYSTEM Threads::Threads")
        self.write("topo/t.cc", '#include "regatta/topo/t.h"\n#include "regatta/core/a.h"\n')
        self.assertEqual(self.problems(), [])

    def test_names_file_and_line_of_an_include_that_deps_do_not_list(self):
        self.module("topo", "SOURCES t.cc DEPS core")
        self.module("core", "")
        self.write("topo/t.cc", '#include <vector>\n#include "regatta/os/file.h"\n')
        self.assertEqual(len(self.problems()), 1)
        self.assertIn("regatta/topo/t.cc:2: topo may not include os", self.problems()[0])

    def test_turns_invalid_when_a_dep_is_taken_away(self):
        self.module("core", "")
        self.module("topo", "SOURCES t.cc DEPS core")
        self.write("topo/t.cc", '#include "regatta/core/units.h"\n')
        self.assertEqual(self.problems(), [])
        self.module("topo", "SOURCES t.cc")
        self.assertEqual(len(self.problems()), 1)

    def test_gives_each_target_of_a_folder_its_own_list(self):
        self.module("core", "")
        self.module("fabric", "DEPS core")
        self.write("coll/CMakeLists.txt",
                   "regatta_module(NAME coll SOURCES ring.cc DEPS core)\n"
                   "regatta_module(NAME coll_sim SOURCES sim.cc TESTS sim_test.cc DEPS coll fabric)\n")
        include = '#include "regatta/fabric/link.h"\n'
        self.write("coll/sim.cc", include)
        self.write("coll/sim.h", include)
        self.write("coll/sim_test.cc", include)
        self.assertEqual(self.problems(), [])
        self.write("coll/ring.h", include)
        self.assertIn("coll may not include fabric", self.problems()[0])

    def test_reads_plain_programs_and_what_they_link(self):
        self.module("core", "")
        self.module("agent", "DEPS core")
        self.write("cli/CMakeLists.txt",
                   "add_executable(regatta main.cc)  # not agent (see below)\n"
                   "target_link_libraries(regatta PRIVATE regatta::core CLI11::CLI11)\n")
        self.write("cli/main.cc", '#include "regatta/agent/session.h"\n')
        self.assertEqual(len(self.problems()), 1)
        self.write("cli/CMakeLists.txt",
                   "add_executable(regatta main.cc)\n"
                   "target_link_libraries(regatta PRIVATE regatta::core regatta::agent)\n")
        self.assertEqual(self.problems(), [])

    def test_knows_the_folder_of_a_second_target(self):
        self.module("core", "")
        self.write("wire/CMakeLists.txt",
                   "regatta_module(NAME wire DEPS core)\n"
                   "add_library(regatta_wire_agent STATIC a.cc)\n"
                   "add_library(regatta::wire_agent ALIAS regatta_wire_agent)\n")
        self.module("agent", "SOURCES a.cc DEPS wire_agent")
        self.write("agent/a.cc", '#include "regatta/wire/agent.pb.h"\n')
        self.assertEqual(self.problems(), [])

    def test_ignores_deps_in_comments(self):
        self.module("core", "")
        self.write("os/CMakeLists.txt", "regatta_module(NAME os SOURCES f.cc\n  # DEPS core\n)\n")
        self.write("os/f.cc", '#include "regatta/core/units.h"\n')
        self.assertEqual(len(self.problems()), 1)

    def test_refuses_a_dependency_on_a_higher_layer(self):
        self.module("core", "")
        self.module("plan", "DEPS core")
        self.module("topo", "DEPS plan")
        self.assertEqual(self.problems(), ["regatta/topo: depends on plan, which is in a higher layer"])

    def test_refuses_a_neighbour_in_a_low_layer(self):
        self.module("topo", "")
        self.module("workload", "DEPS topo")
        self.assertEqual(self.problems(), ["regatta/workload: depends on topo, which is in the same layer"])

    def test_accepts_a_neighbour_among_abilities_but_no_cycle(self):
        self.module("plan", "")
        self.module("report", "DEPS plan")
        self.assertEqual(self.problems(), [])
        self.module("plan", "DEPS report")
        self.assertEqual(self.problems(), ["cycle of modules: plan -> report -> plan"])

    def test_refuses_a_folder_without_a_layer(self):
        self.module("mystery", "")
        self.assertIn("regatta/mystery: no layer", self.problems()[0])


if __name__ == "__main__":
    unittest.main()
