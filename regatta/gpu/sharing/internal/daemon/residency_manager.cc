#include "regatta/gpu/sharing/internal/daemon/residency_manager.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/memory.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
// How long a restarted daemon waits for clients whose pages it could not open.
constexpr std::uint64_t kReturnNs = 2'000 * kMs;
// The polling interval while a turn ends, or a tenant is waited for.
constexpr std::uint64_t kResidencyPollNs = kMs;
constexpr std::uint64_t kWatchNs = 500 * kMs;
// How long a tenant for which the driver had no room is taken to need more than its own memory,
// unless all of it is there: the others come first if that is more than there is.
constexpr std::uint64_t kLackingNs = 2'000 * kMs;
// The longest wait for the end of a turn.
constexpr std::uint64_t kTurnNs = 10'000 * kMs;

std::uint64_t in_ns(Seconds time) {
  return static_cast<std::uint64_t>(time.value * 1e9);
}

bool is_at_work(const TenantStore& tenant_store, int client, int device) {
  const regatta_work* const work = tenant_store.clients().work(client, device);
  return work != nullptr && regatta_work_activity(load(work->word)) == REGATTA_WORKING;
}

bool has_work(const TenantStore& tenant_store, int client, int device) {
  const regatta_residency_state& page = *tenant_store.clients().residency(client, device);
  return load(page.doing) != static_cast<unsigned>(REGATTA_IDLE);
}

}  // namespace

ResidencyManager::ResidencyManager(TimerFd alarm, const ResidencyOptions& options)
    : timer_fd_(std::move(alarm)),
      options_(options),
      places_(kClientsMax),
      checkpoints_(options.checkpoints),
      began_ns_(os::monotonic_ns()) {}

Result<ResidencyManager> ResidencyManager::create(const TenantStore& tenant_store,
                                                  const ResidencyOptions& options) {
  REGATTA_TRY(alarm, TimerFd::create());
  ResidencyManager made(std::move(alarm), options);
  made.devices_.resize(static_cast<std::size_t>(tenant_store.device_count()));
  for (Device& device : made.devices_) {
    regatta_residency_init(&device.policy, static_cast<std::uint64_t>(options.link.value / 1e6),
                           in_ns(options.longest_wait));
    regatta_exclusive_leases_init(&device.leases);
  }
  return made;
}

void ResidencyManager::acknowledge_timer() {
  if (timer_fd_.acknowledge() != TimerFd::kNever) is_changed_ = true;
}

// Whether the pages of all clients are known, without which the contents of a device are unknown.
bool ResidencyManager::is_complete(const TenantStore& tenant_store, std::uint64_t now) const {
  if (now >= began_ns_ + kReturnNs) return true;
  for (int client = 0; client < kClientsMax; ++client) {
    const ClientRecord& record = tenant_store.state().clients[client];
    if (record.live != 0 && record.page_inode != 0 && !tenant_store.clients().has_page(client) &&
        tenant_store.tenants().is_overcommitted(static_cast<int>(record.tenant)))
      return false;
  }
  return true;
}

// Whether the tenant's unswappable memory leaves with its processes.
bool ResidencyManager::can_leave(const TenantStore& tenant_store, int tenant, int device) const {
  bool is_any_away = false;
  for (const int client : tenant_store.clients().of_tenant(tenant)) {
    if (tenant_store.leases().leased(client, device) == 0) continue;
    const bool is_here = CheckpointManager::place(tenant_store, client) == REGATTA_PROCESS_RUNNING;
    if (is_here && !checkpoints_.may_leave(tenant_store, client, device)) return false;
    if (checkpoints_.is_stuck(tenant_store, client)) return false;
    is_any_away = is_any_away || !is_here;
  }
  return is_any_away || checkpoints_.is_available();
}

// Nothing but its page is known of a client of an earlier daemon, as far as that may be true.
ResidencyManager::ClientPlace ResidencyManager::place_of(const TenantStore& tenant_store,
                                                         int client, int device) const {
  ClientPlace place = at(places_, client)[as_index(device)];
  const regatta_residency_state* const page = tenant_store.clients().residency(client, device);
  if (page == nullptr) return place;
  const std::uint64_t all = tenant_store.swappable().bytes(client, device);
  if (!place.is_known) {
    place.granted = std::min<std::uint64_t>(load(page->granted), all);
    place.may_hold =
        std::min<std::uint64_t>(std::max(load(page->resident), load(page->granted)), all);
    place.is_known = true;
  }
  return place;
}

