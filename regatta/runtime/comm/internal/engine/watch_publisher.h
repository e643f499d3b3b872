// comm/internal/engine/watch_publisher.h: writes what a rank does into its watch file
// (internal/watch/layout.h) while it runs, and into a flight file when its world fails. Progress
// thread only.
#pragma once

#include <memory>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/engine/operation_executor.h"
#include "regatta/runtime/comm/internal/engine/peer_liveness.h"
#include "regatta/runtime/comm/internal/engine/traffic_counters.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {

// All references outlive the publisher.
struct WatchPublisherSetup {
  std::string name;                  // of the rank
  std::shared_ptr<WatchFile> watch;  // null: nothing is written
  std::string flight_dir;            // empty: no flight file is written
  const OperationExecutor& executor;
  const PeerLiveness& peers;
  const TrafficCounters& traffic;
};

class WatchPublisher {
 public:
  explicit WatchPublisher(WatchPublisherSetup setup) : setup_(std::move(setup)) {}

  void publish(Seconds now);
  // The world ends with this error; its operations are still there.
  void publish_failure(const Error& error, Seconds now);

 private:
  const WatchPublisherSetup setup_;
};

}  // namespace regatta::comm
