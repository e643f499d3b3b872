// sched/quota_tree.h: a tree of queues with quotas: who is guaranteed what, may have at most what,
// and borrows what others leave.
// Source: Ghodsi et al., "Dominant resource fairness", NSDI 2011; max-min fairness by water-filling.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::sched {

// Compute in thousandths of devices, device memory in MiB, CPU in thousandths of cores, memory in
// MiB, NIC in thousandths.
enum class Resource { kCompute, kDeviceMemory, kCpu, kMemory, kNic };
inline constexpr int kResources = 5;

struct ResourceAmounts {
  std::array<long long, kResources> of{};

  long long operator[](Resource resource) const { return of[static_cast<std::size_t>(resource)]; }
  long long& operator[](Resource resource) { return of[static_cast<std::size_t>(resource)]; }
  ResourceAmounts& operator+=(const ResourceAmounts& other);
  ResourceAmounts& operator-=(const ResourceAmounts& other);
  friend bool operator==(const ResourceAmounts&, const ResourceAmounts&) = default;
};

// A queue; queues without a child are leaves, and jobs wait in them. Siblings form a cohort: they
// borrow what the others of their parent do not use.
struct QuotaQueue {
  std::string name;    // unique
  std::string parent;  // "": at the top
  double weight = 1;   // of its share of what is not guaranteed
  ResourceAmounts guaranteed;
  std::array<std::optional<long long>, kResources> limit{};       // with what it borrows
  std::array<std::optional<long long>, kResources> user_limit{};  // of each user in it
};

}  // namespace regatta::sched
