#include "regatta/network/fabric/design.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/network/fabric/internal/design_remedy.h"

namespace regatta::fabric {
namespace {

long long ceil_of(long long a, long long b) {
  return (a + b - 1) / b;
}

// The least whole number that is not below `value`, but for the rounding of its parts.
long long least_above(double value) {
  return static_cast<long long>(std::ceil(value * (1 - 1e-12)));
}

// So many cables to each of so many switches.
struct Spread {
  long long switches = 0;
  long long cables = 0;

  long long all() const { return switches * cables; }
};

// The capacity of a switch, in whole bytes per second.
class Chip {
 public:
  explicit Chip(const DesignRequest& request)
      : chip_(std::llround(request.chip.value)),
        port_(std::llround(request.port.value)),
        uplink_(std::llround(request.uplink.value)),
        nics_(request.gpus_per_server / request.rails),
        request_(request) {}

  long long uplink_ports() const { return chip_ / uplink_; }
  long long nic_ports() const { return chip_ / port_; }
  // A leaf of `servers`, and what it needs above it.
  long long nics(long long servers) const { return servers * nics_; }
  long long uplinks_of(long long servers) const {
    return least_above(static_cast<double>(nics(servers) * port_) /
                       (request_.oversubscription * static_cast<double>(uplink_)));
  }
  bool fits(long long servers, long long uplinks) const {
    return nics(servers) * port_ + uplinks * uplink_ <= chip_;
  }
  long long servers_most() const {
    long long servers = 0;
    while (fits(servers + 1, uplinks_of(servers + 1)))
      ++servers;
    return servers;
  }
  long long leaf_free(long long servers, long long uplinks) const {
    return (chip_ - nics(servers) * port_ - uplinks * uplink_) / port_;
  }

 private:
  long long chip_;
  long long port_;
  long long uplink_;
  long long nics_;  // of a server on a leaf
  const DesignRequest& request_;
};

// Spreads at least `wanted` cables over the fewest switches, the same for each of `switches_below`,
// such that fits(cables) holds and no switch above has more than `ports` ports.
template <typename Fits>
std::optional<Spread> spread(long long wanted, long long switches_below, long long ports,
                             Fits&& fits) {
  std::optional<Spread> best;
  for (long long cables = 1; cables <= wanted && cables * switches_below <= ports; ++cables) {
    const Spread one{ceil_of(wanted, cables), cables};
    if (fits(one.all()) && (!best || one.switches < best->switches)) best = one;
  }
  return best;
}

class Designer {
 public:
  explicit Designer(const DesignRequest& request)
      : chip_(request), columns_(request.joins_rails ? request.rails : 1) {
    design_.request = request;
    design_.servers = request.gpus / request.gpus_per_server;
  }

  Result<Design> make() {
    const DesignRequest& request = design_.request;
    if (request.least_tiers <= 1 && has_one_tier()) return complete();
    const long long fitting = chip_.servers_most();
    is_too_small_ = fitting == 0;
    if (is_too_small_) return too_small();
    const long long most = fitting / request.domain_servers * request.domain_servers;
    if (most == 0)
      return Error{
          Code::kInvalidInput,
          fmt::format("a domain of {} servers does not fit below a leaf of {} beside its uplinks, "
                      "{} servers do; take more rails or a faster chip",
                      request.domain_servers, format_bits_per_second(request.chip), fitting)};
    if (request.servers_per_leaf > most)
      return Error{
          Code::kInvalidInput,
          fmt::format("{} servers do not fit on a leaf of {} beside their uplinks; take "
                      "at most {}",
                      request.servers_per_leaf, format_bits_per_second(request.chip), most)};
    lay_blocks(most);
    if (request.least_tiers <= 2 && has_two_tiers()) return complete();
    if (has_three_tiers()) return complete();
    return too_many();
  }

  // In the last make(), not even one server's NICs fitted on a switch; chip_least() is the slowest
  // chip on which they fit.
  bool is_too_small() const { return is_too_small_; }
  BytesPerSecond chip_least() const {
    const DesignRequest& request = design_.request;
    return request.port * static_cast<double>(chip_.nics(1)) +
           request.uplink * static_cast<double>(chip_.uplinks_of(1));
  }

