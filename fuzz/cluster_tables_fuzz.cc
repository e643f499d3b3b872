// fuzz/cluster_tables_fuzz.cc: any bytes as a table of nodes and as a table of pods.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/platform/packing/cluster_tables.h"
#include "regatta/platform/packing/placer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto nodes = packing::read_nodes(text, "fuzz.csv");
  if (!nodes) REGATTA_CHECK(nodes.error().message.starts_with("fuzz.csv:"));
  const auto pods = packing::read_pods(text, "fuzz.csv");
  if (!pods) {
    REGATTA_CHECK(pods.error().message.starts_with("fuzz.csv:"));
    return 0;
  }
  const packing::GpuNode node{"n0", 64000, 65536, 2, {1000, 500}, "T4"};
  auto placer = packing::Placer::create({node}, *pods, *packing::find_placement_policy("fgd"), 1);
  REGATTA_CHECK(placer.has_value());
  for (const packing::Pod& pod : *pods) {
    static_cast<void>(placer->place(placer->pod_class(pod)));
    REGATTA_CHECK(placer->nodes()[0].cpu_milli >= 0 && placer->nodes()[0].gpu_free_milli[1] >= 0);
  }
  return 0;
}
