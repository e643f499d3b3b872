// cluster_replay/trace_tables.h: reads jobs and nodes of public traces.
// Sources: msr-fiddle/philly-traces (Jeon et al., USENIX ATC 2019); alibaba/clusterdata,
// cluster-trace-gpu-v2023, cluster-trace-gpu-v2025 and cluster-trace-v2026-spot-gpu.
//
// Each function fails with kInvalidInput, a sentence that names `file`, line, column and remedy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/cluster_replay/traced_job.h"
#include "regatta/platform/packing/gpu_node.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/quota_tree.h"

namespace regatta::cluster_replay {

// Columns: submit_s, duration_s, num_gpus, vc, which is the queue. Up to 8 GPUs are one replica on
// one server. By rising time of submission.
Result<std::vector<TracedJob>> read_philly_jobs(std::string_view text, const std::string& file);

// Instances of online services. Columns: role, app_name, cpu_request (cores), gpu_request,
// memory_request (GiB), creation_time, deletion_time (seconds). Without a creation time an instance
// runs from 0 on; without a deletion time it runs to the last time of the table. They are of the
// class kOnline, not preemptible, their queue is "online" and their user the application. By rising
// time of submission.
Result<std::vector<TracedJob>> read_dlrm_instances(std::string_view text, const std::string& file);

// Pods of the trace openb with their times. Columns: cpu_milli, memory_mib, num_gpu, gpu_milli,
// gpu_spec, creation_time, deletion_time, and qos, which is the queue. Device memory is not in the
// table, and 0 here. By rising time of submission.
Result<std::vector<TracedJob>> read_openb_jobs(std::string_view text, const std::string& file);

// Columns: gpu_model, gpu_capacity_num, cpu_num (cores), node_name. Memory is not in the table:
// each node has more than jobs ask for.
Result<std::vector<sched::ClusterNode>> read_spot_nodes(std::string_view text,
                                                        const std::string& file);

// A queue without quotas for each that jobs name; the default queue where none names one.
Result<sched::QuotaTree> queues_of(const std::vector<TracedJob>& jobs);

// Nodes that packing::read_nodes() read; nodes without a GPU too.
std::vector<sched::ClusterNode> cluster_nodes_of(const std::vector<packing::GpuNode>& nodes);

// `servers` equal servers in leaves of `leaf_servers`, after the nodes that `nodes` already holds.
struct ServerGroup {
  std::string device_type;
  int servers = 0;
  int devices = 0;
  int leaf_servers = 32;
};
void add_servers(std::vector<sched::ClusterNode>& nodes, const ServerGroup& group);

// The largest amounts of a node whose trace names none.
inline constexpr int kAmpleCpuMilli = packing::kCpuMilliMax;
inline constexpr int kAmpleMemoryMib = 1 << 30;

}  // namespace regatta::cluster_replay
