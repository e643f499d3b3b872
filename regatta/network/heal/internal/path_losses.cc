#include "regatta/network/heal/internal/path_losses.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace regatta::heal {
namespace {

constexpr Seconds kLately{10};     // from the last loss of a link to its next that goes on with it
constexpr Seconds kReported{0.2};  // a report is the newest for that long

}  // namespace

std::vector<std::uint32_t> links_of(const FabricPaths& paths, const Fault& fault) {
  if (fault.place == Place::kLink) return {fault.link};
  std::vector<std::uint32_t> links;
  if (fault.place == Place::kSwitch) {
    for (std::uint32_t link = 0; link < paths.end_of.size(); ++link)
      if (paths.start_of[link] == fault.node || paths.end_of[link] == fault.node)
        links.push_back(link);
    return links;
  }
  links.push_back(fault.link);
  for (std::size_t i = 0; i < links.size(); ++i)
    for (const std::uint32_t hop : paths.routes.next_hops(paths.end_of[links[i]], fault.node))
      if (std::ranges::find(links, hop) == links.end()) links.push_back(hop);
  return links;
}

PathLosses::PathLosses(const FabricPaths& paths) : paths_(paths), links_(paths.end_of.size()) {}

void PathLosses::set(std::span<const diag::LinkLoss> lossy, Seconds now, Seconds span) {
  span_ = span;
  for (const std::uint32_t link : std::exchange(listed_, {})) {
    links_[link].in_use = 0;
    links_[link].left = 0;
  }
  is_lossy_ = false;
  for (const diag::LinkLoss& loss : lossy) {
    LinkState& its = links_[loss.link];
    listed_.push_back(loss.link);
    its.in_use = loss.is_blind ? 0 : std::max(loss.now, loss.left);
    its.left = loss.is_blind ? 1 : loss.left;
    is_lossy_ = is_lossy_ || its.in_use > 0;
    if (loss.now > 0) count_loss(its, loss.now, now);
  }
  reported_ = now;
}

void PathLosses::count_loss(LinkState& link, double share, Seconds now) {
  if (now - link.last_lossy > kLately) {
    link.first_lossy = now;
    link.lossy_s = 0;
    link.most = 0;
  }
  link.last_lossy = now;
  link.lossy_s += std::min(now - reported_, kLossesEvery).value;
  link.most = std::max(link.most, share);
}

// Losses at random leave a share of e^-(span / gap) of the reports without one.
Seconds PathLosses::mean_gap(const LinkState& link) const {
  const double lasted = (link.last_lossy - link.first_lossy + kLossesEvery).value;
  const double clean_share = std::clamp(1 - link.lossy_s / lasted, 1e-3, 0.99);
  return span_ / -std::log(clean_share);
}

bool PathLosses::is_proven_clean(const Fault& fault, Seconds since, Seconds least,
                                 Seconds now) const {
  if (now - reported_ > kReported) return false;
  // A fault that other packets meet is not proven by the few that probes lost nearby.
  constexpr double kBlackHoleLoses = 0.03;
  const double visible = fault.harm == Harm::kLoss ? 0 : kBlackHoleLoses;
  const LinkState* often = nullptr;
  Seconds last{-1e9};
  for (const std::uint32_t link : links_of(paths_, fault)) {
    const LinkState& its = links_[link];
    if (its.left > 0) return false;
    last = std::max(last, its.last_lossy);
    if (its.last_lossy < since - kLately || its.most < visible) continue;
    if (often == nullptr || mean_gap(its) < mean_gap(*often)) often = &its;
  }
  return often != nullptr && now - last >= std::max(least, diag::kLossesMissing * mean_gap(*often));
}

bool PathLosses::is_unblamed(const Fault& fault, Seconds since, Seconds now) const {
  return now - reported_ <= kReported && if_used(fault) <= 0 && !has_lost_since(fault, since);
}

double PathLosses::if_used(const Fault& fault) const {
  double most = 0;
  for (const std::uint32_t link : links_of(paths_, fault))
    most = std::max(most, if_used(link));
  return most;
}

bool PathLosses::has_lost_since(const Fault& fault, Seconds since) const {
  return std::ranges::any_of(links_of(paths_, fault),
                             [&](std::uint32_t link) { return links_[link].last_lossy >= since; });
}

}  // namespace regatta::heal
