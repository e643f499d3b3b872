// `regatta fabric design`: the fabric for a number of GPUs, what it is made of and what it carries.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/cli/arguments.h"
#include "regatta/cli/counted.h"
#include "regatta/cli/fabric_command.h"
#include "regatta/cli/load.h"
#include "regatta/cli/outputs.h"
#include "regatta/core/text.h"
#include "regatta/core/units_text.h"
#include "regatta/fabric/cable_map.h"
#include "regatta/fabric/design.h"
#include "regatta/report/fabric_svg.h"
#include "regatta/topo/cluster_yaml.h"
#include "regatta/topo/fabric_summary.h"
#include "regatta/topo/graph.h"
#include "regatta/topo/presets.h"

namespace regatta::cli {
namespace {

using nlohmann::json;

// As given on the command line; what is not leaves what the preset says.
struct Options {
  std::string preset = "plain";
  long long gpus = 0;
  std::optional<int> rails;
  std::optional<int> planes;
  std::optional<int> servers_gpus;
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

// A design with what its graph says of it.
struct Drawn {
  fabric::Design design;
  topo::Cluster cluster;
  topo::Graph graph;
  topo::FabricSummary summary;
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

Result<fabric::DesignRequest> request_of(const Options& options) {
  using namespace literals;  // NOLINT(google-build-using-namespace): one function
  fabric::DesignRequest request{.chip = 51'200_Gbps, .port = 400_Gbps};
  if (options.preset != "plain") request = fabric::published_design(options.preset);
  request.rails = options.rails.value_or(request.rails);
  request.planes = options.planes.value_or(request.planes);
  request.gpus_per_server = options.servers_gpus.value_or(request.gpus_per_server);
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

std::string ratio_text(double ratio) {
  return ratio <= 0 ? "" : fmt::format("{:.4g} to 1", ratio);
}

std::string ports_text(double count, BytesPerSecond rate) {
  return fmt::format("{:.0f} x {}", count, format_bits_per_second(rate));
}

// Of a full switch of each tier.
void print_tiers(const Drawn& drawn) {
  const fabric::Design& design = drawn.design;
  const topo::Fabric& fabric = design.fabric;
  const fabric::DesignRequest& request = design.request;
  const int nics =
      fabric.servers_per_leaf * request.gpus_per_server * request.planes / fabric.rails;
  std::vector<std::vector<std::string>> rows = {
      {"tier", "switches", "down", "up", "oversubscribed", "ports free"}};
  const bool has_spines = fabric.tiers >= 2;
  rows.push_back({"leaf", std::to_string(design.leaves), ports_text(nics, request.port),
                  has_spines ? ports_text(uplinks_of_leaf(fabric), request.uplink) : "-",
                  ratio_text(drawn.summary.leaf_oversubscription),
                  ports_text(design.leaf_free, request.port)});
  if (has_spines) {
    const int leaves =
        (fabric.tiers == 3 ? fabric.leaves_per_group : design.leaves) / fabric.planes;
    const int up = fabric.tiers == 3 ? uplinks_of_group(fabric) / fabric.spines : 0;
    rows.push_back({"spine", std::to_string(design.spines),
                    ports_text(leaves * fabric.uplink_cables, request.uplink),
                    up > 0 ? ports_text(up, request.uplink) : "-",
                    ratio_text(drawn.summary.spine_oversubscription),
                    ports_text(design.spine_free, request.uplink)});
  }
  if (fabric.tiers == 3)
    rows.push_back({"super-spine", std::to_string(design.super_spines),
                    ports_text(design.groups * fabric.super_uplink_cables, request.uplink), "-", "",
                    ports_text(design.super_free, request.uplink)});
  fmt::print("{}", format_table(rows));
}

struct Cables {
  std::string kind;
  long long count;
  BytesPerSecond rate;
};

std::vector<Cables> cables_of(const fabric::Design& design) {
  std::vector<Cables> cables = {
      {"server to leaf", design.server_cables, design.request.port},
      {"leaf to spine", design.leaf_cables, design.request.uplink},
      {"spine to super-spine", design.spine_cables, design.request.uplink}};
  std::erase_if(cables, [](const Cables& one) { return one.count == 0; });
  return cables;
}

long long switches_of(const fabric::Design& design) {
  return static_cast<long long>(design.leaves) + design.spines + design.super_spines;
}

void print_parts(const Drawn& drawn) {
  const fabric::Design& design = drawn.design;
  std::vector<std::vector<std::string>> rows = {{"part", "count", "rate", "transceivers"}};
  rows.push_back({"switch", std::to_string(switches_of(design)),
                  format_bits_per_second(design.request.chip), ""});
  for (const Cables& one : cables_of(design))
    rows.push_back({"cable, " + one.kind, std::to_string(one.count),
                    format_bits_per_second(one.rate), std::to_string(2 * one.count)});
  fmt::print("{}", format_table(rows));
}

void print_distances(const Drawn& drawn) {
  std::vector<std::vector<std::string>> rows = {{"from s0 to", "links", "latency", "narrowest"}};
  for (const topo::Distance& distance : drawn.summary.distances)
    rows.push_back({distance.to, std::to_string(distance.hops), format_seconds(distance.latency),
                    format_bits_per_second(distance.narrowest)});
  if (rows.size() > 1) fmt::print("\n{}", format_table(rows));
}

void print_design(const Drawn& drawn, const Options& options) {
  const fabric::Design& design = drawn.design;
  const fabric::DesignRequest& request = design.request;
  fmt::print("{}: {} of {}, {} of switches, {}{}\n", counted(request.gpus, "GPU", "GPUs"),
             counted(design.servers, "server", "servers"), request.gpus_per_server,
             counted(design.fabric.tiers, "tier", "tiers"), counted(request.rails, "rail", "rails"),
             request.planes > 1 ? fmt::format(", {} planes", request.planes) : "");
  const int in_block = design.fabric.servers_per_leaf * request.gpus_per_server;
  fmt::print("{} of up to {} GPUs on {} each; {}\n\n", counted(design.blocks, "block", "blocks"),
             in_block, counted(design.fabric.rails, "leaf", "leaves"),
             design.fabric.tiers < 3
                 ? "one group"
                 : fmt::format("{} of up to {} blocks", counted(design.groups, "group", "groups"),
                               design.fabric.leaves_per_group / design.fabric.rails));
  if (!request.joins_rails)
    fmt::print("no switch joins two rails: servers hand traffic from one to another inside\n\n");
  print_tiers(drawn);
  fmt::print("\n");
  print_parts(drawn);
  print_distances(drawn);
  fmt::print("\nbisection bandwidth: {} in each direction\n",
             format_bits_per_second(drawn.summary.bisection));
  fmt::print("grows to {} GPUs with the cables that are there left as they are\n",
             design.gpus_most);
  for (const std::string& file : {options.out, options.svg, options.ports})
    if (!file.empty()) fmt::print("written: {}\n", file);
}

json to_json(const Drawn& drawn) {
  const fabric::Design& design = drawn.design;
  const fabric::DesignRequest& request = design.request;
  const topo::Fabric& fabric = design.fabric;
  json cables = json::array();
  for (const Cables& one : cables_of(design))
    cables.push_back({{"kind", one.kind},
                      {"count", one.count},
                      {"rate_Bps", one.rate.value},
                      {"transceivers", 2 * one.count}});
  json distances = json::array();
  for (const topo::Distance& distance : drawn.summary.distances)
    distances.push_back({{"to", distance.to},
                         {"links", distance.hops},
                         {"latency_s", distance.latency.value},
                         {"narrowest_Bps", distance.narrowest.value}});
  return {
      {"gpus", request.gpus},
      {"servers", design.servers},
      {"gpus_per_server", request.gpus_per_server},
      {"rails", request.rails},
      {"planes", request.planes},
      {"joins_rails", request.joins_rails},
      {"chip_Bps", request.chip.value},
      {"port_Bps", request.port.value},
      {"uplink_Bps", request.uplink.value},
      {"tiers", fabric.tiers},
      {"blocks", design.blocks},
      {"groups", design.groups},
      {"servers_per_leaf", fabric.servers_per_leaf},
      {"leaves", design.leaves},
      {"spines", design.spines},
      {"super_spines", design.super_spines},
      {"switches", switches_of(design)},
      {"uplink_cables", fabric.uplink_cables},
      {"super_uplink_cables", fabric.super_uplink_cables},
      {"leaf_oversubscription", drawn.summary.leaf_oversubscription},
      {"spine_oversubscription", drawn.summary.spine_oversubscription},
      {"bisection_Bps", drawn.summary.bisection.value},
      {"cables", cables},
      {"ports_free",
       {{"leaf", design.leaf_free}, {"spine", design.spine_free}, {"super", design.super_free}}},
      {"gpus_most", design.gpus_most},
      {"distances", distances}};
}

std::string cable_table(const topo::Graph& graph) {
  std::string table = fabric::cable_heading();
  fabric::for_each_cable(
      graph, [&table](const fabric::CableEntry& cable) { table += fabric::cable_line(cable); });
  return table;
}

std::vector<Output> outputs_of(const Options& options) {
  return {{"--out", options.out}, {"--svg", options.svg}, {"--ports", options.ports}};
}

Status write_files(const Drawn& drawn, const Options& options) {
  const std::vector<Output> asked = outputs_of(options);
  Outputs outputs;
  outputs.add(asked[0], [&] {
    return fabric::cluster_text(drawn.design, drawn.cluster.name, options.device);
  });
  outputs.add(asked[1], [&] { return report::fabric_svg(drawn.cluster); });
  outputs.add(asked[2], [&] { return cable_table(drawn.graph); });
  return outputs.write();
}

Result<Drawn> draw(const Options& options) {
  REGATTA_TRY(request, request_of(options));
  REGATTA_TRY(design, fabric::design_fabric(request));
  Drawn drawn{.design = design, .cluster = {}, .graph = {}, .summary = {}};
  const std::string name =
      options.name.empty() ? fmt::format("fabric-{}", options.gpus) : options.name;
  drawn.cluster = fabric::cluster_of(design, name, options.device);
  drawn.graph = topo::build_graph(drawn.cluster);
  drawn.summary = topo::summarize_fabric(drawn.cluster, drawn.graph);
  return drawn;
}

int design(const Options& options) {
  if (const Status good = check_outputs(outputs_of(options), {}); !good)
    return report_error(good.error());
  const auto drawn = draw(options);
  if (!drawn) return report_error(drawn.error());
  if (const Status written = write_files(*drawn, options); !written)
    return report_error(written.error());
  if (options.json) {
    fmt::print("{}\n", to_json(*drawn).dump(2));
  } else {
    print_design(*drawn, options);
  }
  return 0;
}

// A name as a cluster file takes it.
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

// What is more than a fabric can have is told with what its servers take.
CLI::Validator gpu_count() {
  const CLI::Validator whole = whole_number(1, 1'000'000'000'000'000);
  const auto check = [whole](std::string& text) -> std::string {
    if (whole(text).empty()) return {};
    return "'" + printable(text, 60) + "' is no number of GPUs; write a whole one, like 1024";
  };
  return {check, ""};
}

void add_shape(CLI::App& command, Options& options) {
  command.add_option("--gpus", options.gpus, "GPUs, each with a NIC, 8 to 65536 and more")
      ->type_name("N")
      ->required()
      ->check(gpu_count());
  std::vector<std::string> presets = fabric::published_designs();
  presets.insert(presets.begin(), "plain");
  command
      .add_option("--preset", options.preset,
                  "Start from a published fabric: " + join(presets, ", ") +
                      "; other options then override it")
      ->type_name("NAME")
      ->check(one_of(presets));
  command.add_option("--servers-gpus", options.servers_gpus, "GPUs of a server (default: 8)")
      ->type_name("N")
      ->check(whole_number(1, 64));
  command
      .add_option("--rails", options.rails,
                  "Leaves of a block of servers: GPU i on leaf i mod N (default: 8)")
      ->type_name("N")
      ->check(whole_number(1, 64));
  command
      .add_option("--planes", options.planes,
                  "Ports of a NIC, each into a fabric of its own (default: 1)")
      ->type_name("N")
      ->check(whole_number(1, 64));
  command
      .add_option("--tiers", options.tiers,
                  "Tiers of switches at least; 3 are the most (default: as few as do)")
      ->type_name("N")
      ->check(whole_number(1, 3));
  command
      .add_option("--servers-per-leaf", options.servers_per_leaf,
                  "Servers below a leaf (default: as many as fit, evenly)")
      ->type_name("N")
      ->check(whole_number(1, 32768));
}

void add_rates(CLI::App& command, Options& options) {
  command.add_option("--chip", options.chip, "What a switch carries (default: 51.2Tbps)")
      ->type_name("RATE")
      ->check(not_empty());
  command.add_option("--port", options.port, "Of a NIC's port (default: 400Gbps)")
      ->type_name("RATE")
      ->check(not_empty());
  command.add_option("--uplink", options.uplink, "Of a cable between switches (default: --port)")
      ->type_name("RATE")
      ->check(not_empty());
  command
      .add_option("--oversubscription", options.oversubscription,
                  "Of leaves, at most: NICs below over uplinks (default: 1)")
      ->type_name("RATIO")
      ->check(number_up_to(1000));
  command
      .add_option("--spine-oversubscription", options.spine_oversubscription,
                  "The same of spines (default: 1)")
      ->type_name("RATIO")
      ->check(number_up_to(1000));
}

void add_outputs(CLI::App& command, Options& options) {
  command.add_option("--name", options.name, "Of the cluster (default: fabric-GPUS)")
      ->type_name("NAME")
      ->check(cluster_name());
  command.add_option("--device", options.device, "The GPUs of the cluster file")
      ->type_name("NAME")
      ->capture_default_str()
      ->check(one_of(topo::device_preset_names()));
  command.add_option("--out", options.out, "Write the cluster file, which all commands read")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_option("--svg", options.svg, "Draw the fabric")
      ->type_name("FILE")
      ->check(not_empty());
  command
      .add_option("--ports", options.ports,
                  "Write which port is cabled to which, as CSV, a line a cable")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_flag("--json", options.json, "Print JSON");
}

}  // namespace

void add_fabric_design(CLI::App& fabric, int& exit_status) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(fabric, "design", "Design the fabric for a number of GPUs",
                  "regatta fabric design --gpus 1024 --out cluster.yaml --ports ports.csv\n"
                  "  regatta fabric design --gpus 15360 --preset dual-plane --svg fabric.svg",
                  [options, &exit_status] { exit_status = design(*options); });
  add_shape(*command, *options);
  add_rates(*command, *options);
  add_outputs(*command, *options);
}

}  // namespace regatta::cli
