#include "regatta/gpu/sharing/internal/daemon/turn_manager.h"

#include <algorithm>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/memory.h"
#include "regatta/gpu/sharing/internal/daemon/stopped_process.h"

namespace regatta::sharing {
namespace {

// The most device time that one report of a process is believed to add.
constexpr std::uint64_t kReportMostNs = 3'600'000'000'000;
// The most that a stopped process is charged for what it still has in flight.
constexpr std::uint64_t kStoppedMostNs = 1'000'000'000;
// How often a stopped process is looked at again.
constexpr std::uint64_t kWatchStoppedNs = 10'000'000;

// End of the client's work in flight; 0: unknown.
std::uint64_t ends_of(const regatta_work& work, unsigned number) {
  if (__atomic_load_n(&work.ends_number, __ATOMIC_ACQUIRE) != number) return 0;
  return __atomic_load_n(&work.ends_ns, __ATOMIC_RELAXED);
}

// Learns the time from the opening of the turn to the client's first launch in it.
void learn_delay(const regatta_work& work, TurnScheduler& scheduler) {
  const unsigned word = __atomic_load_n(&work.word, __ATOMIC_ACQUIRE);
  const std::uint64_t entered = __atomic_load_n(&work.entered_ns, __ATOMIC_RELAXED);
  if (regatta_work_number(word) == scheduler.turn_number() && entered > scheduler.opened_ns())
    scheduler.learn_delay(entered - scheduler.opened_ns());
}

std::uint64_t more_than(std::uint64_t known, std::uint64_t now) {
  return now - std::min(now, known);
}

// When the client first launched in the turn of this number; 0: it has not.
std::uint64_t entered_in(const regatta_work& work, unsigned number) {
  const unsigned word = __atomic_load_n(&work.word, __ATOMIC_ACQUIRE);
  return regatta_work_number(word) == number && regatta_work_activity(word) != REGATTA_IDLE
             ? __atomic_load_n(&work.entered_ns, __ATOMIC_RELAXED)
             : 0;
}

// The word is written last, so a client that reads it finds the rest.
void write_turn(regatta_turn& turn, const TurnCommand& order) {
  store(turn.deadline_ns, static_cast<unsigned long long>(order.deadline_ns));
  store(turn.bound_ns, static_cast<unsigned long long>(order.bound_ns));
  if (order.kind == TurnCommand::Kind::kChange) return;
  store(turn.word, regatta_turn_word(order.number, order.kind == TurnCommand::Kind::kOpen ? 1 : 0));
  os::futex_wake_all(&turn.word);
}

}  // namespace

TurnManager::TurnManager(TimerFd alarm, const TurnSchedulerOptions& options, int devices,
                         std::uint64_t hold_until_ns)
    : timer_fd_(std::move(alarm)),
      is_swapped_out_(static_cast<std::size_t>(devices)),
      is_connected_(kClientsMax),
      uses_(kClientsMax),
      sampled_ns_(static_cast<std::size_t>(devices)),
      hold_until_ns_(hold_until_ns) {
  for (int i = 0; i < devices; ++i)
    devices_.emplace_back(options, os::monotonic_ns());
}

Result<TurnManager> TurnManager::create(const TenantStore& tenant_store,
                                        const TurnSchedulerOptions& options,
                                        std::uint64_t hold_ns) {
  REGATTA_TRY(alarm, TimerFd::create());
  TurnManager holder(std::move(alarm), options, tenant_store.device_count(),
                     os::monotonic_ns() + hold_ns);
  holder.set_tenants(tenant_store);
  return holder;
}

// The client has a page.
TurnManager::PageUse TurnManager::read_use(const TenantStore& tenant_store, int client,
                                           int device) {
  const regatta_work& work = *tenant_store.clients().work(client, device);
  const regatta_work_marks& marks = *tenant_store.clients().work_marks(client, device);
  return {.used_ns = __atomic_load_n(&work.used_ns, __ATOMIC_RELAXED),
          .busy_since_ns = __atomic_load_n(&marks.busy_since_ns, __ATOMIC_RELAXED),
          .ended_ns = __atomic_load_n(&marks.ended_ns, __ATOMIC_RELAXED)};
}

void TurnManager::set_event_connection(const TenantStore& tenant_store, int client,
                                       bool is_connected) {
  const int tenant = tenant_store.clients().tenant_of(client);
  // A process that has ended pays for its work in flight.
  if (!is_connected) sample(tenant_store, tenant);
  at(is_connected_, client) = is_connected ? 1 : 0;
  for (int device = 0; device < tenant_store.device_count(); ++device) {
    use(client, device) = {};
    if (!tenant_store.clients().has_page(client)) continue;
    const PageUse page = read_use(tenant_store, client, device);
    use(client, device) = {.used_ns = page.used_ns};
  }
  sample(tenant_store, tenant);
}

void TurnManager::sample(const TenantStore& tenant_store) {
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (tenant_store.tenants().is_live(tenant)) sample(tenant_store, tenant);
  }
}

