// The part of residences.h that is about room: what of a device is taken, and whether more may be
// leased there.

#include <algorithm>

#include "regatta/base/os/clock.h"
#include "regatta/gpu/sharing/internal/daemon/residences.h"

namespace regatta::sharing {
namespace {

// Who is told to ask again for memory does so within this time.
constexpr std::uint64_t kWantedNs = 1'000'000'000;

bool is_waiting(const regatta_resident& one) {
  return one.is_runnable != 0 && one.is_in == 0;
}

}  // namespace

Residences::Place Residences::place_of(const Books& books, int tenant, int device) {
  Place sum;
  for (const int client : books.clients_of(tenant)) {
    const regatta_residence* const page = books.residence(client, device);
    if (page == nullptr) continue;
    sum.resident += load(page->resident);
    sum.away += load(page->away);
    sum.moved_in += load(page->moved_in);
    sum.moved_out += load(page->moved_out);
    if (Checkpoints::place(books, client) != REGATTA_AWAY) continue;
    const auto held = books.holding(client, device);
    sum.away += held.leased - held.spare;
    sum.leased_away += held.leased - held.spare;
  }
  return sum;
}

// What is on the device or was promised a place there.
std::uint64_t Residences::taken(const Books& books, int device) const {
  const Device& of = devices_[static_cast<std::size_t>(device)];
  std::uint64_t sum = 0;
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (books.state().tenants[tenant].live == 0) continue;
    const bool moves = books.is_overcommitted(tenant);
    if (moves) sum += of.asked[static_cast<std::size_t>(tenant)].may_lease;
    for (const int client : books.clients_of(tenant)) {
      if (checkpoints_.is_lost(client)) continue;
      const bool is_away = Checkpoints::place(books, client) == REGATTA_AWAY;
      if (!is_away || checkpoints_.is_wanted_here(books, client))
        sum += books.stays(client, device);
      const regatta_residence* const page = books.residence(client, device);
      if (page != nullptr && moves) sum += std::max(load(page->resident), load(page->may));
    }
  }
  return sum;
}

// Whether a process can leave: nothing of it has to be moved before. Or come back: there is room
// for all it had, for the driver does not get over a lack of it.
bool Residences::may_begin(const Books& books, int client, bool here) const {
  if (here && Checkpoints::place(books, client) != REGATTA_AWAY) return true;
  for (int device = 0; device < books.device_count(); ++device) {
    const std::uint64_t whole = books.whole(device);
    if (here && books.stays(client, device) == 0 && books.movable(client, device) == 0) continue;
    if (here && whole != 0 && taken(books, device) > whole) return false;  // with what it had
    if (!here && load(books.residence(client, device)->resident) != 0) return false;
  }
  return true;
}

// Who waits for room has its turn when the policy allowed it as much; nobody else takes what is
// being freed for those who wait.
bool Residences::is_its_turn(int tenant, int device, std::uint64_t bytes) const {
  const Device& of = devices_[static_cast<std::size_t>(device)];
  if (of.asked[static_cast<std::size_t>(tenant)].may_lease >= bytes) return true;
  const regatta_resident& known = of.policy.tenants[static_cast<std::size_t>(tenant)];
  if (known.has_stay != 0 && known.is_in != 0) return true;
  for (unsigned other = 0; other < of.policy.count; ++other)
    if (static_cast<int>(other) != tenant && is_waiting(of.policy.tenants[other])) return false;
  return !is_waiting(known);
}

// Whether there can be room for all tenants, one after the other, when this client has so much more
// there. One that gets memory on a second device cannot leave the first one any more.
bool Residences::may_ever(Books& books, int client, int device, std::uint64_t bytes) const {
  const auto tenant = static_cast<int>(books.state().clients[client].tenant);
  for (int other = 0; other < books.device_count(); ++other) {
    const bool has_other = books.stays(client, other) != 0 || books.movable(client, other) != 0;
    if (other != device && has_other && !books.may_bind(tenant)) return false;
  }
  const bool leaves = books.leaves(tenant, device);
  const bool can = checkpoints_.may_leave(books, client, device) ||
                   Checkpoints::place(books, client) != REGATTA_HERE;
  books.set_leaves(tenant, device, leaves && can);
  const bool may = books.may_stay(tenant, device, bytes);
  books.set_leaves(tenant, device, leaves);
  return may;
}

// What it says stands in the client's page, for this daemon and the next.
Residences::Room Residences::bind(Books& books, int client) {
  is_stirred_ = true;
  for (int device = 0; device < books.device_count(); ++device)
    look_who_leaves(books, device);
  if (!books.may_bind(static_cast<int>(books.state().clients[client].tenant))) return Room::kNever;
  if (Checkpoints::place(books, client) != REGATTA_HERE) return Room::kLater;
  checkpoints_.want(books, client, true);  // it may have been about to leave
  store(books.process(client)->bound, 1U);
  return Room::kNow;
}

Residences::Room Residences::room_for(Books& books, int client, int device, std::uint64_t bytes) {
  Device& of = devices_[static_cast<std::size_t>(device)];
  if (of.policy.count == 0) return Room::kNow;  // nobody's memory moves
  const auto tenant = static_cast<int>(books.state().clients[client].tenant);
  Asked& asked = of.asked[static_cast<std::size_t>(tenant)];
  const bool moves = books.is_overcommitted(tenant);
  is_stirred_ = true;
  if (moves && !checkpoints_.is_decided()) return Room::kLater;
  for (int other = 0; other < books.device_count(); ++other)
    look_who_leaves(books, other);
  if (moves && !may_ever(books, client, device, bytes)) books.recall_spare(device);
  if (moves && !may_ever(books, client, device, bytes)) {
    asked.wanted = asked.may_lease = 0;
    return Room::kNever;
  }
  const std::uint64_t whole = books.whole(device);
  const std::uint64_t others = taken(books, device) - (moves ? asked.may_lease : 0);
  const bool fits = whole == 0 || others + bytes <= whole;
  if (fits && (!moves || is_its_turn(tenant, device, bytes))) {
    asked.wanted = asked.may_lease = 0;
    return Room::kNow;
  }
  if (moves) {
    asked.wanted = std::max(asked.wanted, bytes);
    asked.wanted_until_ns = os::monotonic_ns() + kWantedNs;
  }
  return Room::kLater;
}

}  // namespace regatta::sharing
