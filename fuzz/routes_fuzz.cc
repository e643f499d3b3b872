// fuzz/routes_fuzz.cc: any bytes as a file of routes.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/test_fabric.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): one function
  static const topo::Graph graph =
      build_graph(fabric::TestFabric::three_tiers_of(16, 2, 4, 4, {1e9}));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto routes = fabric::parse_routes(graph, text, "fuzz.txt");
  if (!routes) {
    REGATTA_CHECK(routes.error().message.rfind("fuzz.txt:", 0) == 0);
    return 0;
  }
  const fabric::DeadlockCheck check = fabric::check_deadlock(graph, *routes);
  REGATTA_CHECK(check.cycle.has_value() == check.layers.empty());
  if (!check.cycle) return 0;
  for (std::size_t i = 0; i < check.cycle->size(); ++i)
    REGATTA_CHECK(fabric::cause_of_dependency(graph, *routes, (*check.cycle)[i],
                                              (*check.cycle)[(i + 1) % check.cycle->size()]));
  return 0;
}
