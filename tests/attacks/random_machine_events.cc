// The events that happen to the tenants of a random machine.
#include <algorithm>

#include "tests/attacks/random_machine.h"

namespace regatta::attacks {

using hook_test::kMiB;

void RandomMachine::happen_while_running() {
  const double now = os::monotonic_now().value;
  switch (below(8)) {
    case 0:
      if (plan_.restarts_daemon) restart_daemon();
      break;
    case 1:
      if (plan_.kills) kill_one();
      break;
    case 2:
      stop_some(now);
      break;
    case 3:
      if (plan_.changes_limits) change_limit();
      break;
    case 4:
      change_policy();
      break;
    default:
      check_bounds();
      break;
  }
}

void RandomMachine::happen_at_rest() {
  if (plan_.restarts_daemon && one_in(6)) restart_daemon();
  if (plan_.kills && one_in(6)) kill_one();
  if (plan_.changes_limits && one_in(3)) change_limit();
}

void RandomMachine::restart_daemon() {
  daemon_->kill();
  os::sleep_for(Seconds{1e-3 * static_cast<double>(below(100))});
  daemon_->start();
  ++totals_.daemons;
}

void RandomMachine::kill_one() {
  Tenant& tenant = tenants_[below(tenants_.size())];
  if (tenant.programs.empty()) return;
  tenant.programs[below(tenant.programs.size())].running->kill();
  ++totals_.kills;
}

// One program, or all of a tenant.
void RandomMachine::stop_some(double now) {
  Tenant& tenant = tenants_[below(tenants_.size())];
  const bool is_all = one_in(2);
  const double until = now + 1e-3 * static_cast<double>(1 + below(100));
  for (Program& program : tenant.programs) {
    if (program.continue_at != 0 || (!is_all && !one_in(2))) continue;
    program.running->signal(SIGSTOP);
    program.continue_at = until;
    ++totals_.stops;
  }
}

void RandomMachine::continue_stopped(double now) {
  for (Tenant& tenant : tenants_) {
    for (Program& program : tenant.programs) {
      if (program.continue_at == 0 || now < program.continue_at) continue;
      program.running->signal(SIGCONT);
      program.continue_at = 0;
    }
  }
}

// Lower, or what it was. Memory that was leased before may stay.
void RandomMachine::change_limit() {
  Tenant& tenant = tenants_[below(tenants_.size())];
  const std::uint64_t whole = tenant.plan.quota_mib * kMiB;
  const std::uint64_t limit = one_in(2) ? whole : whole * (30 + below(70)) / 100;
  const nlohmann::json request{
      {"request", "set"}, {"name", tenant.plan.name}, {"memory", {{"0", limit}}}};
  if (!daemon_->query(request)) return;
  ++totals_.limits;
  const auto report = read_report(*daemon_, device_);
  if (!report) return;
  const TenantMemory& has = report->tenants.at(tenant.plan.name);
  tenant.bound = std::max(limit, has.used + has.spare);
}

void RandomMachine::change_policy() {
  constexpr const char* kPolicies[] = {"equal", "weight", "burst-weight"};
  static_cast<void>(
      daemon_->query({{"request", "policy"}, {"policy", kPolicies[below(3)]}}).has_value());
}

}  // namespace regatta::attacks
