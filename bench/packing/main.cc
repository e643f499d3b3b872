// bench/packing/main.cc: replays the trace openb with every policy and prints a Markdown table.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_program.h"
#include "bench/packing/packing_bound.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/packing/cluster_tables.h"
#include "regatta/platform/packing/packing_replay.h"

namespace regatta::packing {
namespace {

constexpr const char* kUsage =
    "usage: regatta-packing FOLDER [SEEDS [FIRST_SEED [COPIES [WORKLOAD...]]]]\n"
    "FOLDER holds the tables of the trace openb; by default 10 seeds from 42 on, one\n"
    "copy of the nodes, all workloads\n";
constexpr std::size_t kMostArguments = 100;
const std::vector<std::string> kWorkloads = {
    "default",    "cpu0",       "cpu050",     "cpu100",      "cpu200",     "cpu250",
    "gpushare40", "gpushare60", "gpushare80", "gpushare100", "gpuspec10",  "gpuspec20",
    "gpuspec25",  "gpuspec33",  "multigpu20", "multigpu30",  "multigpu40", "multigpu50"};

// The published mean of the policy at 100 % arrivals, as text; "-" where there is none.
std::string published(const std::string& table, const std::string& workload,
                      const std::string& policy) {
  const std::string key = workload + "," + policy + ",100,";
  const std::size_t at = table.find("\n" + key);
  if (at == std::string::npos) return "-";
  const std::size_t start = at + 1 + key.size();
  return table.substr(start, table.find(',', start) - start);
}

// Pods until their requests reach the GPU capacity.
std::vector<Pod> first_arrivals(const std::vector<GpuNode>& nodes, const std::vector<Pod>& pods,
                                std::uint64_t seed) {
  std::vector<Pod> arrivals = resample_pods(nodes, pods, kPackingLoad, seed);
  double left = 0;
  for (const GpuNode& node : nodes)
    left += node.gpus * kGpuMilli;
  std::size_t count = 0;
  while (count < arrivals.size() && left > 0)
    left -= arrivals[count++].gpu_request_milli();
  arrivals.resize(count);
  return arrivals;
}

struct Seeds {
  std::uint64_t first = 42;
  int count = 10;
};

Status print_workload(const std::filesystem::path& folder, const std::string& workload, Seeds seeds,
                      const std::vector<GpuNode>& nodes) {
  const std::string file =
      "openb_pod_list_" + workload + (workload == "default" ? ".csv" : ".compact.csv");
  REGATTA_TRY(text, bench_program::read_text(folder / file));
  REGATTA_TRY(pods, read_pods(text, file));
  REGATTA_TRY(means, bench_program::read_text(folder / "fgd_published_alloc.csv"));
  std::string line = fmt::format("| {} |", workload);
  double rate = 0;
  for (const auto& [policy_name, paper_name] :
       {std::pair{"random", "Random"}, {"best_fit", "BestFit"}, {"fgd", "FGD"}, {"regatta", "-"}}) {
    REGATTA_TRY(policy, find_placement_policy(policy_name));
    double share = 0;
    long long decisions = 0;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < seeds.count; ++i) {
      REGATTA_TRY(result,
                  replay_packing(nodes, pods, policy, seeds.first + static_cast<unsigned>(i)));
      share += result.allocated_share / seeds.count;
      decisions += result.decisions;
    }
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    rate = static_cast<double>(decisions) / spent.count();
    line += fmt::format(" {:.2f} | {} |", 100 * share, published(means, workload, paper_name));
  }
  line.resize(line.rfind(" - |"));
  fmt::print("{} {:.2f} | {:.0f} |\n", line,
             100 * packing_bound(nodes, first_arrivals(nodes, pods, seeds.first)), rate);
  std::fflush(stdout);
  return {};
}

Status run(bench_program::Arguments arguments) {
  REGATTA_TRY_DO(bench_program::check_rest(arguments, kMostArguments));
  const std::filesystem::path folder = arguments[0];
  Seeds seeds;
  if (arguments.size() > 1) {
    REGATTA_TRY(count, bench_program::number_in("SEEDS", arguments[1], {}));
    seeds.count = count;
  }
  if (arguments.size() > 2) {
    REGATTA_TRY(first, bench_program::number_in("FIRST_SEED", arguments[2], {.low = 0}));
    seeds.first = static_cast<std::uint64_t>(first);
  }
  REGATTA_TRY(text, bench_program::read_text(folder / "openb_node_list_gpu_node.csv"));
  REGATTA_TRY(trace_nodes, read_nodes(text, "openb_node_list_gpu_node.csv"));
  REGATTA_TRY(copies, bench_program::number_in("COPIES", arguments.size() > 3 ? arguments[3] : "1",
                                               {1, 100}));
  std::vector<GpuNode> nodes;
  for (int i = 0; i < copies; ++i)
    nodes.insert(nodes.end(), trace_nodes.begin(), trace_nodes.end());
  fmt::print(
      "| workload | random | published | best fit | published | FGD | published | regatta | upper "
      "bound | decisions/s |\n|---|---|---|---|---|---|---|---|---|---|\n");
  std::vector<std::string> workloads(
      arguments.begin() + std::min<std::ptrdiff_t>(4, std::ssize(arguments)), arguments.end());
  for (const std::string& workload : workloads.empty() ? kWorkloads : workloads)
    REGATTA_TRY_DO(print_workload(folder, workload, seeds, nodes));
  return {};
}

}  // namespace
}  // namespace regatta::packing

int main(int argc, char** argv) {
  return regatta::bench_program::run_program(argc, argv, regatta::packing::kUsage, 1,
                                             regatta::packing::run);
}
