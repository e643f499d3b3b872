#include "tests/attacks/random_plan.h"

#include <algorithm>
#include <random>

namespace regatta::attacks {

bool RoundPlan::has_overcommit() const {
  return std::ranges::any_of(tenants, &TenantPlan::is_overcommitted);
}

RoundPlan draw_round(std::uint64_t seed, int tenants) {
  std::mt19937_64 random(seed);
  const auto one_in = [&](unsigned count) { return random() % count == 0; };
  RoundPlan plan;
  plan.context_mib = one_in(2) ? 4 : 0;
  plan.has_hidden_modules = one_in(2);
  plan.shows_memory = one_in(2);
  plan.changes_limits = one_in(2);
  plan.restarts_daemon = one_in(2);
  plan.kills = !one_in(3);
  plan.has_nvml = one_in(4);
  const bool has_overcommit = one_in(3);
  plan.has_checkpoints = has_overcommit && one_in(3);
  const int count = tenants > 0 ? tenants : static_cast<int>(2 + random() % 3);
  std::uint64_t promised = 0;
  std::uint64_t largest = 0;
  for (int i = 0; i < count; ++i) {
    TenantPlan& tenant = plan.tenants.emplace_back();
    tenant.name = std::string(1, static_cast<char>('a' + i));
    tenant.quota_mib = 20 + random() % 80;
    tenant.is_overcommitted = has_overcommit && !one_in(3);
    tenant.programs = static_cast<int>(1 + random() % 4);
    tenant.at_once = static_cast<int>(1 + random() % 2);
    if (tenant.is_overcommitted)
      largest = std::max(largest, tenant.quota_mib);
    else
      promised += tenant.quota_mib;
  }
  plan.memory_mib = promised + largest;
  return plan;
}

std::string to_string(const RoundPlan& plan) {
  std::string text = "device of " + std::to_string(plan.memory_mib) + " MiB";
  for (const TenantPlan& tenant : plan.tenants)
    text += ", " + tenant.name + " " + std::to_string(tenant.quota_mib) + " MiB" +
            (tenant.is_overcommitted ? " with over-commit" : "");
  const auto add = [&](bool is_so, const char* what) {
    if (is_so) text += what;
  };
  add(plan.context_mib != 0, ", contexts");
  add(plan.has_hidden_modules, ", hidden modules");
  add(plan.shows_memory, ", shown memory");
  add(plan.changes_limits, ", other limits");
  add(plan.restarts_daemon, ", other daemons");
  add(plan.kills, ", kills");
  add(plan.has_nvml, ", NVML");
  add(plan.has_checkpoints, ", checkpoints");
  return text;
}

}  // namespace regatta::attacks
