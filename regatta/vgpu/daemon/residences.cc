#include "regatta/vgpu/daemon/residences.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "regatta/core/log.h"
#include "regatta/os/clock.h"
#include "regatta/os/futex.h"

namespace regatta::vgpu {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
// A daemon that was started again waits so long for clients whose pages it could not open.
constexpr std::uint64_t kReturnNs = 2'000 * kMs;
// How often it looks while a turn ends, or somebody is waited for.
constexpr std::uint64_t kLookNs = kMs;
constexpr std::uint64_t kWatchNs = 500 * kMs;
// A turn that does not end is not waited for any longer.
constexpr std::uint64_t kTurnNs = 10'000 * kMs;
// Who is told to ask again for memory that stays does so within this time.
constexpr std::uint64_t kWantedNs = 1'000 * kMs;

std::uint64_t in_ns(Seconds time) {
  return static_cast<std::uint64_t>(time.value * 1e9);
}

std::uint64_t read(const unsigned long long& word) {
  return __atomic_load_n(&word, __ATOMIC_SEQ_CST);
}

bool is_at_work(const Books& books, int client, int device) {
  const regatta_work* const work = books.work(client, device);
  return work != nullptr &&
         regatta_work_doing(__atomic_load_n(&work->word, __ATOMIC_SEQ_CST)) == REGATTA_WORKS;
}

bool has_work(const Books& books, int client, int device) {
  const regatta_residence& page = *books.residence(client, device);
  return __atomic_load_n(&page.doing, __ATOMIC_SEQ_CST) != static_cast<unsigned>(REGATTA_IDLE);
}

void write_may(regatta_residence& page, std::uint64_t may) {
  store(page.may, static_cast<unsigned long long>(may));
  store(page.order, page.order + 1);
  os::futex_wake_all(&page.order);
}

}  // namespace

Residences::Residences(Alarm alarm, const ResidenceOptions& options)
    : alarm_(std::move(alarm)), options_(options), began_ns_(os::monotonic_ns()) {}

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

Residences::Place Residences::place_of(const Books& books, int tenant, int device) {
  Place sum;
  for (const int client : books.clients_of(tenant)) {
    const regatta_residence* const page = books.residence(client, device);
    if (page == nullptr) continue;
    sum.resident += read(page->resident);
    sum.away += read(page->away);
    sum.moved_in += read(page->moved_in);
    sum.moved_out += read(page->moved_out);
  }
  return sum;
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

regatta_resident Residences::see(const Books& books, int tenant, int device, std::uint64_t now) {
  regatta_resident seen{};
  Asked& asked = devices_[static_cast<std::size_t>(device)].asked[static_cast<std::size_t>(tenant)];
  asked.is_at_work = false;
  for (const int client : books.clients_of(tenant)) {
    regatta_residence* const page = books.residence(client, device);
    if (page == nullptr) continue;
    const std::uint64_t movable = books.movable(client, device);
    if (movable == 0 && read(page->resident) == 0 && read(page->may) == 0) continue;
    if (read(page->may) > movable) write_may(*page, movable);  // what it has freed
    seen.demand += movable;
    seen.resident += read(page->resident);
    seen.may += read(page->may);
    if (has_work(books, client, device)) seen.is_runnable = 1;
    asked.is_at_work = asked.is_at_work || is_at_work(books, client, device);
  }
  seen.lease_ns = std::uint64_t{books.state().tenants[tenant].flags >> kLeaseBit} * 1'000'000'000U;
  if (seen.resident <= seen.may || seen.resident != asked.resident) {
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

void Residences::see_all(const Books& books, int device, std::uint64_t now) {
  Device& of = devices_[static_cast<std::size_t>(device)];
  of.policy.capacity = books.room_for_movable(device);
  if (now < of.wanted_until_ns)
    of.policy.capacity -= std::min<std::uint64_t>(of.policy.capacity, of.wanted_to_stay);
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

// Shares `may` among the tenant's clients: who has work comes first, and nobody gets more than it
// has memory.
void Residences::tell(const Books& books, int tenant, int device, std::uint64_t may) {
  for (const bool working : {true, false}) {
    for (const int client : books.clients_of(tenant)) {
      regatta_residence* const page = books.residence(client, device);
      if (page == nullptr || has_work(books, client, device) != working) continue;
      const std::uint64_t part = std::min(may, books.movable(client, device));
      may -= part;
      if (read(page->may) != part) write_may(*page, part);
    }
  }
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
  for (int device = 0; device < books.device_count(); ++device)
    wake = std::min(wake, step_device(books, times, device, now));
  alarm_.set(wake);
}

Residences::Room Residences::room_for(Books& books, int tenant, int device, std::uint64_t bytes) {
  Device& of = devices_[static_cast<std::size_t>(device)];
  if (of.policy.count == 0) return Room::kNow;  // nobody's memory moves
  const bool moves = books.is_overcommitted(tenant);
  if (moves && !books.may_stay(device, bytes)) books.recall_spare(device);
  if (moves && !books.may_stay(device, bytes)) return Room::kNever;
  std::uint64_t held = 0;
  std::uint64_t leased = 0;
  for (int other = 0; other < kTenantsMax; ++other) {
    if (books.state().tenants[other].live == 0) continue;
    leased += books.tenant_holding(other, device).leased;
    for (const int client : books.clients_of(other)) {
      const regatta_residence* const page = books.residence(client, device);
      if (page != nullptr && books.is_overcommitted(other))
        held += std::max(read(page->resident), read(page->may));
    }
  }
  const auto whole =
      static_cast<std::uint64_t>(books.capacity()[static_cast<std::size_t>(device)].value);
  if (whole == 0 || leased + held + bytes <= whole) {
    of.wanted_to_stay = 0;
    return Room::kNow;
  }
  if (moves) {  // what the others may have is kept free for them already
    of.wanted_to_stay = bytes;
    of.wanted_until_ns = os::monotonic_ns() + kWantedNs;
  }
  is_stirred_ = true;
  return Room::kLater;
}

}  // namespace regatta::vgpu
