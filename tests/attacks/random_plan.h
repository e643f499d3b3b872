// tests/attacks/random_plan.h: a round of random programs as its seed draws it: the device, the
// tenants with their quotas, and what happens to them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace regatta::attacks {

struct TenantPlan {
  std::string name;
  std::uint64_t quota_mib = 0;
  bool is_overcommitted = false;
  int programs = 1;  // in all
  int at_once = 1;
};

struct RoundPlan {
  std::vector<TenantPlan> tenants;
  std::uint64_t memory_mib = 0;     // of the device
  std::uint64_t context_mib = 0;    // that a context takes
  bool has_hidden_modules = false;  // which the device holds for a moment before they are refused
  bool shows_memory = false;        // programs show memory to each other
  bool changes_limits = false;
  bool restarts_daemon = false;
  bool kills = false;
  bool has_nvml = false;         // with which the daemon compares its books
  bool has_checkpoints = false;  // whole processes may leave the device

  bool has_overcommit() const;
  // The device never holds more than was granted, not even for a moment.
  bool is_exact() const { return context_mib == 0 && !has_hidden_modules; }
};

// `tenants`: how many there are; 0: two to four.
RoundPlan draw_round(std::uint64_t seed, int tenants);

std::string to_string(const RoundPlan& plan);

}  // namespace regatta::attacks
