// outages/main.cc: `regatta-outages LAB FAULT TRIALS`: breaks parts of a lab while traffic runs,
// and prints, one line of JSON a trial, for how long flows stood still. Somebody else heals.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include <fmt/core.h>
#include <linux/rtnetlink.h>
#include <nlohmann/json.hpp>

#include "damage.h"
#include "lab_net.h"
#include "regatta/base/os/clock.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/heal/internal/route_messages.h"
#include "regatta/network/heal/internal/route_socket.h"
#include "traffic.h"
#include "watch.h"

namespace regatta::outages {
namespace {

constexpr int kFlows = 16;
constexpr std::int64_t kBefore = 50'000'000;  // of quiet traffic in each trial
const std::map<std::string, Damage> kKinds = {{"upstream", Damage::kUpstream},
                                              {"far-end", Damage::kFarEnd},
                                              {"downstream", Damage::kDownstream},
                                              {"silent", Damage::kSilent},
                                              {"black-hole", Damage::kBlackHole}};

struct Options {
  std::string lab;
  std::string fault;
  int trials = 1;
  unsigned seed = 1;
  double hold_s = 0.4;       // from the damage to its end
  double rest_s = 0.6;       // from there to the next trial: longer than the healer's clean period
  bool may_reorder = false;  // who heals may bring hops back in another order
  std::string socket;        // of a healer that wants reports; empty: nobody watches
};

// The kernels of the switches, asked for the way of a flow.
class Kernels {
 public:
  static Result<Kernels> open(const LabNet& net) {
    Kernels kernels(net);
    for (std::size_t n = 0; n < net.graph.nodes.size(); ++n) {
      if (net.graph.nodes[n].kind == topo::NodeKind::kServer) continue;
      const NodeId node{static_cast<int>(n)};
      REGATTA_TRY(space, lab::open_network(net.lab, net.graph.nodes[n].name));
      REGATTA_TRY(socket, heal::RouteSocket::open(space, 0));
      Kernel kernel{std::move(socket), {}, 0};
      REGATTA_TRY_DO(kernel.socket.dump(RTM_GETADDR, [&](const nlmsghdr& message) {
        const auto found = heal::parse_address(message);
        if (!found) return;
        for (const LinkId link : net.graph.links_of[n]) {
          const bool forward = net.graph.links[link.index()].a == node;
          if (topo::address_of(link, !forward) != found->address) continue;
          kernel.link_of[found->interface] = fabric::number_of({link, forward});
          if (net.graph.links[link.index()].a_nic >= 0 || kernel.enters == 0)
            kernel.enters = found->interface;
        }
      }));
      kernels.of_node_.emplace(node, std::move(kernel));
    }
    return kernels;
  }

  // The links between switches that the flow takes now; ends where a kernel has no route.
  std::vector<std::uint32_t> way(const Flow& flow) const {
    std::vector<std::uint32_t> links;
    NodeId at = net_.leaf_of(flow.from);
    while (at != net_.leaf_of(flow.to) && links.size() < 8) {
      const Kernel& kernel = of_node_.at(at);
      std::string question;
      heal::append_question(question,
                            {kernel.enters, flow.tuple.from, flow.tuple.to, flow.tuple.from_port,
                             flow.tuple.to_port, flow.tuple.protocol},
                            9);
      int interface = 0;
      if (!kernel.socket.send(question)) break;
      static_cast<void>(kernel.socket
                            .receive(true,
                                     [&](const nlmsghdr& message) {
                                       interface = heal::parse_answer(message);
                                       return false;
                                     })
                            .has_value());
      const auto link = kernel.link_of.find(interface);
      if (link == kernel.link_of.end()) break;
      links.push_back(link->second);
      at = net_.paths.end_of[link->second];
    }
    return links;
  }

