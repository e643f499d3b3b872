#include "regatta/network/heal/internal/path_losses.h"

#include <algorithm>
#include <utility>

namespace regatta::heal {
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

void PathLosses::set(std::span<const diag::LinkLoss> lossy, Seconds now) {
  for (const std::uint32_t link : std::exchange(listed_, {})) {
    links_[link].now = 0;
    links_[link].left = 0;
  }
  is_lossy_ = false;
  for (const diag::LinkLoss& loss : lossy) {
    LinkState& its = links_[loss.link];
    listed_.push_back(loss.link);
    its.now = loss.now;
    its.left = loss.is_blind ? 1 : loss.left;
    if (loss.now <= 0) continue;
    its.last_lossy = now;
    is_lossy_ = true;
  }
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