// The client says how much it has on the device: true as far as it was granted so much.
std::uint64_t ResidencyManager::resident(const TenantStore& tenant_store, int client,
                                         int device) const {
  const regatta_residency_state* const page = tenant_store.clients().residency(client, device);
  return page == nullptr ? 0
                         : std::min<std::uint64_t>(load(page->resident),
                                                   place_of(tenant_store, client, device).may_hold);
}

void ResidencyManager::write_grant(const TenantStore& tenant_store, int client, int device,
                                   std::uint64_t may) {
  ClientPlace place = place_of(tenant_store, client, device);
  place.granted = may;
  place.may_hold = std::max(place.may_hold, may);
  at(places_, client)[as_index(device)] = place;
  regatta_residency_state& page = *tenant_store.clients().residency(client, device);
  store(page.granted, static_cast<unsigned long long>(may));
  store(page.order, page.order + 1);
  os::futex_wake_all(&page.order);
}

// Adds what the client has and needs. Returns the bytes that it was granted and the driver has no
// room for.
std::uint64_t ResidencyManager::sample_client(const TenantStore& tenant_store, int client,
                                              int device, bool leaves, std::uint64_t now,
                                              regatta_residency_tenant& seen) {
  regatta_residency_state* const page = tenant_store.clients().residency(client, device);
  if (page == nullptr || checkpoints_.is_lost(client)) return 0;
  checkpoints_.notice(tenant_store, client);
  // Work of a process without memory that moves waits for that of the tenant's other processes.
  if (has_work(tenant_store, client, device)) seen.is_runnable = 1;
  const std::uint64_t swappable = tenant_store.swappable().bytes(client, device);
  const std::uint64_t stays = leaves ? tenant_store.leases().leased(client, device) : 0;
  ClientPlace place = place_of(tenant_store, client, device);
  const std::uint64_t there = resident(tenant_store, client, device);
  if (swappable == 0 && stays == 0 && there == 0 && place.granted == 0) return 0;
  if (there <= place.granted) place.may_hold = place.granted;
  at(places_, client)[as_index(device)] = place;
  if (place.granted > swappable)
    write_grant(tenant_store, client, device, swappable);  // what it has freed
  else if (load(page->granted) != place.granted)
    write_grant(tenant_store, client, device, place.granted);  // the client has written there
  const bool is_away =
      CheckpointManager::place(tenant_store, client) == REGATTA_PROCESS_CHECKPOINTED;
  seen.demand += swappable + stays;
  seen.bound += stays;
  const std::uint64_t granted = std::min(place.granted, swappable);
  seen.resident += there + (is_away ? 0 : stays);
  seen.granted += granted + (checkpoints_.is_wanted_here(tenant_store, client) ? stays : 0);
  // A checkpointed process may wait in calls that the hook does not count.
  const std::uint64_t away_since = checkpoints_.away_since_ns(client);
  const bool is_long_away = away_since != 0 && now - away_since >= in_ns(options_.longest_wait);
  if (is_long_away) seen.is_runnable = 1;
  return std::min<std::uint64_t>(load(page->lacking), granted - std::min(granted, there));
}

// Bytes of the device that nobody has or was granted, as far as is counted.
std::uint64_t ResidencyManager::counted_room(int device) const {
  const Device& of = at(devices_, device);
  std::uint64_t held = 0;
  for (unsigned i = 0; i < of.policy.count; ++i) {
    const regatta_residency_tenant& one = of.policy.tenants[i];
    const std::uint64_t granted =
        one.granted - std::min<std::uint64_t>(one.granted, of.asked[i].may_lack);
    held += std::max<std::uint64_t>(one.resident, granted);
  }
  return of.policy.capacity - std::min<std::uint64_t>(of.policy.capacity, held);
}

