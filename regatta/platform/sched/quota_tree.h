// sched/quota_tree.h: a tree of queues with quotas: who is guaranteed what, may have at most what,
// and borrows what others leave.
// Source: Ghodsi et al., "Dominant resource fairness", NSDI 2011; max-min fairness by water-
// filling.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::sched {

// Compute in thousandths of devices, device memory in MiB, CPU in thousandths of cores, memory in
// MiB, NIC in thousandths.
enum class Resource { kCompute, kDeviceMemory, kCpu, kMemory, kNic };
inline constexpr int kResources = 5;

// Device types that the quotas of one tree may name.
inline constexpr int kQuotaDeviceTypesMax = 8;

struct ResourceAmounts {
  std::array<long long, kResources> of{};
  // The part of the compute that is on devices of each type of QuotaTree::device_types().
  std::array<long long, kQuotaDeviceTypesMax> of_type{};

  long long operator[](Resource resource) const { return of[static_cast<std::size_t>(resource)]; }
  long long& operator[](Resource resource) { return of[static_cast<std::size_t>(resource)]; }
  ResourceAmounts& operator+=(const ResourceAmounts& other);
  ResourceAmounts& operator-=(const ResourceAmounts& other);
  friend bool operator==(const ResourceAmounts&, const ResourceAmounts&) = default;
};

// The amounts that a job takes with `replicas` of each of its roles. A whole device counts all its
// memory, which is `device_memory_mib`, but for a mixable role.
ResourceAmounts amounts_of(const JobRequest& job, std::span<const int> replicas,
                           int device_memory_mib);

// "64 devices", "12.5 cores", "512 MiB of device memory"
std::string amount_text(Resource resource, long long amount);
// "64 devices of type h100"
std::string device_type_text(std::string_view amount, std::string_view type);

// max over resources of amount / capacity; infinite where an amount has no capacity.
double dominant_share(const ResourceAmounts& amounts, const ResourceAmounts& capacity);

// A queue's guarantee of devices of one type, and its limits of them: parts of its amounts of
// compute, in the same unit.
struct DeviceTypeQuota {
  std::string type;
  long long guaranteed = 0;
  std::optional<long long> limit{};
  std::optional<long long> user_limit{};
};

// A queue; queues without a child are leaves, and jobs wait in them. Siblings form a cohort: they
// borrow what the others of their parent do not use.
struct QuotaQueue {
  std::string name;    // unique
  std::string parent;  // "": at the top
  double weight = 1;   // of its share of what is not guaranteed
  // 0: nothing is said about this resource. A queue that is guaranteed devices alone gets the CPU
  // that its jobs take with them as far as there is some. A parent that says nothing is guaranteed
  // what its children are. In a tree `of_type` is that of `device_types`, and the compute is at
  // least its sum.
  ResourceAmounts guaranteed;
  std::array<std::optional<long long>, kResources> limit{};       // with what it borrows
  std::array<std::optional<long long>, kResources> user_limit{};  // of each user in it
  std::vector<DeviceTypeQuota> device_types{};                    // each type once
  // For how long replicas of its jobs run on without word from the controller (kLeaseNever: until
  // they end). 0: as the controller does by default. Decisions do not depend on it.
  Seconds lease{};
};

inline constexpr Seconds kLeaseNever{std::numeric_limits<double>::infinity()};

// The largest amount of any quota and the largest weight over the smallest.
inline constexpr long long kQuotaAmountMax = 1'000'000'000'000;
inline constexpr double kQuotaWeightMax = 1e6;
inline constexpr int kQuotaQueuesMax = 10'000;

// By QuotaTree::device_types().
struct DeviceTypeLimits {
  std::array<std::optional<long long>, kQuotaDeviceTypesMax> of_queue{};
  std::array<std::optional<long long>, kQuotaDeviceTypesMax> of_user{};
};

// Queues are numbered depth-first, siblings in the order in which they were given: a parent comes
// before its children, and all queues below one follow it.
class QuotaTree {
 public:
  // One queue, called default, that may use everything. Jobs may leave out its name.
  QuotaTree();
  // Without queues: as above. Fails with kInvalidInput, a sentence that names the queue and the
  // remedy: names that are empty or come twice, unknown parents, queues that are their own
  // ancestors, amounts and weights out of range, limits below what is guaranteed, children that are
  // guaranteed more than their parent is, or may use, more device types than
  // kQuotaDeviceTypesMax.
  static Result<QuotaTree> create(std::vector<QuotaQueue> queues);

  int size() const { return static_cast<int>(queues_.size()); }
  const QuotaQueue& queue(int queue) const;
  int parent(int queue) const;                     // -1 at the top
  std::span<const int> children(int queue) const;  // of -1: those at the top
  int subtree_end(int queue) const;                // one behind the last queue below it
  bool is_leaf(int queue) const { return subtree_end(queue) == queue + 1; }
  int height(int queue) const;     // 0: a leaf
  int name_rank(int queue) const;  // place of its name among all names
  std::span<const int> leaves() const { return leaves_; }
  // That its queues name, by name.
  std::span<const std::string> device_types() const { return device_types_; }
  int find_device_type(std::string_view name) const;  // -1: none names it
  const DeviceTypeLimits& device_type_limits(int queue) const;
  // Fails with kNotFound and a remedy where `name` is no leaf.
  Result<int> find_leaf(std::string_view name) const;

 private:
  Status order_queues(std::vector<QuotaQueue> queues);
  Status index_device_types();
  Status settle_guarantees();

  std::vector<QuotaQueue> queues_;
  std::vector<int> parents_;
  std::vector<std::vector<int>> children_;  // by queue + 1
  std::vector<int> subtree_ends_;
  std::vector<int> heights_;
  std::vector<int> by_name_;  // queues by name
  std::vector<int> name_ranks_;
  std::vector<int> leaves_;
  std::vector<std::string> device_types_;
  std::vector<DeviceTypeLimits> device_type_limits_;  // by queue; empty without device types
  bool is_default_ = false;
};

}  // namespace regatta::sched
