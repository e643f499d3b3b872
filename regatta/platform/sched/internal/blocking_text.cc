#include "regatta/platform/sched/internal/blocking_text.h"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"

namespace regatta::sched {
namespace {

constexpr std::size_t kNamedJobs = 3;
constexpr EnumNames<kTopologyLevels> kWhere = {" on one server", " under one leaf", " in one group",
                                               ""};

std::string where_text(const JobRequest& job) {
  const bool is_one_replica = job.roles.size() == 1 && job.roles.front().replicas_min == 1 &&
                              job.topology.required == TopologyLevel::kCluster;
  return is_one_replica ? kWhere.front() : enum_name(kWhere, job.topology.required);
}

std::string holders_text(const std::vector<BlockingJob>& jobs, Seconds now) {
  std::vector<std::string> names;
  for (const BlockingJob& job : jobs)
    names.push_back(
        job.is_degraded
            ? fmt::format("job {}, which keeps its places until what it lost returns", job.job)
        : !std::isfinite(job.ends.value) ? fmt::format("job {}, whose end is not known", job.job)
        : job.ends > now
            ? fmt::format("job {} for about {}", job.job, format_duration(job.ends - now))
            : fmt::format("job {}, which has run for as long as it was to run", job.job));
  return shortened_list(std::move(names), kNamedJobs);
}

// "16 devices of type T", "32 cores and 64 MiB of memory"
std::string demand_text(const JobRequest& job, const BlockingSet& set) {
  const std::string types =
      job.device_types.empty() ? "" : " of type " + join(job.device_types, " or ");
  if (set.devices > 0)
    return amount_text(Resource::kCompute, set.wanted[Resource::kCompute]) + types;
  std::vector<std::string> amounts;
  for (int i = 0; i < kResources; ++i)
    if (at(set.wanted.of, i) > 0)
      amounts.push_back(amount_text(static_cast<Resource>(i), at(set.wanted.of, i)));
  return amounts.empty() ? "nothing" : join(amounts, " and ") + types;
}

// "2 of 4 devices of type T", "16 of 32 cores"
std::string missing_text(const JobRequest& job, const BlockingSet& set) {
  std::vector<std::string> parts;
  for (int i = 0; i < kResources; ++i) {
    const auto resource = static_cast<Resource>(i);
    if (set.missing[resource] <= 0) continue;
    if (resource == Resource::kCompute) {
      const std::string missing = amount_text(resource, set.missing[resource]);
      parts.push_back(
          fmt::format("{} of {}", missing.substr(0, missing.find(' ')), demand_text(job, set)));
      continue;
    }
    // Missing devices miss their memory too.
    if (resource == Resource::kDeviceMemory && !parts.empty()) continue;
    const std::string missing = amount_text(resource, set.missing[resource]);
    parts.push_back(fmt::format("{} of {}", missing.substr(0, missing.find(' ')),
                                amount_text(resource, set.wanted[resource])));
  }
  return join(parts, " and ");
}

// "8 devices of the limit of queue a", "8 devices of the limit of user u in queue a"
std::string limit_name(const BlockingLimit& limit) {
  return limit.user.empty() ? "queue " + limit.queue
                            : fmt::format("user {} in queue {}", limit.user, limit.queue);
}

// "8 devices", "8 h100-sxm devices"
std::string limit_amount_text(const BlockingLimit& limit, long long amount) {
  std::string text = amount_text(limit.resource, amount);
  return limit.device_type.empty() ? text : device_type_text(text, limit.device_type);
}

// "them" for several devices.
std::string never_text(const JobRequest& job, const BlockingSet& set) {
  if (!set.limits.empty() && set.limits.back().jobs.empty()) {
    const BlockingLimit& limit = set.limits.back();
    return fmt::format("asks for {}; the limit of {} is {}: ask for fewer, or raise the limit",
                       amount_text(limit.resource, set.wanted[limit.resource]), limit_name(limit),
                       limit_amount_text(limit, limit.limit));
  }
  return fmt::format(
      "asks for {}{}; the empty cluster does not hold {}: ask for fewer, or for other types",
      demand_text(job, set), where_text(job), set.devices == 1 ? "it" : "them");
}

}  // namespace

std::string blocking_sentence(const JobRequest& job, const BlockingSet& set, Seconds now) {
  if (set.never_fits) return never_text(job, set);
  std::vector<std::string> parts;
  if (!set.nodes.empty()) {
    const bool is_one = set.nodes.size() == 1;
    parts.push_back(
        fmt::format("{} {}, {} not ready or {} failed devices: without {} the cluster "
                    "does not hold its {}{}",
                    is_one ? "node" : "nodes", shortened_list(set.nodes, kNamedJobs),
                    is_one ? "which is" : "which are", is_one ? "has" : "have",
                    is_one ? "it" : "them", demand_text(job, set), where_text(job)));
  }
  for (const BlockingLimit& limit : set.limits)
    parts.push_back(fmt::format("{} of the limit of {}; held by {}",
                                limit_amount_text(limit, limit.missing), limit_name(limit),
                                holders_text(limit.jobs, now)));
  if (!set.jobs.empty()) {
    const std::string missing = missing_text(job, set);
    std::string room = missing.empty() ? fmt::format("{}{}, free on nodes that are kept as spares",
                                                     demand_text(job, set), where_text(job))
                                       : missing + where_text(job);
    if (set.devices > 0 && set.free_devices == set.devices && !missing.empty())
      room +=
          fmt::format(", where its {} free",
                      set.devices == 1 ? "device is" : fmt::format("{} devices are", set.devices));
    parts.push_back(fmt::format("{}; held by {}", room, holders_text(set.jobs, now)));
  }
  if (parts.empty())
    return fmt::format("waits for its turn; its {}{} {} free", demand_text(job, set),
                       where_text(job), set.devices == 1 ? "is" : "are");
  std::string text = "waits for " + join(parts, "; and for ");
  if (set.startable_devices > 0)
    text += fmt::format("; would start now with {}", pluralized(set.startable_devices, "device"));
  return text;
}

}  // namespace regatta::sched