regatta_residency_tenant ResidencyManager::sample(const TenantStore& tenant_store, int tenant,
                                                  int device, std::uint64_t now) {
  regatta_residency_tenant seen{};
  TenantState& asked = at(devices_, device).asked[as_index(tenant)];
  asked.is_at_work = false;
  std::uint64_t lacking = 0;
  const bool leaves = tenant_store.swappable().is_checkpointable(tenant, device);
  for (const int client : tenant_store.clients().of_tenant(tenant)) {
    lacking += sample_client(tenant_store, client, device, leaves, now, seen);
    asked.is_at_work = asked.is_at_work || is_at_work(tenant_store, client, device);
  }
  if (now >= asked.wanted_until_ns) asked.wanted = asked.may_lease = 0;
  if (asked.wanted != 0) seen.is_runnable = 1;
  if (lacking != 0) {
    asked.lacking = lacking + counted_room(device);  // the device is full: what looks free is not
    asked.lacking_until_ns = now + kLackingNs;
  } else if (seen.resident >= seen.demand || now >= asked.lacking_until_ns) {
    asked.lacking = 0;
  }
  asked.may_lack = std::min(asked.may_lack, asked.lacking);
  seen.demand += asked.wanted + asked.lacking;
  seen.granted += asked.may_lease + asked.may_lack;
  seen.lease_ns =
      std::uint64_t{tenant_store.state().tenants[tenant].flags >> kLeaseBit} * 1'000'000'000U;
  // Memory that may be leased but is not yet is not resident, nor is what is lacking.
  const std::uint64_t may = seen.granted - asked.may_lease - asked.may_lack;
  if (seen.resident <= may || seen.resident != asked.resident) {
    asked.since_ns = now;
    asked.resident = seen.resident;
    asked.is_stuck = false;
  } else if (!asked.is_stuck && now - asked.since_ns >= in_ns(options_.timeout)) {
    asked.is_stuck = true;
    os::log_warning(
        fmt::format("gpu daemon: tenant {} was asked for memory of GPU {} and gives none",
                    tenant_store.tenants().name(tenant), device));
  }
  seen.is_stuck = asked.is_stuck ? 1 : 0;
  return seen;
}

void ResidencyManager::update_checkpointable(TenantStore& tenant_store, int device) const {
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (!tenant_store.tenants().is_live(tenant) || !tenant_store.tenants().is_overcommitted(tenant))
      continue;
    tenant_store.swappable().set_checkpointable(tenant, device,
                                                can_leave(tenant_store, tenant, device));
  }
}

void ResidencyManager::forget_tenant(int tenant) {
  const auto number = static_cast<unsigned>(tenant);
  for (Device& of : devices_) {
    regatta_residency_forget(&of.policy, number);
    regatta_exclusive_leases_update(&of.leases, number, 0, 0, os::monotonic_ns());
    of.asked[number] = {};
  }
}

void ResidencyManager::sample_all(TenantStore& tenant_store, int device, std::uint64_t now) {
  Device& of = at(devices_, device);
  update_checkpointable(tenant_store, device);
  of.policy.capacity = tenant_store.swappable().device_capacity(device);
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    const auto number = static_cast<unsigned>(tenant);
    const regatta_residency_tenant& known = of.policy.tenants[number];
    if (!tenant_store.tenants().is_live(tenant) ||
        !tenant_store.tenants().is_overcommitted(tenant)) {
      if (known.demand != 0 || known.granted != 0 || known.is_runnable != 0)
        regatta_residency_forget(&of.policy, number);
      if (of.leases.tenants[number].lease_ns != 0)
        regatta_exclusive_leases_update(&of.leases, number, 0, 0, now);
      continue;
    }
    const regatta_residency_tenant seen = sample(tenant_store, tenant, device, now);
    regatta_residency_update(&of.policy, number, &seen, now);
    if (seen.lease_ns != 0)
      regatta_exclusive_leases_update(&of.leases, number, seen.lease_ns,
                                      known.is_runnable != 0 && known.is_admitted != 0 ? 1 : 0,
                                      now);
  }
}

// Tenants whose memory is resident may have turns; during an exclusive lease, only its holder.
// Returns when that changes.
std::uint64_t ResidencyManager::assign_turns(const TenantStore& tenant_store,
                                             TurnManager& turn_manager, int device,
                                             std::uint64_t now) {
  Device& of = at(devices_, device);
  unsigned long long wake = TimerFd::kNever;
  const int alone = regatta_exclusive_leases_step(&of.leases, now, &wake);
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (!tenant_store.tenants().is_live(tenant)) continue;
    const auto number = static_cast<std::size_t>(tenant);
    const regatta_residency_tenant& known = of.policy.tenants[number];
    const bool is_away =
        known.demand != 0 && (known.is_admitted == 0 || of.asked[number].leaves_ns != 0);
    turn_manager.set_swapped_out(tenant_store, tenant, device,
                                 is_away || (alone >= 0 && tenant != alone));
  }
  return wake;
}

// Whether memory of the tenant can be called back: its turn has ended. It gets no other turn
// meanwhile.
bool ResidencyManager::may_call_back(const TurnManager& turn_manager, int tenant, int device,
                                     std::uint64_t now) {
  TenantState& asked = at(devices_, device).asked[as_index(tenant)];
  if (asked.leaves_ns == 0) asked.leaves_ns = std::max<std::uint64_t>(now, 1);
  if (now - asked.leaves_ns >= kTurnNs) return true;
  return !asked.is_at_work && !turn_manager.has_turn(tenant, device);
}

