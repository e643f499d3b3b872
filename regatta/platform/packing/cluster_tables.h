// packing/cluster_tables.h: reads tables of nodes and pods in the columns of Alibaba's trace openb.
// Source: github.com/alibaba/clusterdata, cluster-trace-gpu-v2023.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/packing/gpu_node.h"

namespace regatta::packing {

// Columns: sn, cpu_milli, memory_mib, gpu, model; others are ignored. Every GPU is free. Fails with
// kInvalidInput that names `file`, line, column and remedy.
Result<std::vector<GpuNode>> read_nodes(std::string_view text, const std::string& file);

// Columns: cpu_milli, memory_mib, num_gpu, gpu_milli and, where pods choose models, gpu_spec
// (`A10|T4`, empty: any); others are ignored. Fails like read_nodes().
Result<std::vector<Pod>> read_pods(std::string_view text, const std::string& file);

}  // namespace regatta::packing
