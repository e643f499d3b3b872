// monitoring/tenant_ledger.h: what each tenant, a user in a queue, has had of the cluster: devices,
// what they did, waiting, money; and what each job did with its devices. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/control/cluster_tables.h"

namespace regatta::monitoring {

// Sums since the tenant came.
struct TenantSums {
  double device_s = 0;    // that jobs had devices
  double measured_s = 0;  // of these: those whose use is known
  double used_s = 0;      // of these: the parts in which they worked
  double waiting_s = 0;   // of jobs that were pending and not held
  double money = 0;       // device hours by the price of their type at the time
  std::int64_t starts = 0;
  std::int64_t evictions = 0;
};

struct TenantAccount {
  TenantSums sums;
  double devices = 0;  // now; parts of devices count as parts
  int pending = 0;     // jobs, now, without those that are held
  double money_per_s = 0;
  Seconds counted;          // up to then
  bool is_changed = false;  // since it was stored
};
using TenantName = std::pair<std::string, std::string>;  // queue, user

struct JobAccount {
  double device_s = 0;
  double measured_s = 0;
  double used_s = 0;
  double memory_s = 0;  // as used_s, of the devices' memory
};

// Prices of a device for an hour, by its type.
using DevicePrices = std::map<std::string, double>;

class TenantLedger {
 public:
  static constexpr std::size_t kEndedJobsKept = 20'000;

  explicit TenantLedger(DevicePrices prices) : prices_(std::move(prices)) {}

  // After the start: the stored sums, and jobs as they are. Devices that jobs had while there was
  // no controller count, for as long as agents let them run without one (`lease`).
  Status load(const control::ClusterTables& tables, Seconds now, std::int64_t unix_ms,
              Seconds lease);
  // After each change of a job.
  void see(const control::ClusterTables& tables, control::JobId id, Seconds now);
  // Adds what the job's devices did, in device seconds; jobs that are not known are left out.
  void add_use(control::JobId id, const JobAccount& use);
  // Counts up to `now`.
  void advance(Seconds now);

  const std::map<TenantName, TenantAccount>& tenants() const { return tenants_; }
  // Null: the job has had no devices since the start, or is over for long.
  const JobAccount* job(control::JobId id) const;
  const DevicePrices& prices() const { return prices_; }
  // Records of tenants that have changed since the last call: key and value.
  std::vector<std::pair<std::string, std::string>> take_records(std::int64_t unix_ms);

 private:
  struct JobShare {
    TenantAccount* tenant = nullptr;
    std::unique_ptr<JobAccount> account;  // once it has had devices
    Seconds counted;
    double money_per_s = 0;
    double devices = 0;  // parts of devices count as parts
    int attempts = 0;
    int evictions = 0;
    bool is_pending = false;
  };
  void count(TenantAccount& tenant, Seconds now) const;
  void count(JobShare& share, Seconds now) const;
  void set_share(const control::ClusterTables& tables, const control::ManagedJob& job,
                 JobShare& share) const;

  DevicePrices prices_;
  std::map<TenantName, TenantAccount> tenants_;
  std::unordered_map<control::JobId, JobShare> jobs_;  // that are not over
  std::unordered_map<control::JobId, JobAccount> ended_;
  std::deque<control::JobId> ended_order_;
  bool is_loading_ = false;  // jobs that are met are old ones
};

}  // namespace regatta::monitoring
