#include "regatta/gpu/sharing/internal/daemon/residences.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "regatta/base/core/log.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/futex.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
// A daemon that was started again waits so long for clients whose pages it could not open.
constexpr std::uint64_t kReturnNs = 2'000 * kMs;
// How often it looks while a turn ends, or somebody is waited for.
constexpr std::uint64_t kLookNs = kMs;
constexpr std::uint64_t kWatchNs = 500 * kMs;
// A turn that does not end is not waited for any longer.
constexpr std::uint64_t kTurnNs = 10'000 * kMs;

std::uint64_t in_ns(Seconds time) {
  return static_cast<std::uint64_t>(time.value * 1e9);
}

bool is_at_work(const Books& books, int client, int device) {
  const regatta_work* const work = books.work(client, device);
  return work != nullptr && regatta_work_doing(load(work->word)) == REGATTA_WORKS;
}

bool has_work(const Books& books, int client, int device) {
  const regatta_residence& page = *books.residence(client, device);
  return load(page.doing) != static_cast<unsigned>(REGATTA_IDLE);
}

void write_may(regatta_residence& page, std::uint64_t may) {
  store(page.may, static_cast<unsigned long long>(may));
  store(page.order, page.order + 1);
  os::futex_wake_all(&page.order);
}

}  // namespace

Residences::Residences(Alarm alarm, const ResidenceOptions& options)
    : alarm_(std::move(alarm)),
      options_(options),
      checkpoints_(options.checkpoints),
      began_ns_(os::monotonic_ns()) {}

Result<Residences> Residences::create(const Books& books, const ResidenceOptions& options) {
  REGATTA_TRY(alarm, Alarm::create());
  Residences made(std::move(alarm), options);
  made.devices_.resize(static_cast<std::size_t>(books.device_count()));
  for (Device& device : made.devices_) {
    regatta_residency_init(&device.policy, static_cast<std::uint64_t>(options.link.value / 1e6),
                           in_ns(options.longest_wait));
    regatta_leases_init(&device.leases);
  }
  return made;
}

void Residences::acknowledge_timer() {
  if (alarm_.acknowledge() != Alarm::kNever) is_stirred_ = true;
}

// Whether the pages of all clients are known: before that nobody can say what is on a device.
bool Residences::is_complete(const Books& books, std::uint64_t now) const {
  if (now >= began_ns_ + kReturnNs) return true;
  for (int client = 0; client < kClientsMax; ++client) {
    const ClientRecord& record = books.state().clients[client];
    if (record.live != 0 && record.page_inode != 0 && !books.has_purses(client) &&
        books.is_overcommitted(static_cast<int>(record.tenant)))
      return false;
  }
  return true;
}

// Whether what stays of the tenant's memory comes and goes with its processes.
bool Residences::can_leave(const Books& books, int tenant, int device) const {
  bool is_any_away = false;
  for (const int client : books.clients_of(tenant)) {
    if (books.stays(client, device) == 0) continue;
    const bool is_here = Checkpoints::place(books, client) == REGATTA_HERE;
    if (is_here && !checkpoints_.may_leave(books, client, device)) return false;
    if (checkpoints_.is_stuck(books, client)) return false;
    is_any_away = is_any_away || !is_here;
  }
  return is_any_away || checkpoints_.is_available();
}

void Residences::see_client(const Books& books, int client, int device, bool leaves,
                            std::uint64_t now, regatta_resident& seen) {
  regatta_residence* const page = books.residence(client, device);
  if (page == nullptr || checkpoints_.is_lost(client)) return;
  checkpoints_.notice(books, client);
  const std::uint64_t movable = books.movable(client, device);
  const std::uint64_t stays = leaves ? books.stays(client, device) : 0;
  if (movable == 0 && stays == 0 && load(page->resident) == 0 && load(page->may) == 0) return;
  if (load(page->may) > movable) write_may(*page, movable);  // what it has freed
  const bool is_away = Checkpoints::place(books, client) == REGATTA_AWAY;
  seen.demand += movable + stays;
  seen.bound += stays;
  seen.resident += load(page->resident) + (is_away ? 0 : stays);
  seen.may += load(page->may) + (checkpoints_.is_wanted_here(books, client) ? stays : 0);
  // Nobody sees the calls of every name that wait while a process is away.
  const std::uint64_t away_since = checkpoints_.away_since_ns(client);
  const bool is_long_away = away_since != 0 && now - away_since >= in_ns(options_.longest_wait);
  if (has_work(books, client, device) || is_long_away) seen.is_runnable = 1;
}

