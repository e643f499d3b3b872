#include <algorithm>

#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric {

QueueHistory::QueueHistory(std::size_t links, std::size_t bins, double width)
    : bins_(links, bins, width, [](float a, float b) { return std::max(a, b); }) {}

void QueueHistory::add(std::uint32_t link, double bytes, double begin, double end) {
  if (bytes <= 0 || end <= begin) return;
  bins_.reach(end);
  const auto first = static_cast<std::size_t>(begin / width());
  std::size_t last = bins_.bin_of(end);
  if (last > first && width() * static_cast<double>(last) >= end) --last;  // it ends as that begins
  for (std::size_t bin = first; bin <= last; ++bin) {
    float& most = bins_.at(link, bin);
    most = std::max(most, static_cast<float>(bytes));
  }
  bins_.use(last);
}

}  // namespace regatta::fabric