 private:
  struct Kernel {
    heal::RouteSocket socket;
    std::map<int, std::uint32_t> link_of;
    int enters = 0;
  };
  explicit Kernels(const LabNet& net) : net_(net) {}
  const LabNet& net_;
  std::map<NodeId, Kernel> of_node_;
};

// As many each way, between random servers of different leaves, evenly over the paths.
Result<std::vector<Flow>> make_flows(const LabNet& net, std::mt19937& random) {
  const int servers = static_cast<int>(net.lab.servers.size());
  std::map<std::uint32_t, int> used;
  std::vector<Flow> flows;
  while (static_cast<int>(flows.size()) < kFlows) {
    Flow flow;
    flow.from = static_cast<int>(flows.size()) % servers;
    flow.to = static_cast<int>(random() % static_cast<unsigned>(servers));
    if (net.leaf_of(flow.from) == net.leaf_of(flow.to)) continue;
    flow.tuple = {.from = topo::address_of(topo::nic_link(net.graph, ServerId{flow.from}, 0)),
                  .to = topo::address_of(topo::nic_link(net.graph, ServerId{flow.to}, 0)),
                  .to_port = static_cast<std::uint16_t>(30000 + flows.size())};
    const auto uplinks = net.paths.routes.next_hops(net.leaf_of(flow.from), net.leaf_of(flow.to));
    int least = 1 << 20;
    for (const std::uint32_t uplink : uplinks)
      least = std::min(least, used[uplink]);
    auto found =
        find_flow(net, std::move(flow), static_cast<std::uint16_t>(31000 + random() % 9999),
                  [&](const auto& way) { return used[way[1]] == least; });
    if (!found) return Error{Code::kExhausted, "no source port leads a flow where it shall go"};
    ++used[found->way[1]];
    REGATTA_TRY_DO(open_sockets(net, *found));
    flows.push_back(std::move(*found));
  }
  return flows;
}

// A place of this kind of damage that at least one flow meets. `paths`: of the flows, between
// switches; half of the links of each lead up, half down.
Target choose(const LabNet& net, Damage damage,
              const std::vector<std::vector<std::uint32_t>>& paths, std::mt19937& random) {
  const std::vector<std::uint32_t>& path = paths[random() % paths.size()];
  const std::size_t up = path.size() / 2;
  Target target{path[0], {}};
  if (damage == Damage::kDownstream) target.link = path[up + random() % up];
  if (damage == Damage::kBlackHole) target.node = net.paths.end_of[path[random() % up]];
  return target;
}

class Trials {
 public:
  Trials(const LabNet& net, const Options& options, Kernels kernels, std::vector<Flow> flows,
         Flow control)
      : net_(net),
        options_(options),
        kernels_(std::move(kernels)),
        traffic_(std::move(flows), std::move(control)),
        random_(options.seed + 99) {}

  Status run(int trial) {
    const Damage damage = kKinds.at(options_.fault);
    const auto before = paths();
    for (const auto& way : before)
      if (way.size() < 2) return Error{Code::kUnavailable, "a flow has no way; is the lab healthy"};
    const Target target = choose(net_, damage, before, random_);
    traffic_.begin();
    sleep_until(now_ns() + kBefore);
    REGATTA_TRY(blow, inflict(net_, damage, target));
    blow_ = blow;
    const std::int64_t end = now_ns() + static_cast<std::int64_t>(options_.hold_s * 1e9);
    const std::vector<Silence> silences = traffic_.measure(end);
    const auto after = paths();
    REGATTA_TRY_DO(undo(net_, damage, target));
    tell(trial, damage, target, silences, {before, after});
    os::sleep_for(Seconds{options_.rest_s});
    return options_.may_reorder ? Status() : wait_for_order(before);
  }

 private:
  using Ways = std::vector<std::vector<std::uint32_t>>;

  Ways paths() const {
    Ways all;
    for (int i = 0; i < kFlows; ++i)
      all.push_back(kernels_.way(traffic_.flows()[static_cast<std::size_t>(i)]));
    return all;
  }