// Grants `may` to the tenant's clients: first bound memory, if all of it fits, otherwise nothing;
// then swappable memory of working clients, then of idle ones; the rest to what the tenant waits to
// lease.
void ResidencyManager::grant(const TenantStore& tenant_store, int tenant, int device,
                             std::uint64_t may) {
  const bool leaves = tenant_store.swappable().is_checkpointable(tenant, device);
  std::uint64_t bound = 0;
  for (const int client : tenant_store.clients().of_tenant(tenant))
    if (leaves && !checkpoints_.is_lost(client))
      bound += tenant_store.leases().leased(client, device);
  const bool is_here = may >= bound;
  for (const int client : tenant_store.clients().of_tenant(tenant))
    if (!leaves || tenant_store.leases().leased(client, device) != 0)
      checkpoints_.set_target(tenant_store, client, is_here);
  may = is_here ? may - bound : 0;
  for (const bool working : {true, false}) {
    for (const int client : tenant_store.clients().of_tenant(tenant)) {
      regatta_residency_state* const page = tenant_store.clients().residency(client, device);
      if (page == nullptr || has_work(tenant_store, client, device) != working ||
          checkpoints_.is_lost(client))
        continue;
      const std::uint64_t part = std::min(may, tenant_store.swappable().bytes(client, device));
      may -= part;
      if (place_of(tenant_store, client, device).granted != part)
        write_grant(tenant_store, client, device, part);
    }
  }
  TenantState& asked = at(devices_, device).asked[as_index(tenant)];
  asked.may_lease = std::min(may, asked.wanted);
  asked.may_lack = std::min(may - asked.may_lease, asked.lacking);
}

// Updates, decides and grants until nothing changes. Returns when to call again.
std::uint64_t ResidencyManager::step_device(TenantStore& tenant_store, TurnManager& turn_manager,
                                            int device, std::uint64_t now) {
  Device& of = at(devices_, device);
  std::uint64_t wake = TimerFd::kNever;
  for (int round = 0; round < 4; ++round) {
    sample_all(tenant_store, device, now);
    const std::uint64_t turns_wake = assign_turns(tenant_store, turn_manager, device, now);
    std::array<unsigned long long, REGATTA_TENANTS_MAX> may{};
    wake = std::min<std::uint64_t>(regatta_residency_step(&of.policy, now, may.data()), turns_wake);
    bool is_changed = false;
    for (unsigned i = 0; i < of.policy.count; ++i) {
      const regatta_residency_tenant& one = of.policy.tenants[i];
      if (may[i] < one.bound) may[i] = 0;  // then nothing is there
      const int tenant = static_cast<int>(i);
      if (one.resident > one.granted) wake = std::min(wake, now + kWatchNs);
      if (may[i] < one.granted && !may_call_back(turn_manager, tenant, device, now)) {
        turn_manager.set_swapped_out(tenant_store, tenant, device, true);
        wake = std::min(wake, now + kResidencyPollNs);
        continue;
      }
      of.asked[i].leaves_ns = 0;
      if (may[i] == one.granted) continue;
      grant(tenant_store, tenant, device, may[i]);
      is_changed = true;
    }
    if (!is_changed) break;
  }
  return wake;
}

void ResidencyManager::step(TenantStore& tenant_store, TurnManager& turn_manager) {
  if (!is_changed_) return;
  is_changed_ = false;
  const std::uint64_t now = os::monotonic_ns();
  if (!is_complete(tenant_store, now)) {
    is_changed_ = true;
    return timer_fd_.set(now + 20 * kMs);
  }
  std::uint64_t wake = TimerFd::kNever;
  for (int round = 0; round < 2; ++round) {
    wake = TimerFd::kNever;
    for (int device = 0; device < tenant_store.device_count(); ++device)
      wake = std::min(wake, step_device(tenant_store, turn_manager, device, now));
    const bool is_any = std::any_of(devices_.begin(), devices_.end(),
                                    [](const Device& of) { return of.policy.count != 0; });
    if (tenant_store.capacity().host.value == 0 && !is_any) break;
    bool is_changed = false;
    const auto may_go = [&](int client, bool here) {
      return may_begin(tenant_store, client, here);
    };
    wake = std::min(wake, checkpoints_.step(tenant_store, now, may_go, is_changed));
    if (!is_changed) break;
    wake = now;
  }
  timer_fd_.set(wake);
}

}  // namespace regatta::sharing