 private:
  // Rails of the cluster file: a leaf of each block for each.
  int leaves_of_block() const { return design_.request.rails * design_.request.planes; }
  // Leaves that the spines of one plane of the cluster file join.
  long long leaves_of_plane(long long blocks) const { return columns_ * blocks; }
  int planes() const {
    return design_.request.planes * (design_.request.joins_rails ? 1 : design_.request.rails);
  }

  bool has_one_tier() {
    const DesignRequest& request = design_.request;
    // One leaf carries all rails, where it may join them.
    const long long nics = request.joins_rails
                               ? static_cast<long long>(design_.servers) * request.gpus_per_server
                               : chip_.nics(design_.servers);
    if (nics > chip_.nic_ports()) return false;
    design_.fabric.tiers = 1;
    design_.fabric.rails = planes();
    design_.fabric.servers_per_leaf = design_.servers;
    design_.blocks = 1;
    design_.leaf_free = static_cast<int>(chip_.nic_ports() - nics);
    const long long nics_each = nics / design_.servers;
    design_.gpus_most = chip_.nic_ports() / nics_each * request.gpus_per_server;
    return true;
  }

  void lay_blocks(long long most) {
    const long long servers = design_.servers;
    const int asked = design_.request.servers_per_leaf;
    design_.blocks = static_cast<int>(ceil_of(servers, asked > 0 ? asked : most));
    const long long domain = design_.request.domain_servers;
    servers_per_leaf_ = asked > 0 ? asked : ceil_of(servers, design_.blocks * domain) * domain;
    uplinks_ = chip_.uplinks_of(servers_per_leaf_);
    design_.fabric.rails = leaves_of_block();
    design_.fabric.servers_per_leaf = static_cast<int>(servers_per_leaf_);
  }

  bool fits_leaf(long long uplinks) const { return chip_.fits(servers_per_leaf_, uplinks); }

  void set_spines(const Spread& spines) {
    design_.fabric.spines = static_cast<int>(spines.switches) * planes();
    design_.fabric.uplink_cables = static_cast<int>(spines.cables);
    design_.fabric.uplink = design_.request.uplink;
    design_.leaf_free = static_cast<int>(chip_.leaf_free(servers_per_leaf_, spines.all()));
  }

  bool has_two_tiers() {
    const long long ports = chip_.uplink_ports();
    const auto spines = spread(uplinks_, leaves_of_plane(design_.blocks), ports,
                               [&](long long all) { return fits_leaf(all); });
    if (!spines) return false;
    design_.fabric.tiers = 2;
    set_spines(*spines);
    design_.spine_free = static_cast<int>(ports - leaves_of_plane(design_.blocks) * spines->cables);
    const long long blocks = ports / (columns_ * spines->cables);
    design_.gpus_most = blocks * servers_per_leaf_ * design_.request.gpus_per_server;
    return true;
  }

  long long spine_uplinks(long long down) const {
    return least_above(static_cast<double>(down) / design_.request.spine_oversubscription);
  }

  // The most blocks of a group: each leaf with one cable to each spine.
  long long blocks_of_group_most() const {
    long long blocks = 0;
    for (;; ++blocks) {
      const long long down = leaves_of_plane(blocks + 1);
      if (down + spine_uplinks(down) > chip_.uplink_ports()) return blocks;
    }
  }

  bool has_three_tiers() {
    const long long ports = chip_.uplink_ports();
    const long long most = blocks_of_group_most();
    if (most == 0) return false;
    const long long groups = ceil_of(design_.blocks, most);
    const long long blocks = ceil_of(design_.blocks, groups);
    const long long leaves = leaves_of_plane(blocks);
    // As few spines as there is room for with the cables above them.
    std::optional<Spread> spines;
    std::optional<Spread> supers;
    for (long long cables = 1; cables * leaves <= ports; ++cables) {
      const Spread one{ceil_of(uplinks_, cables), cables};
      const long long down = cables * leaves;
      if (!fits_leaf(one.all()) || (spines && one.switches >= spines->switches)) continue;
      const auto above = spread(spine_uplinks(down), groups, ports,
                                [&](long long all) { return down + all <= ports; });
      if (!above) continue;
      spines = one;
      supers = above;
    }
    if (!spines) return false;
    design_.fabric.tiers = 3;
    set_spines(*spines);
    design_.groups = static_cast<int>(groups);
    design_.fabric.leaves_per_group = static_cast<int>(blocks) * leaves_of_block();
    design_.fabric.super_spines = design_.fabric.spines * static_cast<int>(supers->switches);
    design_.fabric.super_uplink_cables = static_cast<int>(supers->cables);
    design_.fabric.super_uplink = design_.request.uplink;
    design_.spine_free = static_cast<int>(ports - leaves * spines->cables - supers->all());
    design_.super_free = static_cast<int>(ports - groups * supers->cables);
    design_.gpus_most =
        ports / supers->cables * blocks * servers_per_leaf_ * design_.request.gpus_per_server;
    return true;
  }

