// Sources: torchrun --help; srun(1); deepspeed/launcher/runner.py (hostfile); NCCL user guide,
// NCCL_IB_HCA and NCCL_CROSS_NIC. No sentence in ${NAME:?...} has an apostrophe, which bash takes
// for a quote there.
#include "regatta/planning/plan/internal/launch/launch_servers.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace regatta::plan {
namespace {

constexpr std::size_t kNamesInALine = 8;

std::string server_array(const std::vector<std::string>& names) {
  std::string text = "# In the order of their node ranks.\nSERVERS=(";
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i % kNamesInALine == 0 ? "\n  " : " ") + shell_word(names[i]);
  return text + "\n)\n";
}

std::string printing_lines(int devices) {
  return fmt::format(
      "if [[ ${{1:-}} == --print-hostfile ]]; then\n"
      "  printf '%s slots={}\\n' \"${{SERVERS[@]}}\"\n"
      "  exit\n"
      "fi\n"
      "if [[ ${{1:-}} == --print-servers ]]; then\n"
      "  (IFS=, && echo \"${{SERVERS[*]}}\")\n"
      "  exit\n"
      "fi\n",
      devices);
}

constexpr const char* kSlurmLines =
    "if [[ -n ${SLURM_STEP_ID:-} && -z ${NODE_RANK:-} ]]; then\n"
    "  for i in \"${!SERVERS[@]}\"; do\n"
    "    if [[ ${SERVERS[i]} == \"${SLURMD_NODENAME:-}\" ]]; then NODE_RANK=$i; fi\n"
    "  done\n"
    "  : \"${NODE_RANK:?is not set and ${SLURMD_NODENAME:-this server} is none of the "
    "servers of the plan; give srun --nodelist of --print-servers}\"\n"
    "  MASTER_ADDR=${MASTER_ADDR:-${SERVERS[0]}}\n"
    "fi\n";

}  // namespace

LaunchServers launch_servers(const topo::Cluster& cluster, int servers,
                             const std::vector<std::string>& names,
                             const std::vector<topo::DeviceRef>* placement) {
  LaunchServers placed;
  if (placement != nullptr) {
    for (const topo::DeviceRef& device : *placement) {
      const std::string& name = cluster.servers[device.server.index()].name;
      if (placed.names.empty() || placed.names.back() != name) placed.names.push_back(name);
    }
  } else {
    for (const topo::Server& server : cluster.servers) {
      const bool is_out = std::find(names.begin(), names.end(), server.name) != names.end();
      if (!is_out && static_cast<int>(placed.names.size()) < servers)
        placed.names.push_back(server.name);
    }
  }
  placed.nics = cluster.type_of(ServerId{0}).nic_count;
  placed.rails = cluster.fabric.rails;
  return placed;
}

std::vector<std::string> start_notes(const LaunchInput& input, const std::string& file) {
  if (input.servers == 1) return {};
  std::vector<std::string> lines = {fmt::format(
      "By hand: MASTER_ADDR=FIRST NODE_RANK=I bash {} on server I of {}.", file, input.servers)};
  if (input.placed.names.empty()) return lines;
  lines.push_back(fmt::format(
      "With Slurm: srun --nodes {} --ntasks-per-node 1 --nodelist \"$(bash {} --print-servers)\" "
      "bash {}",
      input.servers, file, file));
  lines.push_back("--print-hostfile writes the servers as a hostfile.");
  return lines;
}

std::string node_rank_lines(const LaunchInput& input) {
  std::string text;
  const std::vector<std::string>& names = input.placed.names;
  if (!names.empty()) text += server_array(names) + printing_lines(input.devices_per_server);
  if (input.servers == 1) return text;
  if (!names.empty()) text += kSlurmLines;
  return text +
         "# The quoted sentences end the script where a value is missing.\n"
         ": \"${MASTER_ADDR:?is not set; set it to the address of the first server}\"\n" +
         fmt::format(
             ": \"${{NODE_RANK:?is not set; set it to the number of this server, 0 to {}}}\"\n",
             input.servers - 1);
}

std::string hostfile_lines(const LaunchInput& input) {
  if (input.placed.names.empty()) {
    return input.servers == 1 ? ""
                              : ": \"${HOSTFILE:?is not set; set it to a file that names the "
                                "servers in the order of their ranks}\"\n";
  }
  std::string text =
      "# In the order of their node ranks.\nif [[ -z ${HOSTFILE:-} ]]; then\n"
      "  HOSTFILE=hostfile\n  cat >\"$HOSTFILE\" <<'END'\n";
  for (const std::string& name : input.placed.names)
    text += fmt::format("{} slots={}\n", name, input.devices_per_server);
  return text + "END\nfi\n";
}

std::string nic_names(const LaunchInput& input) {
  if (input.servers == 1 || input.placed.nics == 0) return "";
  std::string names = "=";
  for (int nic = 0; nic < input.placed.nics; ++nic)
    names += fmt::format("{}mlx5_{}", nic == 0 ? "" : ",", nic);
  return names;
}

std::string nic_lines(const LaunchInput& input) {
  const std::string names = nic_names(input);
  if (names.empty()) return "";
  std::string text = fmt::format(
      "# NIC i serves the devices i, i + {0}, ... and is on rail i mod {1}; ibstat -l lists other "
      "names.\nexport NCCL_IB_HCA=\"${{NCCL_IB_HCA:-{2}}}\"\n",
      input.placed.nics, input.placed.rails, names);
  if (input.placed.rails > 1) text += "export NCCL_CROSS_NIC=\"${NCCL_CROSS_NIC:-0}\"\n";
  return text;
}

FlagArray torchrun_flags(const LaunchInput& input) {
  const bool is_alone = input.servers == 1;
  FlagArray flags("RANKS");
  flags.add("--nnodes", input.servers);
  flags.add("--nproc-per-node", input.devices_per_server);
  flags.add_expanded("--node-rank", is_alone ? "\"${NODE_RANK:-0}\"" : "\"$NODE_RANK\"");
  flags.add_expanded("--master-addr",
                     is_alone ? "\"${MASTER_ADDR:-localhost}\"" : "\"$MASTER_ADDR\"");
  flags.add_expanded("--master-port", "\"${MASTER_PORT:-29500}\"");
  return flags;
}

}  // namespace regatta::plan
