// controller/cluster_monitor.h: watches the cluster beside the state machine: what devices do, what
// tenants have had, and alerts; stores of it what is to survive a restart.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/platform/controller/controller_runtime.h"
#include "regatta/platform/controller/node_sessions.h"
#include "regatta/platform/monitoring/alert_book.h"
#include "regatta/platform/monitoring/device_table.h"
#include "regatta/platform/monitoring/tenant_ledger.h"

namespace regatta::controller {

struct MonitorOptions {
  monitoring::DevicePrices prices;
  std::string currency = "EUR";
  std::function<std::int64_t()> certificate_end_ms = {};  // of the controller; empty: not known
  // Tells people of an alert; `done` is to be called once, in any thread, when all know of it or it
  // is given up. Empty: there is nobody.
  std::function<void(const monitoring::Alert& alert, std::function<void()> done)> tell = {};
  Seconds tenants_interval{60};  // at least between two stored rows of a tenant
};

// Belongs to the loop's thread, as the runtime and the sessions do, which outlive it.
class ClusterMonitor {
 public:
  // Loads what an earlier process has stored. `epoch`: letters and digits, another one for each
  // process. kInvalidInput: a record is damaged.
  static Result<std::unique_ptr<ClusterMonitor>> open(http::EventLoop& loop,
                                                      ControllerRuntime& runtime,
                                                      NodeSessions& sessions,
                                                      MonitorOptions options, std::string epoch);
  ~ClusterMonitor();
  ClusterMonitor(const ClusterMonitor&) = delete;
  ClusterMonitor& operator=(const ClusterMonitor&) = delete;

  monitoring::DeviceTable& devices();
  // Counted up to now.
  const monitoring::TenantLedger& tenants();
  const monitoring::AlertBook& alerts() const;
  const MonitorOptions& options() const;
  // {"rules": [...]}. kInvalidInput names the key of `body`.
  Status set_alert_rules(std::string_view body);
  store::Revision alert_rules_revision() const;

 private:
  struct Impl;
  explicit ClusterMonitor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::controller