  void tell(int trial, Damage damage, const Target& target, const std::vector<Silence>& silences,
            const std::pair<Ways, Ways>& paths) {
    std::array<Silence, 3> all{};  // by Meets
    int hits = 0;
    int moved = 0;
    for (std::size_t i = 0; i < kFlows; ++i) {
      const Meets how = meets(net_, damage, target, paths.first[i]);
      hits += how == Meets::kYes ? 1 : 0;
      moved += how == Meets::kNot && paths.first[i] != paths.second[i] ? 1 : 0;
      Silence& worst = all[static_cast<std::size_t>(how)];
      worst.longest_ns = std::max(worst.longest_ns, silences[i].longest_ns);
      worst.with_loss_ns = std::max(worst.with_loss_ns, silences[i].with_loss_ns);
      worst.lost = std::max(worst.lost, silences[i].lost);
      worst.lost_in_a_row = std::max(worst.lost_in_a_row, silences[i].lost_in_a_row);
    }
    const Silence& hit = all[static_cast<std::size_t>(Meets::kYes)];
    const Silence& healthy = all[static_cast<std::size_t>(Meets::kNot)];
    const Silence& against = all[static_cast<std::size_t>(Meets::kAgainst)];
    const auto ms = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
    const std::string where =
        damage == Damage::kBlackHole
            ? net_.graph.nodes[target.node.index()].name
            : heal::to_string(net_.graph,
                              {heal::Place::kLink, target.link, {}, heal::Harm::kBlackHole});
    fmt::print("{}\n", nlohmann::json{{"trial", trial},
                                      {"fault", options_.fault},
                                      {"where", where},
                                      {"outage_ms", ms(hit.longest_ns)},
                                      {"with_loss_ms", ms(hit.with_loss_ns)},
                                      {"lost_in_a_row", hit.lost_in_a_row},
                                      {"hit_flows", hits},
                                      {"against_ms", ms(against.longest_ns)},
                                      {"healthy_ms", ms(healthy.longest_ns)},
                                      {"healthy_lost", healthy.lost},
                                      {"healthy_moved", moved},
                                      {"control_ms", ms(silences.back().longest_ns)},
                                      {"at_s", blow_.at.value},
                                      {"kernel_ms", 1e3 * blow_.took.value}}
                           .dump());
    std::fflush(stdout);
  }

  // Until every flow goes its first way again.
  Status wait_for_order(const Ways& before) {
    for (int tries = 0; tries < 200; ++tries) {
      if (paths() == before) return {};
      os::sleep_for(Seconds{0.05});
    }
    return Error{Code::kTimeout, "the routes did not come back within 10 s; does somebody heal"};
  }

  const LabNet& net_;
  const Options& options_;
  Kernels kernels_;
  Traffic traffic_;
  std::mt19937 random_;
  Blow blow_;
};

Status run(const Options& options) {
  REGATTA_TRY(lab, lab::find(options.lab));
  REGATTA_TRY(graph, lab::graph_of(lab));
  heal::FabricPaths paths(graph);
  LabNet net{std::move(lab), graph, std::move(paths), {}};
  for (const topo::Node& node : graph.nodes)
    net.seeds.push_back(topo::hash_seed(net.lab.name, node.name));
  std::mt19937 random(options.seed);
  REGATTA_TRY(kernels, Kernels::open(net));
  REGATTA_TRY(flows, make_flows(net, random));
  REGATTA_TRY(control, open_control(net, 20002));
  std::unique_ptr<Watch> watch;
  if (!options.socket.empty()) {
    REGATTA_TRY(started, Watch::start(net, options.socket));
    watch = std::move(started);
    fmt::print(stderr, "{} probes every 10 ms\n", watch->probes());
  }
  Trials trials(net, options, std::move(kernels), std::move(flows), std::move(control));
  os::sleep_for(Seconds{0.5});
  for (int trial = 0; trial < options.trials; ++trial)
    REGATTA_TRY_DO(trials.run(trial));
  return {};
}

int main_of(int argc, char** argv) {
  if (argc < 4 || !kKinds.contains(argv[2]) || std::atoi(argv[3]) < 1) {
    fmt::print(stderr,
               "usage: regatta-outages LAB upstream|far-end|downstream|silent|black-hole TRIALS "
               "[--seed N] [--hold S] [--rest S] [--reorder yes] [--report SOCKET]\n");
    return 2;
  }
  Options options{.lab = argv[1], .fault = argv[2], .trials = std::atoi(argv[3])};
  for (int i = 4; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--seed") options.seed = static_cast<unsigned>(std::atoi(argv[i + 1]));
    if (flag == "--hold") options.hold_s = std::atof(argv[i + 1]);
    if (flag == "--rest") options.rest_s = std::atof(argv[i + 1]);
    if (flag == "--report") options.socket = argv[i + 1];
    if (flag == "--reorder") options.may_reorder = std::string(argv[i + 1]) == "yes";
  }
  const Status status = run(options);
  if (!status) fmt::print(stderr, "regatta-outages: {}\n", status.error().message);
  return status ? 0 : 1;
}

}  // namespace
}  // namespace regatta::outages

int main(int argc, char** argv) {
  return regatta::outages::main_of(argc, argv);
}
