#include "regatta/network/simulate/scenario_yaml.h"

#include <cmath>
#include <set>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"

namespace regatta::simulate {
namespace {

constexpr int kMostMtu = 65'535;
constexpr NumberRange kDurations{.low = 0, .high = kLatestTime.value};
constexpr NumberRange kGaps{.low = 0, .high = 100};
constexpr NumberRange kSizes{.low = 1, .high = 0x1p50};  // of messages: sums of them stay exact
constexpr NumberRange kBuffers{.low = 1, .high = 0x1p40};

// The name by which the file gives a key: the old one is accepted until the next minor version.
const char* given_name(const YamlMap& map, const char* name, const char* old_name) {
  if (!map.has(old_name)) return name;
  if (map.has(name))
    map.fail(old_name, fmt::format("old name of {}, which is given too; remove it", name));
  return old_name;
}

bool read_aggregate(const YamlMap& map) {
  return map.boolean_or(given_name(map, "aggregate", "fold"), true);
}

const Choices<TrafficPattern>& patterns() {
  static const Choices<TrafficPattern> all = {
      {"ring_all_reduce", TrafficPattern::kRing},
      {"tree_all_reduce", TrafficPattern::kTree},
      {"halving_doubling_all_reduce", TrafficPattern::kHalvingDoubling},
      {"hierarchical_all_reduce", TrafficPattern::kHierarchical},
      {"all_to_all", TrafficPattern::kAllToAll},
      {"pairwise_all_to_all", TrafficPattern::kPairwise},
      {"rail_all_to_all", TrafficPattern::kRail},
      {"permutation", TrafficPattern::kPermutation},
      {"incast", TrafficPattern::kIncast},
      {"message", TrafficPattern::kMessage},
      {"trace", TrafficPattern::kTrace},
      {"step", TrafficPattern::kStep}};
  return all;
}

Routing read_routing(const YamlMap& map) {
  map.allow({"policy", "connections", "ports", "hash_seeds", "flowlet_gap"});
  Routing routing;
  routing.policy = map.choice<RoutePolicy>("policy",
                                           {{"ecmp", RoutePolicy::kEcmp},
                                            {"destination", RoutePolicy::kDestination},
                                            {"spray", RoutePolicy::kSpray},
                                            {"flowlet", RoutePolicy::kFlowlet},
                                            {"adaptive", RoutePolicy::kAdaptive}},
                                           routing.policy);
  routing.connections = map.integer_or("connections", 1, {1, kMostConnections});
  routing.plans_ports = map.choice<bool>("ports", {{"chance", false}, {"planned", true}}, false);
  routing.shares_seed = map.choice<bool>("hash_seeds", {{"own", false}, {"shared", true}}, false);
  routing.flowlet_gap = map.seconds_or("flowlet_gap", routing.flowlet_gap, kGaps);
  if (routing.plans_ports && routing.policy != RoutePolicy::kEcmp)
    map.fail("ports", "only switches that hash (policy: ecmp) use ports; remove it");
  if (routing.shares_seed && routing.policy != RoutePolicy::kEcmp)
    map.fail("hash_seeds", "only switches that hash (policy: ecmp) use seeds; remove it");
  if (map.has("flowlet_gap") && routing.policy != RoutePolicy::kFlowlet)
    map.fail("flowlet_gap", "only policy: flowlet has flowlets; remove it");
  return routing;
}

PacketSettings read_packet(const YamlMap& map) {
  map.allow({"mtu", "header", "lossless", "buffer", "congestion_control", "storm_after"});
  PacketSettings packet;
  packet.mtu = map.bytes("mtu", packet.mtu);
  // Packets may be counted without a header.
  if (map.text("header", "") == "0B")
    packet.header = {0};
  else
    packet.header = map.bytes("header", packet.header);
  packet.is_lossless = map.boolean_or("lossless", packet.is_lossless);
  packet.buffer = map.bytes("buffer", packet.buffer, kBuffers);
  packet.storm_after = map.seconds_or("storm_after", packet.storm_after);
  packet.has_dcqcn =
      map.choice<bool>("congestion_control", {{"none", false}, {"dcqcn", true}}, false);
  if (packet.mtu.value > kMostMtu)
    map.fail("mtu", fmt::format("more than {} bytes; 4KiB and 9000B are usual", kMostMtu));
  if (packet.header.value > kMostMtu)
    map.fail("header", fmt::format("more than {} bytes; 30B to 100B are usual", kMostMtu));
  if (packet.is_lossless && map.has("buffer"))
    map.fail("buffer", "a lossless fabric pauses before it is full; write lossless: false too");
  if (!packet.is_lossless && map.has("storm_after"))
    map.fail("storm_after", "a fabric that drops has no pauses; remove it, or lossless");
  if (!(packet.storm_after.value >= 1e-6 && packet.storm_after.value <= 100))
    map.fail("storm_after", "must be from 1us to 100s; switches have 200ms");
  return packet;
}

SimulatedStep read_step(const YamlMap& item) {
  SimulatedStep step;
  step.tp = item.integer_or("tp", 1, {1, 1024});
  step.pp = item.integer_or("pp", 1, {1, 1024});
  step.dp = item.integer_or("dp", 1, {1, 65'536});
  step.micro_batches = item.integer_or("micro_batches", 1, {1, 65'536});
  step.forward = item.seconds_or("forward", {}, kDurations);
  step.backward = item.seconds_or("backward", {}, kDurations);
  step.optimizer = item.seconds_or("optimizer", {}, kDurations);
  if (step.pp > 1 || item.has("activations"))
    step.activations = item.bytes("activations", {}, kSizes);
  if (step.dp > 1 || item.has("gradients")) step.gradients = item.bytes("gradients", {}, kSizes);
  step.aggregates = read_aggregate(item);
  return step;
}

void read_ranks(const YamlMap& map, TrafficItem& item) {
  if (map.kind("ranks") == YamlKind::kList) {
    item.choice = RankChoice::kListed;
    item.ranks = map.texts("ranks");
    if (item.ranks.empty()) map.fail("ranks", "no device is listed; write one like s0/0");
    return;
  }
  item.choice = map.choice<RankChoice>(
      "ranks",
      {{"all", RankChoice::kAll}, {"servers", RankChoice::kServers}, {"rails", RankChoice::kRails}},
      RankChoice::kAll);
}

// The keys of each pattern beside those of all.
std::vector<std::string> keys_of(TrafficPattern pattern) {
  std::vector<std::string> keys = {"pattern", "name", "start", "after"};
  const auto also = [&](std::initializer_list<const char*> more) {
    keys.insert(keys.end(), more.begin(), more.end());
  };
  switch (pattern) {
    case TrafficPattern::kMessage:
      also({"bytes", "from", "to", "repeat"});
      break;
    case TrafficPattern::kIncast:
      also({"bytes", "ranks", "to", "repeat"});
      break;
    case TrafficPattern::kTrace:
      also({"file"});
      break;
    case TrafficPattern::kStep:
      also({"job", "tp", "pp", "dp", "micro_batches", "forward", "backward", "optimizer",
            "activations", "gradients", "aggregate", "fold"});
      break;
    case TrafficPattern::kAllToAll:
      also({"bytes", "ranks", "repeat", "aggregate", "fold"});
      break;
    default:
      also({"bytes", "ranks", "repeat"});
  }
  return keys;
}

std::string read_end(const YamlMap& map, const char* key, const char* what) {
  if (!map.has(key))
    map.fail(key, fmt::format("missing; name the device that {}, like s0/0", what));
  return map.text(key, "");
}

TrafficItem read_item(const YamlMap& map, std::size_t number) {
  TrafficItem item;
  item.line = map.line();
  item.pattern = map.choice("pattern", patterns());
  map.allow(keys_of(item.pattern));
  item.name = map.text("name", fmt::format("{}-{}", map.text("pattern"), number));
  item.start = map.seconds_or("start", {});
  if (item.start > kLatestTime) map.fail("start", "later than 10^6 s; count from 0");
  item.after = map.text("after", "");
  item.repeat = map.integer_or("repeat", 1, {1, kMostItems});
  if (item.pattern == TrafficPattern::kTrace) {
    if (!map.has("file")) map.fail("file", "missing; name the file of messages, like trace.csv");
    item.trace_file = map.text("file", "");
    return item;
  }
  if (item.pattern == TrafficPattern::kStep) {
    item.job = map.text("job", "");
    if (item.job.empty()) {
      item.step = read_step(map);
      return item;
    }
    item.step.aggregates = read_aggregate(map);
    for (const std::string& key : keys_of(TrafficPattern::kStep)) {
      const bool is_beside = key == "pattern" || key == "name" || key == "start" ||
                             key == "after" || key == "job" || key == "aggregate" || key == "fold";
      if (!is_beside && map.has(key))
        map.fail(key, "comes from the plan of the job; remove it, or job");
    }
    return item;
  }
  item.bytes = map.bytes("bytes", {}, kSizes);
  if (item.pattern == TrafficPattern::kAllToAll) item.aggregates = read_aggregate(map);
  if (item.pattern == TrafficPattern::kMessage) item.from = read_end(map, "from", "sends");
  if (item.pattern == TrafficPattern::kMessage || item.pattern == TrafficPattern::kIncast)
    item.to = read_end(map, "to", "is sent to");
  if (item.pattern != TrafficPattern::kMessage) read_ranks(map, item);
  return item;
}

Failure read_failure(const YamlMap& map) {
  map.allow(
      {"at", "until", "back", "link", "switch", "pausing_nic", "stuck", "local", "converged"});
  const char* const until = given_name(map, "until", "back");
  Failure failure;
  failure.line = map.line();
  if (!map.has("at")) map.fail("at", "missing; write when it fails, like 1ms");
  failure.at = map.seconds_or("at", {});
  failure.until = map.seconds_or(until, failure.until);
  failure.link = map.text("link", "");
  failure.switch_name = map.text("switch", "");
  failure.pausing_nic = map.text(given_name(map, "pausing_nic", "stuck"), "");
  failure.local = map.seconds_or("local", failure.local);
  failure.converged = map.seconds_or("converged", failure.converged);
  if (int{!failure.link.empty()} + int{!failure.switch_name.empty()} +
          int{!failure.pausing_nic.empty()} !=
      1)
    map.fail(
        "link",
        "name either a link or a switch that fails, or pausing_nic: the link of a NIC that pauses");
  if (failure.until <= failure.at) map.fail(until, "not after 'at'; write a later time");
  if (failure.at > kLatestTime) map.fail("at", "later than 10^6 s; count from 0");
  if (std::isfinite(failure.until.value) && failure.until > kLatestTime)
    map.fail(until, "later than 10^6 s; leave it out for a permanent failure");
  for (const char* key : {"local", "converged"}) {
    if (!failure.pausing_nic.empty() && map.has(key))
      map.fail(key, "no switch reroutes around a NIC that pauses; remove it");
    if (map.seconds_or(key, {}) > kLatestTime) map.fail(key, "later than 10^6 s; write less");
  }
  if (failure.converged < failure.local)
    map.fail("converged",
             "less than 'local'; all switches reroute later than those beside the failure");
  return failure;
}

void read_traffic(const YamlMap& root, Scenario& scenario) {
  const std::vector<YamlMap> maps = root.maps("traffic");
  if (maps.empty()) root.fail("traffic", "nothing is sent; list at least one pattern");
  if (maps.size() > kMostItems)
    root.fail("traffic", fmt::format("more than {} items; write them as a trace", kMostItems));
  std::set<std::string> names;
  for (const YamlMap& map : maps) {
    scenario.traffic.push_back(read_item(map, scenario.traffic.size()));
    const TrafficItem& item = scenario.traffic.back();
    if (!item.after.empty() && !names.contains(item.after)) {
      map.fail("after", fmt::format("no item above has the name '{}'; name one, or move it up",
                                    printable(item.after, 40)));
    }
    if (!names.insert(item.name).second)
      map.fail("name", fmt::format("two items have the name '{}'; give each its own",
                                   printable(item.name, 40)));
  }
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text, const std::string& file) {
  REGATTA_TRY(document, YamlDocument::parse(text, file));
  const YamlMap root = document.root();
  root.allow({"name", "cluster", "level", "seed", "routing", "resolution", "packet", "traffic",
              "failures"});
  Scenario scenario;
  scenario.file = file;
  scenario.name = root.text("name", "scenario");
  scenario.cluster = root.text("cluster", "");
  scenario.level = root.choice<Level>(
      "level", {{"flow", Level::kFlow}, {"packet", Level::kPacket}, {"mixed", Level::kMixed}},
      Level::kFlow);
  scenario.seed = static_cast<std::uint64_t>(
      root.long_integer_or("seed", 1, {0, std::numeric_limits<int>::max()}));
  scenario.resolution = root.seconds_or("resolution", {}, kDurations);
  if (root.has("routing")) scenario.routing = read_routing(root.map("routing"));
  if (root.has("packet")) scenario.packet = read_packet(root.map("packet"));
  read_traffic(root, scenario);
  if (root.has("failures"))
    for (const YamlMap& map : root.maps("failures"))
      scenario.failures.push_back(read_failure(map));
  REGATTA_TRY_DO(document.status());
  return scenario;
}

Result<std::vector<TraceMessage>> parse_trace(std::string_view text, const std::string& file) {
  constexpr std::string_view kHeading = "start_s,from,to,bytes";
  std::vector<TraceMessage> messages;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    const auto wrong = [&](std::string_view what) {
      return Error{Code::kInvalidInput, fmt::format("{}:{}: {}", file, number, what)};
    };
    if (number == 1) {
      if (line != kHeading)
        return wrong(fmt::format("the first line must be the heading {}", kHeading));
      continue;
    }
    if (line.empty() || line.starts_with('#')) continue;
    const std::vector<std::string> fields = split(line, ',');
    TraceMessage message{.line = number};
    if (fields.size() != 4) return wrong("not four fields; write start_s,from,to,bytes");
    const auto start = parse_number<double>(fields[0]);
    if (!start || !std::isfinite(*start) || *start < 0)
      return wrong("the start is no number of seconds from 0 on; write it like 0.001");
    if (*start > kLatestTime.value) return wrong("the start is later than 10^6 s; count from 0");
    const auto bytes = parse_number<long long>(fields[3]);
    if (!bytes || *bytes < 0)
      return wrong("the bytes are no whole number from 0 on; write them like 1048576");
    if (static_cast<double>(*bytes) > kSizes.high)
      return wrong("the bytes are more than 1024 TiB, which is 1125899906842624; write fewer");
    message.start.value = *start;
    message.bytes.value = *bytes;
    message.from = fields[1];
    message.to = fields[2];
    messages.push_back(std::move(message));
  }
  if (messages.empty())
    return Error{Code::kInvalidInput, file + ": no message is in it; write at least one line"};
  return messages;
}

}  // namespace regatta::simulate