  Result<Design> complete() {
    design_.fabric.planes = planes();
    design_.fabric.hop_latency = {1e-6};  // as in docs/formats/cluster.md
    const topo::Fabric& fabric = design_.fabric;
    design_.leaves = design_.blocks * fabric.rails;
    design_.spines = design_.groups * fabric.spines;
    design_.super_spines = fabric.super_spines;
    design_.server_cables = static_cast<long long>(design_.request.gpus) * design_.request.planes;
    if (fabric.tiers >= 2)
      design_.leaf_cables = static_cast<long long>(design_.leaves) * uplinks_of_leaf(fabric);
    design_.spine_cables = static_cast<long long>(design_.groups) * uplinks_of_group(fabric);
    const long long links = design_.server_cables + design_.leaf_cables + design_.spine_cables;
    if (links > topo::kMaxLinks)
      return Error{Code::kInvalidInput,
                   fmt::format("gpus {}: {} cables are more than the {} of a cluster file; take "
                               "fewer GPUs or a larger oversubscription",
                               design_.request.gpus, links, topo::kMaxLinks)};
    return design_;
  }

  // Without a remedy: see with_remedy().
  Error too_small() const {
    const DesignRequest& request = design_.request;
    const long long nics = chip_.nics(1);
    const long long uplinks = chip_.uplinks_of(1);
    return {
        Code::kInvalidInput,
        fmt::format("a switch of {} has no room for {} of {} that each server has on a leaf, and "
                    "{} of {}",
                    format_bits_per_second(request.chip),
                    nics == 1 ? "the NIC" : fmt::format("the {} NICs", nics),
                    format_bits_per_second(request.port),
                    uplinks == 1 ? "an uplink" : fmt::format("{} uplinks", uplinks),
                    format_bits_per_second(request.uplink))};
  }

  Error too_many() const {
    const DesignRequest& request = design_.request;
    const long long servers =
        request.servers_per_leaf > 0 ? request.servers_per_leaf : chip_.servers_most();
    const long long ports = chip_.uplink_ports();
    const long long two = ports / columns_;
    const long long three = blocks_of_group_most() * ports;
    return {Code::kInvalidInput,
            fmt::format("gpus {}: three tiers of switches of {} with {} uplinks carry {} at most; "
                        "take so many, or a faster chip",
                        request.gpus, format_bits_per_second(request.chip),
                        format_bits_per_second(request.uplink),
                        std::max(two, three) * servers * request.gpus_per_server)};
  }