void TurnManager::sample(const TenantStore& tenant_store, int tenant) {
  const std::uint64_t now = os::monotonic_ns();
  for (int device = 0; device < tenant_store.device_count(); ++device)
    sample(tenant_store, tenant, device, now);
}

// Adds what no sample before has counted of a client's use.
void TurnManager::count_use(const PageUse& page, bool is_working, std::uint64_t now,
                            ClientUse& known, TenantActivity& doing) {
  const bool is_busy = is_working && page.busy_since_ns != 0;
  const std::uint64_t in_flight = is_busy ? now - std::min(now, page.busy_since_ns) : 0;
  // Work that was counted while it was in flight is not counted again.
  const std::uint64_t used = more_than(known.used_ns, page.used_ns + in_flight);
  known.used_ns += used;
  doing.used_ns += std::min(used, kReportMostNs);
}

void TurnManager::sample(const TenantStore& tenant_store, int tenant, int device,
                         std::uint64_t now) {
  TurnScheduler& scheduler = at(devices_, device);
  const int open = scheduler.open_tenant();
  if (tenant == scheduler.leaving_tenant() && open >= 0 && open != tenant)
    sample(tenant_store, open, device, now);
  TenantActivity doing;
  bool all_end = scheduler.open_tenant() == tenant;
  bool all_used_up = scheduler.open_tenant() == tenant;
  unsigned working = 0;
  for (const int client : tenant_store.clients().of_tenant(tenant)) {
    const regatta_work* work = tenant_store.clients().work(client, device);
    if (work == nullptr || at(is_connected_, client) == 0) continue;
    const unsigned word = __atomic_load_n(&work->word, __ATOMIC_SEQ_CST);
    const regatta_activity what = regatta_work_activity(word);
    const PageUse page = read_use(tenant_store, client, device);
    ClientUse& known = use(client, device);
    count_use(page, what == REGATTA_WORKING, now, known, doing);
    // A process is not believed that its work ends later than now.
    doing.ended_ns = std::max(doing.ended_ns, std::min(now, page.ended_ns));
    const std::uint64_t entered = entered_in(*work, scheduler.turn_number());
    if (entered != 0 && scheduler.open_tenant() == tenant)
      doing.entered_ns = std::min(doing.entered_ns == 0 ? entered : doing.entered_ns, entered);
    const std::uint64_t ends = ends_of(*work, scheduler.turn_number());
    if (known.stopped_at == word) {
      // Its work in flight is charged, and the device is not waited for.
      if (what == REGATTA_WORKING)
        doing.ended_ns = std::max({doing.ended_ns, now, std::min(ends, now + kStoppedMostNs)});
      continue;
    }
    working += what == REGATTA_IDLE ? 0 : 1;
    if (what == REGATTA_WORKING) {
      doing.works = true;
      all_end = all_end && ends != 0;
      doing.ends_ns = std::max(doing.ends_ns, ends);
      if (scheduler.open_tenant() == tenant) learn_delay(*work, scheduler);
    }
    if (what != REGATTA_WAITING) continue;
    doing.wants = true;
    all_used_up = all_used_up && regatta_work_number(word) == scheduler.turn_number();
  }
  if (!all_end) doing.ends_ns = 0;
  doing.is_used_up = doing.wants && all_used_up;
  std::uint64_t& sampled = at(sampled_ns_, device)[as_index(tenant)];
  // Several processes at once do not use more of the device than there is.
  doing.used_ns = std::min(doing.used_ns, now - std::min(now, sampled));
  sampled = now;
  tenant_store.tenants().set_working_processes(tenant, device, working);
  if (at(is_swapped_out_, device)[as_index(tenant)]) {
    doing.is_swapped_out = true;
    doing.wants = false;
  }
  scheduler.set_activity(tenant, doing, now);
}

// A process that is stopped reports no end: its turn ends without it.
void TurnManager::find_stopped(const TenantStore& tenant_store, int tenant, int device) {
  for (const int client : tenant_store.clients().of_tenant(tenant)) {
    const regatta_work* work = tenant_store.clients().work(client, device);
    if (work == nullptr || at(is_connected_, client) == 0) continue;
    const unsigned word = __atomic_load_n(&work->word, __ATOMIC_SEQ_CST);
    if (regatta_work_activity(word) == REGATTA_IDLE ||
        !is_stopped_process(tenant_store.state().clients[client].pid))
      continue;
    use(client, device).stopped_at = word;
    watch_stopped_ns_ = std::min(watch_stopped_ns_, os::monotonic_ns() + kWatchStoppedNs);
  }
}