regatta_resident Residences::see(const Books& books, int tenant, int device, std::uint64_t now) {
  regatta_resident seen{};
  Asked& asked = devices_[static_cast<std::size_t>(device)].asked[static_cast<std::size_t>(tenant)];
  asked.is_at_work = false;
  const bool leaves = books.leaves(tenant, device);
  for (const int client : books.clients_of(tenant)) {
    see_client(books, client, device, leaves, now, seen);
    asked.is_at_work = asked.is_at_work || is_at_work(books, client, device);
  }
  if (now >= asked.wanted_until_ns) asked.wanted = asked.may_lease = 0;
  if (asked.wanted != 0) seen.is_runnable = 1;
  seen.demand += asked.wanted;
  seen.may += asked.may_lease;
  seen.lease_ns = std::uint64_t{books.state().tenants[tenant].flags >> kLeaseBit} * 1'000'000'000U;
  // What is only allowed to be leased is not there.
  const std::uint64_t may = seen.may - asked.may_lease;
  if (seen.resident <= may || seen.resident != asked.resident) {
    asked.since_ns = now;
    asked.resident = seen.resident;
    asked.is_stuck = false;
  } else if (!asked.is_stuck && now - asked.since_ns >= in_ns(options_.patience)) {
    asked.is_stuck = true;
    log_warning(fmt::format("gpu daemon: tenant {} was asked for memory of GPU {} and gives none",
                            books.tenant_name(tenant), device));
  }
  seen.is_stuck = asked.is_stuck ? 1 : 0;
  return seen;
}

void Residences::look_who_leaves(Books& books, int device) const {
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (books.state().tenants[tenant].live == 0 || !books.is_overcommitted(tenant)) continue;
    books.set_leaves(tenant, device, can_leave(books, tenant, device));
  }
}

void Residences::forget_tenant(int tenant) {
  const auto number = static_cast<unsigned>(tenant);
  for (Device& of : devices_) {
    regatta_residency_forget(&of.policy, number);
    regatta_leases_see(&of.leases, number, 0, 0, os::monotonic_ns());
    of.asked[number] = {};
  }
}

void Residences::see_all(Books& books, int device, std::uint64_t now) {
  Device& of = devices_[static_cast<std::size_t>(device)];
  look_who_leaves(books, device);
  of.policy.capacity = books.room_for_movable(device);
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    const auto number = static_cast<unsigned>(tenant);
    const regatta_resident& known = of.policy.tenants[number];
    if (books.state().tenants[tenant].live == 0 || !books.is_overcommitted(tenant)) {
      if (known.demand != 0 || known.may != 0 || known.is_runnable != 0)
        regatta_residency_forget(&of.policy, number);
      if (of.leases.tenants[number].lease_ns != 0)
        regatta_leases_see(&of.leases, number, 0, 0, now);
      continue;
    }
    const regatta_resident seen = see(books, tenant, device, now);
    regatta_residency_see(&of.policy, number, &seen, now);
    if (seen.lease_ns != 0)
      regatta_leases_see(&of.leases, number, seen.lease_ns,
                         known.is_runnable != 0 && known.is_in != 0 ? 1 : 0, now);
  }
}

// Who may have turns: whose memory is there, and while one has the device alone, that one. Returns
// when that changes.
std::uint64_t Residences::give_turns(const Books& books, Timekeeper& times, int device,
                                     std::uint64_t now) {
  Device& of = devices_[static_cast<std::size_t>(device)];
  unsigned long long wake = Alarm::kNever;
  const int alone = regatta_leases_step(&of.leases, now, &wake);
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (books.state().tenants[tenant].live == 0) continue;
    const auto number = static_cast<std::size_t>(tenant);
    const regatta_resident& known = of.policy.tenants[number];
    const bool is_away = known.demand != 0 && (known.is_in == 0 || of.asked[number].leaves_ns != 0);
    times.set_out(books, tenant, device, is_away || (alone >= 0 && tenant != alone));
  }
  return wake;
}

