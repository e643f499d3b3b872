// comm/internal/engine/link_utilization_monitor.h: finds the slow link of an operation that moves,
// but slowly. While a collective over the network runs for long, every rank samples what its links
// send, and the ranks send each other the busiest of their links in replies to queries. Progress
// thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/engine/link_set.h"
#include "regatta/runtime/comm/internal/engine/operation_executor.h"
#include "regatta/runtime/comm/internal/engine/traffic_counters.h"
#include "regatta/runtime/comm/internal/watch/link_utilization.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {

// All references outlive the monitor.
struct LinkUtilizationMonitorSetup {
  int rank = 0;
  const std::vector<std::string>& names;  // by world rank
  std::shared_ptr<WatchFile> watch;       // not null where check() is called
  LinkSet& links;
  const OperationExecutor& executor;
  const TrafficCounters& traffic;
};

class LinkUtilizationMonitor {
 public:
  explicit LinkUtilizationMonitor(LinkUtilizationMonitorSetup setup) : setup_(std::move(setup)) {}

  // Takes samples and looks for a slow link. can_judge: no operation stands still, which would
  // explain the slowness.
  void check(Seconds now, bool can_judge);
  // The busiest link of a peer, or that it has none.
  void receive(int peer, const std::optional<LinkUtilization>& utilization);
  // The busiest link of this rank; nothing while no operation runs for long.
  std::optional<LinkUtilization> busiest() const;

 private:
  const Operation* long_operation(Seconds now) const;
  void reset();
  void sample(const Operation& operation, Seconds now);
  void query_peers(const Operation& operation, Seconds now);
  void judge(const Operation& operation, Seconds now);

  const LinkUtilizationMonitorSetup setup_;
  Seconds begun_at_;  // of the operation that is sampled
  Seconds queried_at_;
  std::vector<LinkUtilizationMeter> meters_;  // of the own links, by world rank
  std::vector<LinkUtilization> peers_;        // the busiest links of the peers
  std::optional<Verdict> slow_link_;
};

}  // namespace regatta::comm
