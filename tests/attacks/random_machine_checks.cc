// The oracle of a random machine.
#include <algorithm>

#include "tests/attacks/random_machine.h"

namespace regatta::attacks {

using hook_test::kMiB;

RandomTotals& RandomTotals::operator+=(const RandomTotals& other) {
  static constexpr std::uint64_t RandomTotals::*kAll[] = {
      &RandomTotals::programs, &RandomTotals::comparisons, &RandomTotals::fills,
      &RandomTotals::calls,    &RandomTotals::allocations, &RandomTotals::refusals,
      &RandomTotals::opened,   &RandomTotals::checks,      &RandomTotals::kills,
      &RandomTotals::stops,    &RandomTotals::daemons,     &RandomTotals::limits};
  for (const auto one : kAll)
    this->*one += other.*one;
  return *this;
}

std::string to_string(const RandomTotals& totals) {
  const auto of = [](std::uint64_t count, const char* what) {
    return std::to_string(count) + " " + what;
  };
  return of(totals.programs, "programs, ") + of(totals.calls, "calls, ") +
         of(totals.allocations, "allocations, ") + of(totals.refusals, "refusals, ") +
         of(totals.opened, "MiB of others opened, ") + of(totals.checks, "looks at contents, ") +
         of(totals.comparisons, "comparisons, ") + of(totals.fills, "quotas filled, ") +
         of(totals.kills, "kills, ") + of(totals.stops, "stops, ") +
         of(totals.daemons, "daemons killed, ") + of(totals.limits, "limits changed");
}

RandomTotals RandomMachine::totals() const {
  RandomTotals totals = totals_;
  for (const ProgramRecord& record : records_->all)
    totals += {.calls = record.calls,
               .allocations = record.allocations,
               .refusals = record.refusals,
               .opened = record.opened_total / kMiB,
               .checks = record.checks,
               .kills = record.kills};
  return totals;
}

std::map<std::string, std::uint64_t> RandomMachine::opened_by_tenant(bool ever) const {
  std::map<std::string, std::uint64_t> opened;
  for (const Tenant& tenant : tenants_)
    for (const std::size_t record : tenant.records)
      opened[tenant.plan.name] +=
          ever ? records_->all[record].opened_total : records_->all[record].opened;
  return opened;
}

// The daemon and the device hear of a death at their own times, and what was opened is counted when
// its process waits the next time.
void RandomMachine::compare_at_rest() {
  const auto opened = opened_by_tenant(false);
  std::string wrong = "no daemon answers";
  for (const Seconds end = os::monotonic_now() + Seconds{8.0};
       !wrong.empty() && os::monotonic_now() < end;) {
    const auto report = read_report(*daemon_, device_);
    if (report) wrong = attacks::compare_at_rest(*report, opened);
    if (!wrong.empty()) os::sleep_for(Seconds{0.002});
  }
  ++totals_.comparisons;
  if (!wrong.empty()) return fail("at rest: " + wrong);
  check_bounds();
}

// No tenant has more than it was granted. Not where contexts and hidden modules are on the device
// for a moment before they are refused.
void RandomMachine::check_bounds() {
  if (!plan_.is_exact()) return;
  const auto report = read_report(*daemon_, device_, true);
  if (!report) return;
  const auto opened = opened_by_tenant(true);
  for (Tenant& tenant : tenants_) {
    const auto found = report->tenants.find(tenant.plan.name);
    if (found == report->tenants.end()) continue;
    const std::uint64_t most = tenant.bound + opened.at(tenant.plan.name);
    if (found->second.device > most)
      fail("tenant " + tenant.plan.name + " has " + std::to_string(found->second.device / 1024) +
           " KiB and was granted " + std::to_string(most / 1024));
  }
}

// All that a tenant has left is there for it, whatever the others have: at rest, where nobody has
// more than its limit or more than is counted.
void RandomMachine::fill_a_tenant() {
  Tenant& tenant = tenants_[below(tenants_.size())];
  const auto report = read_report(*daemon_, device_);
  if (tenant.plan.is_overcommitted || !report) return;
  for (const auto& [name, one] : report->tenants)
    if (one.device > one.here() || one.device > one.limit || one.used > one.limit) return;
  const TenantMemory& has = report->tenants.at(tenant.plan.name);
  const std::uint64_t left = (has.limit - has.used) / kMiB / 2 * 2;
  if (has.device != has.used || left < plan_.context_mib + 2) return;
  const ProgramOptions options{.is_checked = 0, .filled_mib = left - plan_.context_mib};
  RunningProgram program(*daemon_, tenant.plan.name, command_of(options), environment_);
  if (!program.wait())
    return fail("tenant " + tenant.plan.name + ": a program waits for what its tenant has left");
  if (program.state() == RunningProgram::State::kEnded && program.wrong().empty())
    fail("tenant " + tenant.plan.name + ": no room for the context of a program, with " +
         std::to_string(left) + " MiB left");
  if (!program.wrong().empty()) return fail("tenant " + tenant.plan.name + ": " + program.wrong());
  compare_at_rest();
  program.go_on();
  if (!program.wait()) return fail("tenant " + tenant.plan.name + ": a program does not end");
  ++totals_.fills;
}

std::string RandomMachine::what_is_there() const {
  std::string text;
  const auto report = read_report(*daemon_, device_);
  for (const Tenant& tenant : tenants_) {
    text += "\n  tenant " + tenant.plan.name;
    const auto has =
        report ? report->tenants.find(tenant.plan.name) : decltype(report->tenants.end()){};
    if (report && has != report->tenants.end()) text += ": " + to_string(has->second);
    for (const Program& program : tenant.programs) {
      const ProgramRecord& record = records_->all[program.record];
      text += "\n    program " + std::to_string(program.record) +
              (program.running->state() == RunningProgram::State::kWaits ? ", waits" : ", runs") +
              ", last calls: ";
      const std::uint64_t calls = record.calls;
      for (std::uint64_t i = calls - std::min<std::uint64_t>(calls, ProgramRecord::kLast);
           i < calls; ++i)
        text += std::string(record.last[i % ProgramRecord::kLast]) + (i + 1 < calls ? ", " : "");
    }
  }
  return text;
}

}  // namespace regatta::attacks
