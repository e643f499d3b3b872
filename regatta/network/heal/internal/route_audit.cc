#include "regatta/network/heal/internal/route_audit.h"

#include <algorithm>

#include <fmt/core.h>
#include <linux/rtnetlink.h>

namespace regatta::heal {
namespace {

constexpr Seconds kRegular{1.0};
constexpr Seconds kLongestPause{1.0};
constexpr Seconds kCalm{10.0};  // after a repair: the other program has stopped

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

void RouteAudit::hurry(Seconds now) {
  next_ = std::min(next_, std::max(now, read_at_ + pause_));
}

std::vector<AlteredRoute> RouteAudit::compare(const Tables& tables,
                                              std::span<const Installed> installed, Seconds now) {
  std::vector<AlteredRoute> now_altered = altered(tables, installed);
  std::vector<AlteredRoute> sure;
  for (const AlteredRoute& one : now_altered)
    if (std::ranges::find(suspects_, one) != suspects_.end()) sure.push_back(one);
  read_at_ = now;
  if (!sure.empty()) {
    repaired_at_ = now;
    pause_ = std::min(pause_ * 2.0, kLongestPause);
  } else if (now - repaired_at_ > kCalm) {
    pause_ = kFirstPause;
  }
  const bool has_suspects = sure.size() < now_altered.size();
  suspects_ = std::move(now_altered);
  std::erase_if(suspects_, [&](const AlteredRoute& one) {
    return std::ranges::find(sure, one) != sure.end();
  });
  next_ = now + (has_suspects ? pause_ : kRegular);
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
