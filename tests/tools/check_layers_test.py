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

    def write(self, name, text, top="regatta"):
        path = self.root / top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def module(self, name, lists):
        self.write(f"{name}/CMakeLists.txt", f"regatta_module(NAME {name.split('/')[1]}\n  {lists})\n")

    def problems(self):
        return check_layers.check(self.root)

    def test_accepts_an_include_that_deps_list(self):
        self.module("base/core", "SOURCES a.cc")
        self.module("model/topo", "SOURCES t.cc DEPS core SYSTEM Threads::Threads")
        self.write("model/topo/t.cc", '#include "regatta/model/topo/t.h"\n#include "regatta/base/core/a.h"\n')
        self.assertEqual(self.problems(), [])

    def test_names_file_and_line_of_an_include_that_deps_do_not_list(self):
        self.module("model/topo", "SOURCES t.cc DEPS core")
        self.module("base/core", "")
        self.write("model/topo/t.cc", '#include <vector>\n#include "regatta/base/os/file.h"\n')
        self.assertEqual(len(self.problems()), 1)
        self.assertIn("regatta/model/topo/t.cc:2: model/topo may not include base/os", self.problems()[0])

    def test_turns_invalid_when_a_dep_is_taken_away(self):
        self.module("base/core", "")
        self.module("model/topo", "SOURCES t.cc DEPS core")
        self.write("model/topo/t.cc", '#include "regatta/base/core/units.h"\n')
        self.assertEqual(self.problems(), [])
        self.module("model/topo", "SOURCES t.cc")
        self.assertEqual(len(self.problems()), 1)

    def test_gives_each_target_of_a_folder_its_own_list(self):
        self.module("base/core", "")
        self.module("network/fabric", "DEPS core")
        self.write("runtime/comm/CMakeLists.txt",
                   "regatta_module(NAME comm SOURCES ring.cc DEPS core)\n"
                   "regatta_module(NAME comm_sim SOURCES sim.cc TESTS sim_test.cc DEPS comm fabric)\n")
        include = '#include "regatta/network/fabric/link.h"\n'
        for name in ("sim.cc", "sim.h", "sim_test.cc"):
            self.write(f"runtime/comm/{name}", include)
        self.assertEqual(self.problems(), [])
        self.write("runtime/comm/ring.h", include)
        self.assertIn("runtime/comm may not include network/fabric", self.problems()[0])

    def test_reads_plain_programs_and_what_they_link(self):
        self.module("base/core", "")
        self.module("runtime/agent", "DEPS core")
        self.write("app/cli/CMakeLists.txt",
                   "add_executable(regatta main.cc)  # not agent (see below)\n"
                   "target_link_libraries(regatta PRIVATE regatta::core CLI11::CLI11)\n")
        self.write("app/cli/main.cc", '#include "regatta/runtime/agent/session.h"\n')
        self.assertEqual(len(self.problems()), 1)
        self.write("app/cli/CMakeLists.txt",
                   "add_executable(regatta main.cc)\n"
                   "target_link_libraries(regatta PRIVATE regatta::core regatta::agent)\n")
        self.assertEqual(self.problems(), [])

    def test_knows_the_folder_of_a_second_target(self):
        self.module("base/core", "")
        self.write("base/rpc/CMakeLists.txt",
                   "regatta_module(NAME rpc DEPS core)\n"
                   "add_library(regatta_rpc_messages STATIC a.cc)\n"
                   "add_library(regatta::rpc_messages ALIAS regatta_rpc_messages)\n")
        self.module("runtime/agent", "SOURCES a.cc DEPS rpc_messages")
        self.write("runtime/agent/a.cc", '#include "regatta/base/rpc/agent.pb.h"\n')
        self.assertEqual(self.problems(), [])

    def test_reads_the_targets_of_a_folder_inside_a_module(self):
        self.module("base/core", "")
        self.module("gpu/device", "DEPS core")
        self.module("gpu/sharing", "DEPS core")
        self.write("gpu/sharing/internal/hook/CMakeLists.txt",
                   "add_library(regatta_gpu_hook SHARED load.cc)\n"
                   "target_link_libraries(regatta_gpu_hook PRIVATE regatta::device)\n")
        self.write("gpu/sharing/internal/hook/load.cc", '#include "regatta/gpu/device/abi/cuda.h"\n')
        self.assertEqual(self.problems(), [])

    def test_ignores_deps_in_comments(self):
        self.module("base/core", "")
        self.write("base/os/CMakeLists.txt", "regatta_module(NAME os SOURCES f.cc\n  # DEPS core\n)\n")
        self.write("base/os/f.cc", '#include "regatta/base/core/units.h"\n')
        self.assertEqual(len(self.problems()), 1)

    def test_refuses_a_dependency_that_points_up(self):
        self.module("base/core", "")
        self.module("planning/plan", "DEPS core")
        self.module("model/topo", "DEPS plan")
        self.assertEqual(self.problems(), ["model/topo: depends on planning/plan, which stands above it"])

    def test_refuses_a_circle(self):
        self.module("planning/plan", "DEPS report")
        self.module("app/report", "DEPS plan")
        self.assertEqual(self.problems(), ["planning/plan: depends on app/report, which stands above it"])

    def test_refuses_a_module_without_a_place(self):
        self.module("base/mystery", "")
        self.assertIn("base/mystery: has no place in ORDER", self.problems()[0])

    def test_closes_internal_headers_to_other_modules(self):
        self.module("base/core", "SOURCES internal/a.cc")
        self.module("base/os", "SOURCES f.cc DEPS core")
        self.write("base/core/internal/a.cc", '#include "regatta/base/core/internal/a.h"\n')
        self.assertEqual(self.problems(), [])
        self.write("base/os/f.cc", '#include "regatta/base/core/internal/a.h"\n')
        self.assertIn("regatta/base/os/f.cc:1: base/core/internal/a.h is internal to base/core", self.problems()[0])

    def test_counts_the_public_headers_of_a_module(self):
        self.module("base/rpc", "")
        for i in range(8):
            self.write(f"base/rpc/h{i}.h", "")
        self.write("base/rpc/internal/more.h", "")
        self.write("base/rpc/test_more.h", "")
        self.assertEqual(self.problems(), [])
        self.write("base/rpc/one_more.h", "")
        self.assertIn("base/rpc shows 9 public headers", self.problems()[0])

    def test_reads_modules_beside_the_root(self):
        self.module("base/core", "")
        self.write("remote/CMakeLists.txt", "regatta_module(NAME remote SOURCES p.cc DEPS core)\n", top="experimental")
        self.write("remote/p.cc", '#include "regatta/base/core/units.h"\n', top="experimental")
        self.module("gpu/sharing", "SOURCES s.cc DEPS remote")
        self.write("gpu/sharing/s.cc", '#include "experimental/remote/p.h"\n')
        self.assertEqual(self.problems(), ["gpu/sharing: depends on experimental/remote, which stands above it"])


if __name__ == "__main__":
    unittest.main()
