#include "regatta/network/heal/internal/route_audit.h"

#include <algorithm>

#include <fmt/core.h>
#include <linux/rtnetlink.h>

namespace regatta::heal {
namespace {

constexpr Seconds kRegular{1.0};
constexpr Seconds kLongestPause{1.0};
constexpr Seconds kCalm{10.0};  // without a change: the other program has stopped

// Without the hops that no route can use now.
std::vector<Part> usable(std::vector<Part> parts, const std::vector<std::uint32_t>& off) {
  std::erase_if(parts,
                [&](const Part& part) { return std::ranges::find(off, part.hop) != off.end(); });
  return parts;
}

std::vector<std::uint32_t> hops_only_in(std::span<const Part> one, std::span<const Part> other) {
  const std::vector<std::uint32_t> known = hops_of(other);
  std::vector<std::uint32_t> hops = hops_of(one);
  std::erase_if(hops,
                [&](std::uint32_t hop) { return std::ranges::find(known, hop) != known.end(); });
  return hops;
}

std::vector<AlteredRoute> altered(const Tables& tables, std::span<const Installed> installed) {
  std::vector<AlteredRoute> all;
  for (const Installed& one : installed) {
    const std::vector<Part> meant = tables.parts(one.node, one.leaf);
    const std::vector<Part> wanted = usable(meant, one.off);
    const std::vector<Part> found = usable(one.parts, one.off);
    if (wanted.empty() || found == wanted) continue;
    all.push_back({.repair = {.node = one.node,
                              .leaf = one.leaf,
                              .parts = meant,
                              .withdrawn = hops_only_in(found, wanted),
                              .returned = hops_only_in(wanted, found)},
                   .found = found,
                   .protocol = one.protocol});
  }
  return all;
}

}  // namespace

void RouteAudit::read_soon(Seconds now) {
  is_hurried_ = true;
  next_ = std::min(next_, std::max(now, read_at_ + pause_));
}

std::vector<AlteredRoute> RouteAudit::compare(const Tables& tables,
                                              std::span<const Installed> installed, Seconds now) {
  std::vector<AlteredRoute> sure;
  std::vector<std::pair<NodeId, NodeId>> suspects;
  for (AlteredRoute& one : altered(tables, installed)) {
    const std::pair key{one.repair.node, one.repair.leaf};
    if (std::ranges::find(suspects_, key) != suspects_.end()) {
      sure.push_back(std::move(one));
    } else {
      suspects.push_back(key);
    }
  }
  read_at_ = now;
  // A program that goes on changing routes, these or others, does not keep the healer busy.
  if (!sure.empty() || (is_hurried_ && suspects.empty())) {
    disturbed_at_ = now;
    pause_ = std::min(pause_ * 2.0, kLongestPause);
  } else if (now - disturbed_at_ > kCalm) {
    pause_ = kFirstPause;
  }
  is_hurried_ = false;
  suspects_ = std::move(suspects);
  next_ = now + (suspects_.empty() ? kRegular : pause_);
  return sure;
}

std::string protocol_name(std::uint8_t protocol) {
  struct Name {
    std::uint8_t protocol;
    const char* name;
  };
  static constexpr Name kNames[] = {
      {RTPROT_KERNEL, "kernel"}, {RTPROT_BOOT, "boot"}, {RTPROT_STATIC, "static"},
      {RTPROT_ZEBRA, "zebra"},   {RTPROT_BIRD, "bird"}, {RTPROT_DHCP, "dhcp"},
      {RTPROT_BGP, "bgp"},       {RTPROT_ISIS, "isis"}, {RTPROT_OSPF, "ospf"}};
  const auto* const found = std::ranges::find(kNames, protocol, &Name::protocol);
  return found != std::end(kNames) ? found->name : fmt::format("protocol {}", protocol);
}

}  // namespace regatta::heal