// Looks whether processes that were stopped go on. Returns when to look again.
std::uint64_t TurnManager::watch_stopped(const TenantStore& tenant_store) {
  const std::uint64_t now = os::monotonic_ns();
  if (now < watch_stopped_ns_) return watch_stopped_ns_;
  watch_stopped_ns_ = TimerFd::kNever;
  for (int client = 0; client < kClientsMax; ++client) {
    for (int device = 0; device < tenant_store.device_count(); ++device) {
      auto& stopped_at = use(client, device).stopped_at;
      if (!stopped_at) continue;
      if (is_stopped_process(tenant_store.state().clients[client].pid)) {
        watch_stopped_ns_ = now + kWatchStoppedNs;
        continue;
      }
      stopped_at.reset();
      sample(tenant_store, tenant_store.clients().tenant_of(client), device, now);
    }
  }
  return watch_stopped_ns_;
}

void TurnManager::set_tenants(const TenantStore& tenant_store) {
  TurnScheduler::Tenants tenants{};
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    const TenantRecord& record = tenant_store.state().tenants[tenant];
    if (record.live == 0) continue;
    auto& one = at(tenants, tenant);
    one.limits = tenant_store.share_request(tenant);
    one.is_high = (record.flags & kHighPriority) != 0;
  }
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    TurnScheduler::Tenants here = tenants;
    for (std::size_t tenant = 0; tenant < here.size(); ++tenant)
      if (is_swapped_out_[device][tenant]) here[tenant].limits.present = 0;
    devices_[device].set_tenants(tenant_store.tenants().policy(), here, os::monotonic_ns());
  }
}

void TurnManager::set_swapped_out(const TenantStore& tenant_store, int tenant, int device,
                                  bool is_swapped_out) {
  bool& known = at(is_swapped_out_, device)[as_index(tenant)];
  if (known == is_swapped_out) return;
  known = is_swapped_out;
  set_tenants(tenant_store);
  sample(tenant_store, tenant, device, os::monotonic_ns());
}

void TurnManager::forget(int tenant) {
  for (auto& is_swapped_out : is_swapped_out_)
    at(is_swapped_out, tenant) = false;
  for (TurnScheduler& scheduler : devices_)
    scheduler.forget(tenant, os::monotonic_ns());
}

void TurnManager::acknowledge_timer() {
  const std::uint64_t due = timer_fd_.acknowledge();
  const std::uint64_t now = os::monotonic_ns();
  for (TurnScheduler& scheduler : devices_) {
    if (scheduler.wake_ns() == due && now > due) scheduler.learn_lateness(now - due);
  }
}

void TurnManager::step(const TenantStore& tenant_store) {
  std::uint64_t wake = hold_until_ns_;
  const std::uint64_t watch = watch_stopped(tenant_store);
  if (os::monotonic_ns() >= hold_until_ns_) {
    wake = TimerFd::kNever;
    for (int device = 0; device < tenant_store.device_count(); ++device) {
      TurnScheduler& scheduler = at(devices_, device);
      if (scheduler.open_tenant() >= 0 && os::monotonic_ns() >= scheduler.wake_ns())
        sample(tenant_store, scheduler.open_tenant(), device, os::monotonic_ns());
      while (const auto order = scheduler.next_order(os::monotonic_ns())) {
        const bool is_check = order->kind == TurnCommand::Kind::kCheck;
        regatta_turn* const turn = tenant_store.tenants().turn(order->tenant, device);
        if (turn != nullptr && !is_check) write_turn(*turn, *order);
        if (is_check || (order->kind == TurnCommand::Kind::kClose && !scheduler.has_entered()))
          find_stopped(tenant_store, order->tenant, device);
        if (is_check || order->kind == TurnCommand::Kind::kClose)
          sample(tenant_store, order->tenant, device, os::monotonic_ns());
      }
      wake = std::min(wake, scheduler.wake_ns());
    }
  }
  timer_fd_.set(std::min(wake, watch));
}

double TurnManager::last_second(int tenant, int device) const {
  return 1e-9 * static_cast<double>(
                    at(devices_, device).history().last_second(tenant, os::monotonic_ns()));
}

double TurnManager::seconds(int tenant, int device) const {
  return 1e-9 * static_cast<double>(at(devices_, device).history().total(tenant));
}

}  // namespace regatta::sharing