// Whether a tenant can be asked for memory: its turn has ended. It gets no other one meanwhile.
bool Residences::may_be_told(const Timekeeper& times, int tenant, int device, std::uint64_t now) {
  Asked& asked = devices_[static_cast<std::size_t>(device)].asked[static_cast<std::size_t>(tenant)];
  if (asked.leaves_ns == 0) asked.leaves_ns = std::max<std::uint64_t>(now, 1);
  if (now - asked.leaves_ns >= kTurnNs) return true;
  return !asked.is_at_work && !times.has_turn(tenant, device);
}

// Shares `may` among the tenant's clients: first what leaves only as a whole, where there is enough
// for all of it, else nothing is there; then who has work, and nobody gets more than it has memory;
// then what the tenant wants to lease.
void Residences::tell(const Books& books, int tenant, int device, std::uint64_t may) {
  const bool leaves = books.leaves(tenant, device);
  std::uint64_t bound = 0;
  for (const int client : books.clients_of(tenant))
    if (leaves && !checkpoints_.is_lost(client)) bound += books.stays(client, device);
  const bool is_here = may >= bound;
  for (const int client : books.clients_of(tenant))
    if (!leaves || books.stays(client, device) != 0) checkpoints_.want(books, client, is_here);
  may = is_here ? may - bound : 0;
  for (const bool working : {true, false}) {
    for (const int client : books.clients_of(tenant)) {
      regatta_residence* const page = books.residence(client, device);
      if (page == nullptr || has_work(books, client, device) != working ||
          checkpoints_.is_lost(client))
        continue;
      const std::uint64_t part = std::min(may, books.movable(client, device));
      may -= part;
      if (load(page->may) != part) write_may(*page, part);
    }
  }
  Asked& asked = devices_[static_cast<std::size_t>(device)].asked[static_cast<std::size_t>(tenant)];
  asked.may_lease = std::min(may, asked.wanted);
}

// Asks, tells and looks again until nothing changes. Returns when to look again.
std::uint64_t Residences::step_device(Books& books, Timekeeper& times, int device,
                                      std::uint64_t now) {
  Device& of = devices_[static_cast<std::size_t>(device)];
  std::uint64_t wake = Alarm::kNever;
  for (int round = 0; round < 4; ++round) {
    see_all(books, device, now);
    const std::uint64_t turns_wake = give_turns(books, times, device, now);
    std::array<unsigned long long, REGATTA_TENANTS_MAX> may{};
    wake = std::min<std::uint64_t>(regatta_residency_step(&of.policy, now, may.data()), turns_wake);
    bool is_changed = false;
    for (unsigned i = 0; i < of.policy.count; ++i) {
      const regatta_resident& one = of.policy.tenants[i];
      if (may[i] < one.bound) may[i] = 0;  // then nothing is there
      const int tenant = static_cast<int>(i);
      if (one.resident > one.may) wake = std::min(wake, now + kWatchNs);
      if (may[i] < one.may && !may_be_told(times, tenant, device, now)) {
        times.set_out(books, tenant, device, true);
        wake = std::min(wake, now + kLookNs);
        continue;
      }
      of.asked[i].leaves_ns = 0;
      if (may[i] == one.may) continue;
      tell(books, tenant, device, may[i]);
      is_changed = true;
    }
    if (!is_changed) break;
  }
  return wake;
}

void Residences::step(Books& books, Timekeeper& times) {
  if (!is_stirred_) return;
  is_stirred_ = false;
  const std::uint64_t now = os::monotonic_ns();
  if (!is_complete(books, now)) {
    is_stirred_ = true;
    return alarm_.set(now + 20 * kMs);
  }
  std::uint64_t wake = Alarm::kNever;
  for (int round = 0; round < 2; ++round) {
    wake = Alarm::kNever;
    for (int device = 0; device < books.device_count(); ++device)
      wake = std::min(wake, step_device(books, times, device, now));
    const bool is_any = std::any_of(devices_.begin(), devices_.end(),
                                    [](const Device& of) { return of.policy.count != 0; });
    if (books.host_memory().value == 0 && !is_any) break;
    bool is_changed = false;
    const auto may_go = [&](int client, bool here) { return may_begin(books, client, here); };
    wake = std::min(wake, checkpoints_.step(books, now, may_go, is_changed));
    if (!is_changed) break;
    wake = now;
  }
  alarm_.set(wake);
}

}  // namespace regatta::sharing