  Design design_;
  Chip chip_;
  long long columns_;  // leaves of a block that the spines of a plane join
  long long servers_per_leaf_ = 0;
  long long uplinks_ = 0;  // that a leaf needs
  bool is_too_small_ = false;
};

Error wrong(const std::string& what) {
  return {Code::kInvalidInput, what};
}

// The divisor of `number` next to `wanted`.
int nearest_divisor(int number, int wanted) {
  int best = 1;
  for (int i = 1; i <= number; ++i)
    if (number % i == 0 && std::abs(i - wanted) < std::abs(best - wanted)) best = i;
  return best;
}

Status check_servers(const DesignRequest& request) {
  const int each = request.gpus_per_server;
  if (each < 1 || each > topo::kMaxDevicesPerServer)
    return wrong(fmt::format("servers of {} GPUs are not from 1 to {}; take {}", each,
                             topo::kMaxDevicesPerServer,
                             std::clamp(each, 1, topo::kMaxDevicesPerServer)));
  if (request.gpus < each || request.gpus % each != 0)
    return wrong(fmt::format("gpus {} are no whole servers of {}; take {}", request.gpus, each,
                             std::max(1LL, std::llround(double{1} * request.gpus / each)) * each));
  if (request.gpus / each > topo::kMaxServers)
    return wrong(fmt::format("gpus {} make more than {} servers; take at most {}", request.gpus,
                             topo::kMaxServers, 1LL * topo::kMaxServers * each));
  if (request.rails < 1 || each % request.rails != 0)
    return wrong(fmt::format("rails {} do not divide the {} GPUs of a server; take {}",
                             request.rails, each, nearest_divisor(each, request.rails)));
  const int joined = request.domain_servers;
  if (joined < 1 || request.gpus / each % joined != 0)
    return wrong(fmt::format("servers per domain {} do not divide the {} servers; take {}", joined,
                             request.gpus / each, nearest_divisor(request.gpus / each, joined)));
  if (request.servers_per_leaf % joined != 0)
    return wrong(fmt::format("servers per leaf {} divide domains of {} servers; take {}",
                             request.servers_per_leaf, joined,
                             std::max(1, request.servers_per_leaf / joined) * joined));
  if (request.planes < 1 || request.planes * each > topo::kMaxDevicesPerServer)
    return wrong(fmt::format("planes {}: the NICs of a server have {} ports at most; take {}",
                             request.planes, topo::kMaxDevicesPerServer,
                             std::clamp(request.planes, 1, topo::kMaxDevicesPerServer / each)));
  return {};
}

// The most ports of a switch chip: Broadcom's Tomahawk 6 (2025) has 1,024 lanes of 100 Gbit/s.
constexpr long long kMaxSwitchPorts = 1024;

Status check_radix(const DesignRequest& request) {
  using namespace literals;  // NOLINT(google-build-using-namespace): one function
  for (const auto& [name, rate] :
       {std::pair("port", request.port), std::pair("uplink", request.uplink)}) {
    const auto ports = static_cast<long long>(request.chip.value / rate.value);
    if (ports <= kMaxSwitchPorts) continue;
    BytesPerSecond least = request.chip * (1.0 / kMaxSwitchPorts);
    for (const BytesPerSecond usual :
         {800_Gbps, 400_Gbps, 200_Gbps, 100_Gbps, 50_Gbps, 25_Gbps, 10_Gbps, 1_Gbps})
      if (usual.value * kMaxSwitchPorts >= request.chip.value) least = usual;
    return wrong(
        fmt::format("{} {}: a switch of {} would have {} ports, and no switch has more "
                    "than {}; take {} or more, or a slower chip",
                    name, format_bits_per_second(rate), format_bits_per_second(request.chip), ports,
                    kMaxSwitchPorts, format_bits_per_second(least)));
  }
  return {};
}

bool can_be_made(const DesignRequest& request) {
  return request.port <= request.chip && request.uplink <= request.chip &&
         check_radix(request).has_value() && Designer(request).make().has_value();
}

Status check_rates(const DesignRequest& request) {
  for (const auto& [name, rate] : {std::pair("chip", request.chip), std::pair("port", request.port),
                                   std::pair("uplink", request.uplink)})
    if (!(rate.value >= 1))
      return wrong(fmt::format("{} {} carries nothing; take a rate like 400Gbps", name,
                               format_bits_per_second(rate)));
  for (const double ratio : {request.oversubscription, request.spine_oversubscription})
    if (!(ratio >= 1 && ratio <= 1000))
      return wrong(fmt::format("oversubscription {} is not from 1 to 1000; take {}", ratio,
                               ratio > 1000 ? 1000 : 1));
  return {};
}

}  // namespace

Result<Design> design_fabric(const DesignRequest& request) {
  DesignRequest full = request;
  if (full.uplink.value <= 0) full.uplink = full.port;
  REGATTA_TRY_DO(check_servers(full));
  const auto remedy = [&] {
    return rate_remedy(full, request.uplink.value > 0, Designer(full).chip_least(), can_be_made);
  };
  REGATTA_TRY_DO(check_rates(full));
  for (const auto& [name, rate] : {std::pair{"port", full.port}, {"uplink", full.uplink}})
    if (rate > full.chip)
      return wrong(fmt::format("{} {} does not fit a switch of {}; {}", name,
                               format_bits_per_second(rate), format_bits_per_second(full.chip),
                               remedy()));
  REGATTA_TRY_DO(check_radix(full));
  Designer designer(full);
  auto design = designer.make();
  if (designer.is_too_small()) return wrong(design.error().message + "; " + remedy());
  return design;
}

}  // namespace regatta::fabric
