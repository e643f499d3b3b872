#include "regatta/network/link_rates/counter_verdict.h"

#include <algorithm>
#include <optional>

#include "regatta/base/core/text.h"

namespace regatta::link_rates {
namespace {

constexpr EnumNames<5> kKindNames = {"port rate", "errors", "slow", "paused", "drops"};
constexpr double kClearlyFaster = 1.25;
constexpr std::uint64_t kManyPackets = 10'000;

double share_of(const std::optional<std::uint64_t>& part,
                const std::optional<std::uint64_t>& rest) {
  if (!part || *part == 0) return 0;
  const auto count = static_cast<double>(*part);
  return count / (count + static_cast<double>(rest.value_or(0)));
}

std::optional<CounterFault> fault_of(std::uint32_t link, BytesPerSecond described,
                                     const LinkCounterTotals& totals,
                                     const CounterVerdictOptions& options) {
  CounterFault fault{.link = link, .described = described, .totals = totals};
  const BytesPerSecond slow_below = options.slow_below * described;
  if (totals.port_rate && *totals.port_rate < slow_below) {
    fault.kind = CounterFaultKind::kPortRate;
    fault.measured = *totals.port_rate;
    return fault;
  }
  fault.share = share_of(totals.errors, totals.packets);
  if (fault.share > options.errors_most) return fault;
  const bool was_fast = totals.peak >= slow_below;
  if (!was_fast && totals.waiting_intervals >= options.waiting_intervals) {
    fault.kind = 2 * totals.paused_intervals >= totals.waiting_intervals ? CounterFaultKind::kPaused
                                                                         : CounterFaultKind::kSlow;
    fault.measured = totals.waiting_peak;
    fault.share = share_of(totals.drops, totals.packets);
    return fault;
  }
  fault.share = share_of(totals.drops, totals.packets);
  if (!was_fast && fault.share > options.errors_most) {
    fault.kind = CounterFaultKind::kDrops;
    return fault;
  }
  return std::nullopt;
}

}  // namespace

std::string to_string(CounterFaultKind kind) {
  return enum_name(kKindNames, kind);
}

std::vector<std::string> other_causes(CounterFaultKind kind) {
  switch (kind) {
    case CounterFaultKind::kPortRate:
      return {"the cluster file has the wrong rate"};
    case CounterFaultKind::kErrors:
      return {"the cable or its optics", "the sending port", "the receiving port"};
    case CounterFaultKind::kSlow:
      return {"a shaper or a lower rate of the sending port",
              "pauses that the port does not count"};
    case CounterFaultKind::kPaused:
      return {"the switch or server at its end accepts no more", "a slow link behind it"};
    case CounterFaultKind::kDrops:
      return {"bursts of many senders that are shorter than a reading", "a lower rate of the link"};
  }
  return {};
}

std::string separating_test(CounterFaultKind kind) {
  switch (kind) {
    case CounterFaultKind::kPortRate:
      return "compare both ports' settings with the cluster file";
    case CounterFaultKind::kErrors:
      return "swap the cable: errors that stay are those of a port";
    case CounterFaultKind::kSlow:
    case CounterFaultKind::kDrops:
      return "regatta rates probe measures the link while it is idle";
    case CounterFaultKind::kPaused:
      return "follow the pauses with regatta fabric watch --counters";
  }
  return {};
}

std::vector<CounterFault> find_counter_faults(const topo::Graph& graph,
                                              const SwitchCounterTotals& totals,
                                              const CounterVerdictOptions& options) {
  std::vector<CounterFault> faults;
  for (std::uint32_t link = 0; link < 2 * graph.links.size(); ++link)
    if (const auto fault = fault_of(link, graph.links[link / 2].rate, totals.of(link), options))
      faults.push_back(*fault);
  return faults;
}

CounterSupport support_of_slow_link(const LinkCounterTotals& totals, BytesPerSecond rate,
                                    BytesPerSecond described) {
  if (totals.port_rate && *totals.port_rate < kClearlyFaster * rate &&
      *totals.port_rate < described)
    return CounterSupport::kStrengthens;
  if (totals.peak > kClearlyFaster * rate) return CounterSupport::kWeakens;
  const bool is_full = totals.waiting_intervals > 0 || totals.drops.value_or(0) > 0;
  return is_full ? CounterSupport::kStrengthens : CounterSupport::kNone;
}

CounterSupport support_of_loss(const LinkCounterTotals& totals) {
  if (totals.errors.value_or(0) > 0 || totals.drops.value_or(0) > 0)
    return CounterSupport::kStrengthens;
  const bool counts_all = totals.errors && totals.drops && totals.packets;
  return counts_all && *totals.packets >= kManyPackets ? CounterSupport::kWeakens
                                                       : CounterSupport::kNone;
}

}  // namespace regatta::link_rates
