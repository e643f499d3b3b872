// `regatta fabric design`: designs the fabric for a number of GPUs and prints its parts and
// capacity.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/fabric_command.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/output_files.h"
#include "regatta/app/report/fabric_report.h"
#include "regatta/app/report/pages.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/model/topo/fabric_summary.h"
#include "regatta/model/topo/graph.h"
#include "regatta/model/topo/presets.h"
#include "regatta/network/fabric/design.h"

namespace regatta::cli {
namespace {

// The command line; absent values come from the preset.
struct DesignOptions {
  std::string preset = "plain";
  long long gpus = 0;
  std::optional<int> rails;
  std::optional<int> planes;
  std::optional<int> servers_gpus;
  std::optional<int> domain_servers;
  std::optional<int> servers_per_leaf;
  std::optional<int> tiers;
  std::string chip;
  std::string port;
  std::string uplink;
  std::optional<double> oversubscription;
  std::optional<double> spine_oversubscription;
  std::string device = "h100-sxm";
  std::string name;
  std::string out;
  std::string svg;
  std::string ports;
  bool json = false;
};

Status set_rate(const std::string& flag, const std::string& text, BytesPerSecond& rate) {
  if (text.empty()) return {};
  const auto parsed = parse_bytes_per_second(text);
  if (!parsed) return Error{Code::kInvalidInput, flag + ": " + parsed.error().message};
  // 0 stands for a rate that is not given.
  if (!(parsed->value >= 1))
    return Error{Code::kInvalidInput,
                 fmt::format("{}: {} carries nothing; take a rate like {}", flag,
                             printable(text, 40), flag == "--chip" ? "51.2Tbps" : "400Gbps")};
  rate = *parsed;
  return {};
}

Result<fabric::DesignRequest> request_of(const DesignOptions& options) {
  using namespace literals;  // NOLINT(google-build-using-namespace): one function
  fabric::DesignRequest request{.chip = 51'200_Gbps, .port = 400_Gbps};
  if (options.preset != "plain") request = fabric::published_design(options.preset);
  request.rails = options.rails.value_or(request.rails);
  request.planes = options.planes.value_or(request.planes);
  request.gpus_per_server = options.servers_gpus.value_or(request.gpus_per_server);
  request.domain_servers = options.domain_servers.value_or(request.domain_servers);
  if (const long long most = 1LL * topo::kMaxServers * request.gpus_per_server; options.gpus > most)
    return Error{Code::kInvalidInput,
                 fmt::format("gpus {} make more than {} servers; take at most {}", options.gpus,
                             topo::kMaxServers, most)};
  request.gpus = static_cast<int>(options.gpus);
  request.servers_per_leaf = options.servers_per_leaf.value_or(request.servers_per_leaf);
  request.least_tiers = options.tiers.value_or(request.least_tiers);
  request.oversubscription = options.oversubscription.value_or(request.oversubscription);
  request.spine_oversubscription =
      options.spine_oversubscription.value_or(request.spine_oversubscription);
  REGATTA_TRY_DO(set_rate("--chip", options.chip, request.chip));
  REGATTA_TRY_DO(set_rate("--port", options.port, request.port));
  REGATTA_TRY_DO(set_rate("--uplink", options.uplink, request.uplink));
  return request;
}

std::string cable_table(const topo::Graph& graph) {
  std::string table = fabric::cable_heading();
  fabric::for_each_cable(
      graph, [&table](const fabric::CableEntry& cable) { table += fabric::cable_line(cable); });
  return table;
}

std::vector<OutputFile> outputs_of(const DesignOptions& options) {
  return {{"--out", options.out}, {"--svg", options.svg}, {"--cables", options.ports}};
}

Status write_files(const report::FabricDesignResult& drawn, const DesignOptions& options) {
  const std::vector<OutputFile> asked = outputs_of(options);
  OutputFiles outputs;
  outputs.add(asked[0], [&] {
    return fabric::cluster_text(drawn.design, drawn.cluster.name, options.device);
  });
  outputs.add(asked[1], [&] { return report::fabric_svg(drawn.cluster); });
  outputs.add(asked[2], [&] { return cable_table(drawn.graph); });
  return outputs.write();
}

Result<report::FabricDesignResult> draw(const DesignOptions& options) {
  REGATTA_TRY(request, request_of(options));
  REGATTA_TRY(design, fabric::design_fabric(request));
  report::FabricDesignResult drawn{.design = design, .cluster = {}, .graph = {}, .summary = {}};
  const std::string name =
      options.name.empty() ? fmt::format("fabric-{}", options.gpus) : options.name;
  drawn.cluster = fabric::cluster_of(design, name, options.device);
  drawn.graph = topo::build_graph(drawn.cluster);
  drawn.summary = topo::summarize_fabric(drawn.cluster, drawn.graph);
  return drawn;
}

int design(const DesignOptions& options) {
  if (const Status good = check_outputs(outputs_of(options), {}); !good)
    return report_error(good.error());
  const auto drawn = draw(options);
  if (!drawn) return report_error(drawn.error());
  if (const Status written = write_files(*drawn, options); !written)
    return report_error(written.error());
  if (options.json) {
    fmt::print("{}\n", report::fabric_design_json(*drawn).dump(2));
    return 0;
  }
  fmt::print("{}", report::fabric_design_text(*drawn));
  for (const OutputFile& file : outputs_of(options))
    if (!file.path.empty()) fmt::print("written: {}\n", file.path);
  return 0;
}

// A valid name of a cluster file.
CLI::Validator cluster_name() {
  const auto check = [](std::string& text) -> std::string {
    const bool fits = !text.empty() && text.size() <= 32 &&
                      text.find_first_not_of(
                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                          "0123456789-_") == std::string::npos;
    return fits ? "" : "'" + printable(text, 60) + "' is not up to 32 letters, digits, '-', '_'";
  };
  return {check, ""};
}

// request_of() reports a count above a fabric's limit, with the most that its servers hold.
CLI::Validator gpu_count() {
  const CLI::Validator whole = whole_number(1, 1'000'000'000'000'000);
  const auto check = [whole](std::string& text) -> std::string {
    if (whole(text).empty()) return {};
    return "'" + printable(text, 60) + "' is no number of GPUs; write a whole one, like 1024";
  };
  return {check, ""};
}

void add_shape(CLI::App& command, DesignOptions& options) {
  command.add_option("--gpus", options.gpus, "Number of GPUs, each with a NIC")
      ->type_name("N")
      ->required()
      ->check(gpu_count());
  std::vector<std::string> presets = fabric::published_designs();
  presets.insert(presets.begin(), "plain");
  command
      .add_option("--preset", options.preset,
                  "Published fabric to start from: " + join(presets, ", "))
      ->type_name("NAME")
      ->check(one_of(presets));
  command
      .add_option("--gpus-per-server,--servers-gpus", options.servers_gpus,
                  "GPUs per server (default: 8; --servers-gpus is the old name)")
      ->type_name("N")
      ->check(whole_number(1, 64));
  command
      .add_option("--servers-per-domain", options.domain_servers,
                  "Servers that NVLink joins; a block holds whole domains (default: 1)")
      ->type_name("N")
      ->check(whole_number(1, 32768));
  command
      .add_option("--rails", options.rails,
                  "Leaves per block of servers: GPU i uses leaf i mod N (default: 8)")
      ->type_name("N")
      ->check(whole_number(1, 64));
  command
      .add_option("--planes", options.planes,
                  "Ports per NIC, each in a fabric of its own (default: 1)")
      ->type_name("N")
      ->check(whole_number(1, 64));
  command
      .add_option("--tiers", options.tiers,
                  "Least number of switch tiers, up to 3 (default: as few as possible)")
      ->type_name("N")
      ->check(whole_number(1, 3));
  command
      .add_option("--servers-per-leaf", options.servers_per_leaf,
                  "Servers per leaf (default: as many as fit, evenly)")
      ->type_name("N")
      ->check(whole_number(1, 32768));
}

void add_rates(CLI::App& command, DesignOptions& options) {
  command.add_option("--chip", options.chip, "Capacity of a switch (default: 51.2Tbps)")
      ->type_name("RATE")
      ->check(not_empty());
  command.add_option("--port", options.port, "Rate of a NIC port (default: 400Gbps)")
      ->type_name("RATE")
      ->check(not_empty());
  command
      .add_option("--uplink", options.uplink, "Rate of a cable between switches (default: --port)")
      ->type_name("RATE")
      ->check(not_empty());
  command
      .add_option("--oversubscription", options.oversubscription,
                  "Highest ratio at leaves: rate of NICs to rate of uplinks (default: 1)")
      ->type_name("RATIO")
      ->check(number_up_to(1000));
  command
      .add_option("--spine-oversubscription", options.spine_oversubscription,
                  "Highest ratio at spines (default: 1)")
      ->type_name("RATIO")
      ->check(number_up_to(1000));
}

void add_outputs(CLI::App& command, DesignOptions& options) {
  command.add_option("--name", options.name, "Name of the cluster (default: fabric-GPUS)")
      ->type_name("NAME")
      ->check(cluster_name());
  command.add_option("--device", options.device, "Type of the GPUs in the cluster file")
      ->type_name("NAME")
      ->capture_default_str()
      ->check(one_of(topo::device_preset_names()));
  command.add_option("--out", options.out, "Write the cluster file")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_option("--svg", options.svg, "Write a drawing of the fabric")
      ->type_name("FILE")
      ->check(not_empty());
  command
      .add_option("--cables,--ports", options.ports,
                  "Write a CSV line for each cable: its ports (--ports is the old name)")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_flag("--json", options.json, "Print JSON");
}

}  // namespace

void add_fabric_design(CLI::App& fabric, int& exit_status) {
  const auto options = std::make_shared<DesignOptions>();
  CLI::App* command =
      add_command(fabric, "design", "Design the fabric for a number of GPUs",
                  "regatta fabric design --gpus 1024 --out cluster.yaml --cables cables.csv\n"
                  "  regatta fabric design --gpus 15360 --preset dual-plane --svg fabric.svg",
                  [options, &exit_status] { exit_status = design(*options); });
  add_shape(*command, *options);
  add_rates(*command, *options);
  add_outputs(*command, *options);
}

}  // namespace regatta::cli
