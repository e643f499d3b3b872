// plan/test_plans.h: the job and the cluster that the tests of plan share.
#pragma once

#include <string>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::plan {

inline workload::Job example_job() {
  workload::Job job;
  job.name = "gpt-small";
  job.model.layers = 8;
  job.model.hidden = 384;
  job.model.heads = 8;
  job.model.ffn_hidden = 1536;
  job.model.seq = 96;
  job.model.vocab = 256;
  job.global_batch = 16;
  return job;
}

// `servers` servers of two CPU devices, two to a leaf, two spines.
inline topo::Cluster example_cluster(int servers = 4) {
  using namespace regatta::literals;
  topo::Cluster cluster;
  cluster.name = "lab";
  topo::ServerType type;
  type.name = "cpu-2";
  type.device.name = "cpu";
  type.device.kind = topo::DeviceKind::kCpu;
  type.device.fp32_peak = 100_GFLOPS;
  type.device.memory = 2_GiB;
  type.device.memory_bandwidth = 10_GBps;
  type.device.cpu_share = 0.15;
  type.device_count = 2;
  type.intra = {topo::IntraKind::kShm, 2_GBps, 10.0_us};
  type.nic_count = 1;
  type.nic_rate = 200_Mbps;
  cluster.server_types["cpu-2"] = type;
  for (int i = 0; i < servers; ++i)
    cluster.servers.push_back({"s" + std::to_string(i), "cpu-2", ""});
  cluster.fabric.tiers = 2;
  cluster.fabric.servers_per_leaf = 2;
  cluster.fabric.spines = 2;
  cluster.fabric.uplink = 100_Mbps;
  cluster.fabric.hop_latency = 20.0_us;
  return cluster;
}

inline workload::Strategy make_strategy(int tp, int pp, int dp, int micro_batch) {
  workload::Strategy strategy;
  strategy.tp = tp;
  strategy.pp = pp;
  strategy.dp = dp;
  strategy.micro_batch = micro_batch;
  return strategy;
}

}  // namespace regatta::plan
