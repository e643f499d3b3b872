#include "regatta/platform/sched/internal/job_shapes.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <tuple>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

// The terms that decide about the places of a role.
auto terms_of(const Role& role) {
  return std::tuple{
      role.replicas_min,      role.devices,           role.device_milli,
      role.device_memory_mib, role.cpu_milli,         role.memory_mib,
      role.nic_milli,         role.subgroup_replicas, static_cast<int>(role.subgroup_level)};
}

void mix_in(std::size_t& hash, std::size_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  hash ^= hash >> 29U;
}

std::size_t hash_of_shape(const JobRequest& job) {
  std::size_t hash = as_index(static_cast<int>(job.topology.required));
  for (const Role& role : job.roles)
    std::apply([&](auto... values) { (mix_in(hash, static_cast<std::size_t>(values)), ...); },
               terms_of(role));
  for (const std::string& type : job.device_types)
    mix_in(hash, std::hash<std::string>{}(type));
  return hash;
}

bool have_one_shape(const JobRequest& a, const JobRequest& b) {
  return a.topology.required == b.topology.required && a.device_types == b.device_types &&
         std::equal(a.roles.begin(), a.roles.end(), b.roles.begin(), b.roles.end(),
                    [](const Role& x, const Role& y) { return terms_of(x) == terms_of(y); });
}

}  // namespace

int JobShapes::shape_of(const JobRequest& job, const std::string& kinds) {
  std::size_t hash = hash_of_shape(job);
  if (!kinds.empty()) mix_in(hash, std::hash<std::string>{}(kinds));
  const int number = numbers_.find_or_add(hash, size(), [&](int shape) {
    const Example& example = at(examples_, shape);
    return example.kinds == kinds && have_one_shape(job, example.job);
  });
  if (number == size()) examples_.push_back({job, kinds});
  return number;
}

}  // namespace regatta::sched
