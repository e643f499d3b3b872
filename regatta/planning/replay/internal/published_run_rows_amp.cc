// Rows of AMP (Li et al., NeurIPS 2022): 16 devices of four servers in a cloud, a GPT of 24 layers
// under Megatron-LM 1.1.5 with DeepSpeed's pipeline, fp16, no recomputation, batches of 32.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/presets.h"
#include "regatta/planning/replay/internal/published_run_rows.h"

namespace regatta::replay {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace): 50_Gbps reads as the source

// Items of the pipeline in its source: embedding, a reshape, 24 blocks, two reshapes, the output
// layer, the loss.
constexpr int kFirstBlock = 2;
constexpr int kBlocks = 24;

// "0-7-14-20-30": the first item of each stage and the end of the last.
std::vector<int> blocks_of(const std::string& partition) {
  std::vector<int> cuts;
  std::istringstream text(partition);
  for (std::string cut; std::getline(text, cut, '-');)
    cuts.push_back(std::clamp(std::atoi(cut.c_str()) - kFirstBlock, 0, kBlocks));
  std::vector<int> blocks(cuts.size());
  std::adjacent_difference(cuts.begin(), cuts.end(), blocks.begin());
  if (!blocks.empty()) blocks.erase(blocks.begin());
  return blocks;
}

// Four devices and one NIC; the link is what AMP states for a pair (src/het_cluster.py), memory
// what the drivers of that year left (nvidia-smi: T4 15109 MiB, V100 16160 MiB).
topo::ServerType server(const char* name, const char* device, Bytes memory, BytesPerSecond link,
                        BytesPerSecond nic) {
  const topo::DevicePreset* preset = topo::find_device_preset(device);
  REGATTA_CHECK(preset != nullptr);
  topo::ServerType type{.name = name,
                        .device = preset->device,
                        .device_count = 4,
                        .intra = preset->intra,
                        .nic_count = 1,
                        .nic_rate = nic};
  type.intra.bandwidth = link;
  type.device.memory = memory;
  return type;
}

// The servers with V100, if any, come first.
topo::Cluster cluster_of(int v100_servers) {
  topo::Cluster cluster;
  cluster.name = v100_servers > 0 ? "3 p3.8xlarge and 1 g4dn.12xlarge" : "4 g4dn.12xlarge";
  cluster.server_types["p3.8xlarge"] =
      server("p3.8xlarge", "v100-sxm2-16g", 16160_MiB, 170_Gbps, 10_Gbps);
  cluster.server_types["g4dn.12xlarge"] =
      server("g4dn.12xlarge", "t4", 15109_MiB, 50_Gbps, 50_Gbps);
  for (int s = 0; s < 4; ++s)
    cluster.servers.push_back({.name = "s" + std::to_string(s),
                               .type = s < v100_servers ? "p3.8xlarge" : "g4dn.12xlarge"});
  return cluster;
}

}  // namespace

// The third experiment is another model, whose shape is not published with it.
std::vector<PublishedRun> amp_row(RowReader& reader) {
  const std::string experiment = reader.text("experiment");
  if (experiment == "het_model") return {};
  PublishedRun run;
  run.model = gpt(kBlocks, 1024, 16, 1024, 52256);
  run.strategy = {.tp = reader.whole("tp"),
                  .pp = reader.whole("pp"),
                  .dp = reader.whole("dp"),
                  .micro_batch = reader.whole("mbs")};
  run.global_batch = 32;
  run.precision = workload::Precision::kFp16;
  run.stack = "megatron-deepspeed-2020";
  run.cluster = cluster_of(experiment == "homogeneous" ? 0 : 3);
  run.server = run.cluster->server_types.at("g4dn.12xlarge");
  run.layers = blocks_of(reader.text("partition"));
  if (reader.text("measured_s") == "inf") {
    run.quantity = MeasuredQuantity::kFailure;
    run.measured = static_cast<double>(run.server.device.memory.value);
  } else {
    run.measured = reader.positive("measured_s");
  }
  return {run};
}

}  // namespace regatta::replay
