// diag/internal/locator_options.h: the times and thresholds of a locator, which its parts share.
#pragma once

#include "regatta/base/core/units.h"
#include "regatta/network/diag/internal/explain.h"

namespace regatta::diag {

struct LocatorOptions {
  Seconds window{0.03};
  Seconds grace{0.03};          // after the end of a window, for answers and reports in flight
  int memory = 62;              // windows that count, at most 62
  Seconds worst_gap{0.4};       // reports of a server that stalled for longer do not count
  Seconds longest_pause{1.75};  // of a server that is only busy
  double confidence = 0.99;     // least confidence of a reported verdict
  Seconds clean_time{1.0};      // of probes without a new loss until a fault is over
  Seconds changes{0.5};         // until another symptom is reported
  // Delay of a verdict about a switch or link that loses all packets of some flows only: behind a
  // switch with another hash, other faults look the same, and traceroutes may show that meanwhile.
  // 0: there are no traceroutes.
  Seconds confirmation_delay{0};
  // A healer leads users' packets around faults, and probes of its own type of service not.
  bool is_healed = false;
  Seconds routes_back{2.0};  // from the return of a carrier to that of its routes
  ExplainOptions explain;
};

}  // namespace regatta::diag
