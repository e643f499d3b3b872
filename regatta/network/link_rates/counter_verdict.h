// link_rates/counter_verdict.h: which links counters of switches show to be broken or slow, and
// whether they support a verdict that was found in another way. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/link_rates/switch_counters.h"

namespace regatta::link_rates {

enum class CounterFaultKind : std::uint8_t {
  kPortRate,  // a port has negotiated less than the cluster file says
  kErrors,    // packets arrive broken
  kSlow,      // packets wait, and the link carries less than its rate
  kPaused,    // the same, while the other end pauses it
  kDrops,     // its sender drops packets, although it never carried its rate for an interval
};
std::string to_string(CounterFaultKind kind);

struct CounterFault {
  std::uint32_t link = 0;  // directed
  CounterFaultKind kind = CounterFaultKind::kErrors;
  BytesPerSecond described;
  BytesPerSecond measured;  // of a slow link; 0: not known
  double share = 0;         // of packets that are broken or dropped
  LinkCounterTotals totals;
};

// The other causes that look the same to these counters, and how to tell them apart; sentences.
std::vector<std::string> other_causes(CounterFaultKind kind);
std::string separating_test(CounterFaultKind kind);

struct CounterVerdictOptions {
  double slow_below = 0.8;  // of the described rate
  double errors_most =
      1e-6;  // share of packets: the specified bit error rate of a cable gives less
  int waiting_intervals = 2;  // in which packets waited, to call a link slow
};

// By link; at most one for each, the first kind that fits.
std::vector<CounterFault> find_counter_faults(const topo::Graph& graph,
                                              const SwitchCounterTotals& totals,
                                              const CounterVerdictOptions& options = {});

// How counters of a link change a verdict about it.
enum class CounterSupport : std::uint8_t { kNone, kStrengthens, kWeakens };

// To: it carries only `rate`. A port of that lower rate, waiting packets or drops strengthen it;
// an interval that was clearly faster weakens it.
CounterSupport support_of_slow_link(const LinkCounterTotals& totals, BytesPerSecond rate,
                                    BytesPerSecond described);
// To: it loses packets. Errors or drops strengthen it; ports that count both and had none over
// 10,000 packets weaken it.
CounterSupport support_of_loss(const LinkCounterTotals& totals);

}  // namespace regatta::link_rates
