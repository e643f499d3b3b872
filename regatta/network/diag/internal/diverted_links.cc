#include "regatta/network/diag/internal/diverted_links.h"

#include <algorithm>

namespace regatta::diag {
namespace {

// A healer uses a link again after a clean period that begins with the first and doubles up to the
// last (heal/internal/flap_damper.h), and takes a moment for it.
constexpr Seconds kFirstReturn{5};
constexpr Seconds kLastReturn{600};
constexpr Seconds kMargin{5};

}  // namespace

void DivertedLinks::update(const FaultChanges& changes, Seconds now) {
  for (const FaultVerdict& verdict : changes.begun)
    for (const std::uint32_t link : links_to_avoid(graph_, verdict.culprit))
      ++links_[link].active;
  for (const FaultVerdict& verdict : changes.over)
    for (const std::uint32_t link : links_to_avoid(graph_, verdict.culprit)) {
      Record& record = links_[link];
      record.active = std::max(0, record.active - 1);
      Seconds clean = kFirstReturn;
      for (int i = 0; i < record.ended && clean < kLastReturn; ++i)
        clean = std::min(kLastReturn, 2 * clean);
      ++record.ended;
      record.until = now + clean + kMargin;
    }
}

void DivertedLinks::expire(Seconds now) {
  std::erase_if(links_,
                [&](const auto& one) { return one.second.active == 0 && now >= one.second.until; });
}

bool DivertedLinks::crosses(std::span<const std::uint32_t> path) const {
  return !links_.empty() &&
         std::ranges::any_of(path, [&](std::uint32_t link) { return links_.contains(link); });
}

}  // namespace regatta::diag
