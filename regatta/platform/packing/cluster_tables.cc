#include "regatta/platform/packing/cluster_tables.h"

#include <algorithm>

#include "regatta/base/core/text.h"
#include "regatta/platform/packing/table_rows.h"

namespace regatta::packing {
namespace {

constexpr IntRange kCpuMilli{0, kCpuMilliMax};
constexpr IntRange kMemoryMib{0, 1 << 30};
constexpr IntRange kGpus{0, kNodeGpusMax};

}  // namespace

Result<std::vector<GpuNode>> read_nodes(std::string_view text, const std::string& file) {
  REGATTA_TRY(rows, TableRows::open(text, file, {"sn", "cpu_milli", "memory_mib", "gpu", "model"}));
  std::vector<GpuNode> nodes;
  for (;;) {
    REGATTA_TRY(is_row, rows.next());
    if (!is_row) return nodes;
    REGATTA_TRY(cpu, rows.number("cpu_milli", kCpuMilli));
    REGATTA_TRY(memory, rows.number("memory_mib", kMemoryMib));
    REGATTA_TRY(gpus, rows.number("gpu", kGpus));
    GpuNode node{std::string(rows.text("sn")),   cpu, memory, gpus, {},
                 std::string(rows.text("model"))};
    std::fill_n(node.gpu_free_milli.begin(), gpus, kGpuMilli);
    nodes.push_back(std::move(node));
  }
}

Result<std::vector<Pod>> read_pods(std::string_view text, const std::string& file) {
  REGATTA_TRY(rows,
              TableRows::open(text, file, {"cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}));
  std::vector<Pod> pods;
  for (;;) {
    REGATTA_TRY(is_row, rows.next());
    if (!is_row) return pods;
    REGATTA_TRY(cpu, rows.number("cpu_milli", kCpuMilli));
    REGATTA_TRY(memory, rows.number("memory_mib", kMemoryMib));
    REGATTA_TRY(gpus, rows.number("num_gpu", kGpus));
    REGATTA_TRY(milli, rows.number("gpu_milli", {gpus > 0 ? 1 : 0, kGpuMilli}));
    Pod pod{cpu, memory, gpus, gpus > 0 ? milli : 0, {}};
    if (!rows.text("gpu_spec").empty()) pod.gpu_models = split(rows.text("gpu_spec"), '|');
    pods.push_back(std::move(pod));
  }
}

}  // namespace regatta::packing
