#include <algorithm>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/flow_simulation.h"

namespace regatta::fabric {

LinkHistory::LinkHistory(std::size_t links, std::size_t bins, double width)
    : bins_(links, bins, width, [](float a, float b) { return a + b; }) {}

void LinkHistory::add(std::uint32_t link, double rate, double begin, double end) {
  if (rate <= 0 || end <= begin) return;
  bins_.reach(end);
  const auto first = static_cast<std::size_t>(begin / width());
  const std::size_t last = bins_.bin_of(end);
  for (std::size_t bin = first; bin <= last; ++bin) {
    const double from = std::max(begin, width() * static_cast<double>(bin));
    const double to = std::min(end, width() * static_cast<double>(bin + 1));
    if (to > from) bins_.at(link, bin) += static_cast<float>(rate * (to - from));
  }
  bins_.use(last);
}

void LinkHistory::add_all(std::uint32_t from, std::uint32_t to) {
  for (std::size_t bin = 0; bin < used(); ++bin)
    bins_.at(to, bin) += bins_.at(from, bin);
}

void LinkHistory::multiply(double factor) {
  REGATTA_CHECK(factor >= 0);
  bins_.multiply(static_cast<float>(factor));
}

}  // namespace regatta::fabric
