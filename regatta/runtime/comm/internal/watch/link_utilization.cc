#include "regatta/runtime/comm/internal/watch/link_utilization.h"

#include <algorithm>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"

namespace regatta::comm {
namespace {

constexpr double kAlwaysBusy = 0.8;
constexpr double kFarBelow = 0.5;
// A link that is hardly ever busy counts as busy for this share of the time.
constexpr double kBusyLeast = 0.1;
constexpr Seconds kWindowLeast{0.7};

BytesPerSecond rate_when_busy(const LinkUtilization& utilization) {
  return {utilization.rate.value / std::max(utilization.busy, kBusyLeast)};
}

// The median of the rates that the other links would have if they were always busy.
BytesPerSecond median_of_others(const std::vector<LinkUtilization>& utilizations,
                                const LinkUtilization& link) {
  std::vector<double> rates;
  for (const LinkUtilization& utilization : utilizations)
    if (&utilization != &link) rates.push_back(rate_when_busy(utilization).value);
  if (rates.empty()) return {};
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return {*middle};
}

}  // namespace

void LinkUtilizationMeter::sample(Seconds now, long long bytes, bool is_busy) {
  samples_[count_++ % kSamples] = {now, bytes, is_busy};
}

std::optional<LinkUtilization> LinkUtilizationMeter::utilization() const {
  const std::size_t kept = std::min(count_, kSamples);
  if (kept < 2) return std::nullopt;
  const Sample& first = samples_[(count_ - kept) % kSamples];
  const Sample& last = samples_[(count_ - 1) % kSamples];
  const Seconds window = last.at - first.at;
  if (window < kWindowLeast) return std::nullopt;
  const auto busy = std::count_if(samples_.begin(), samples_.begin() + static_cast<long>(kept),
                                  [](const Sample& sample) { return sample.is_busy; });
  return LinkUtilization{.rate = {static_cast<double>(last.bytes - first.bytes) / window.value},
                         .busy = static_cast<double>(busy) / static_cast<double>(kept)};
}

std::optional<Verdict> find_slow_links(const std::vector<LinkUtilization>& utilizations,
                                       const std::vector<std::string>& names) {
  Verdict verdict{.finding = Finding::kSlowLink};
  for (const LinkUtilization& utilization : utilizations) {
    const BytesPerSecond others = median_of_others(utilizations, utilization);
    if (utilization.busy < kAlwaysBusy || others.value <= 0) continue;
    if (rate_when_busy(utilization).value >= kFarBelow * others.value) continue;
    if (!verdict.text.empty()) verdict.text += ", and ";
    verdict.text += "the link from " + at(names, utilization.from) + " to " +
                    at(names, utilization.to) + " is slow: it moves " +
                    format_bytes_per_second(utilization.rate) + " where others can move " +
                    format_bytes_per_second(others);
    verdict.ranks.push_back(utilization.from);
  }
  if (verdict.ranks.empty()) return std::nullopt;
  return verdict;
}

}  // namespace regatta::comm
