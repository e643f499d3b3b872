#include "regatta/gpu/sharing/internal/daemon/engines.h"

#include <algorithm>
#include <utility>

#include "regatta/base/os/clock.h"
#include "regatta/gpu/sharing/internal/policy/share.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kStepNs = 20'000'000;
// What one gets that was idle until now, before the next step.
constexpr unsigned kLeastPpm = 10'000;

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

bool shares_any(const EngineRates& rates) {
  return std::ranges::any_of(rates, [](std::uint64_t rate) { return rate != 0; });
}

}  // namespace

Engines::Engines(Alarm alarm, int devices, const EngineRates& rates, const EngineSessions& sessions)
    : alarm_(std::move(alarm)), rates_(rates), sessions_(sessions), devices_(at(devices)) {
  for (auto& device : devices_) {
    for (Engine& engine : device)
      engine.uses.resize(kClientsMax);
  }
}

Result<Engines> Engines::create(const Books& books, const EngineRates& rates,
                                const EngineSessions& sessions) {
  REGATTA_TRY(alarm, Alarm::create());
  if (shares_any(rates)) alarm.set(os::monotonic_ns() + kStepNs);
  return Engines(std::move(alarm), books.device_count(), rates, sessions);
}

void Engines::begin(const Books& books, int client) {
  for (int device = 0; device < books.device_count(); ++device) {
    const regatta_feed* feeds = books.feeds(client, device);
    for (int engine = 0; engine < REGATTA_ENGINES; ++engine) {
      devices_[at(device)][at(engine)].uses[at(client)] = {
          .known = feeds == nullptr ? 0 : __atomic_load_n(&feeds[engine].given, __ATOMIC_RELAXED)};
    }
  }
}

void Engines::end(const Books& books, int client, std::uint64_t now_ns) {
  look(books, client, now_ns);
  for (auto& device : devices_) {
    for (Engine& engine : device)
      engine.uses[at(client)] = Use();
  }
}

void Engines::forget(int tenant) {
  for (auto& device : devices_) {
    for (Engine& engine : device)
      engine.history.forget(tenant);
  }
}

void Engines::look(const Books& books, int client, std::uint64_t now_ns) {
  const int tenant = static_cast<int>(books.state().clients[client].tenant);
  for (int device = 0; device < books.device_count(); ++device) {
    const regatta_feed* feeds = books.feeds(client, device);
    if (feeds == nullptr) return;
    for (int number = 0; number < REGATTA_ENGINES; ++number) {
      Engine& engine = devices_[at(device)][at(number)];
      Use& use = engine.uses[at(client)];
      const std::uint64_t given = __atomic_load_n(&feeds[number].given, __ATOMIC_RELAXED);
      const bool waits = __atomic_load_n(&feeds[number].waiting, __ATOMIC_RELAXED) != 0;
      // Clients write there: a figure that goes back is not believed.
      if (given > use.known) engine.history.count(tenant, given - use.known, now_ns);
      if (given != use.known || waits) use.active_ns = now_ns;
      use.known = given;
    }
  }
}

void Engines::share(const Books& books, int device, regatta_engine engine,
                    std::uint64_t now_ns) const {
  std::array<regatta_share_request, kTenantsMax> requests{};
  std::array<unsigned, kTenantsMax> parts{};
  std::array<unsigned, kTenantsMax> active{};
  const std::vector<Use>& uses = devices_[at(device)][engine].uses;
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (books.state().tenants[tenant].live == 0) continue;
    for (const int client : books.clients_of(tenant)) {
      const std::uint64_t last = uses[at(client)].active_ns;
      if (last != 0 && now_ns - last < kActiveNs) ++active[at(tenant)];
    }
    requests[at(tenant)] = books.share_request(tenant);
    requests[at(tenant)].runnable = active[at(tenant)] != 0 ? 1 : 0;
  }
  regatta_shares(books.policy(), requests.data(), kTenantsMax, parts.data());
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    unsigned long long* shown = books.rates(tenant, device);
    if (shown == nullptr) continue;
    unsigned part = parts[at(tenant)];
    if (part == 0) part = std::max(requests[at(tenant)].quota_ppm, kLeastPpm);
    const std::uint64_t rate = rates_[engine] / REGATTA_WHOLE_PPM * part +
                               rates_[engine] % REGATTA_WHOLE_PPM * part / REGATTA_WHOLE_PPM;
    store(shown[engine],
          std::max(1ULL, static_cast<unsigned long long>(rate / std::max(1U, active[at(tenant)]))));
  }
}

void Engines::step(const Books& books, std::uint64_t now_ns) {
  if (shares_any(rates_)) alarm_.set(now_ns + kStepNs);
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (books.state().tenants[tenant].live == 0) continue;
    for (const int client : books.clients_of(tenant))
      look(books, client, now_ns);
  }
  for (int device = 0; device < books.device_count(); ++device) {
    for (int engine = 0; engine < REGATTA_ENGINES; ++engine) {
      if (rates_[at(engine)] != 0)
        share(books, device, static_cast<regatta_engine>(engine), now_ns);
    }
  }
}

unsigned Engines::sessions(const Books& books, int tenant, int device,
                           regatta_engine engine) const {
  unsigned sum = 0;
  for (const int client : books.clients_of(tenant)) {
    if (const regatta_feed* feeds = books.feeds(client, device))
      sum += __atomic_load_n(&feeds[engine].sessions, __ATOMIC_RELAXED);
  }
  return sum;
}

bool Engines::open_session(const Books& books, int client, int device,
                           regatta_engine engine) const {
  regatta_feed* feeds = books.feeds(client, device);
  if (feeds == nullptr) return false;
  const int tenant = static_cast<int>(books.state().clients[client].tenant);
  const std::uint64_t most = std::max<std::uint64_t>(
      1, std::uint64_t{sessions_[engine]} * books.part_ppm(tenant) / REGATTA_WHOLE_PPM);
  if (sessions_[engine] != 0 && sessions(books, tenant, device, engine) >= most) return false;
  __atomic_fetch_add(&feeds[engine].sessions, 1U, __ATOMIC_RELAXED);
  return true;
}

std::uint64_t Engines::total(int tenant, int device, regatta_engine engine) const {
  return devices_[at(device)][engine].history.total(tenant);
}

std::uint64_t Engines::last_second(int tenant, int device, regatta_engine engine,
                                   std::uint64_t now_ns) const {
  return devices_[at(device)][engine].history.last_second(tenant, now_ns);
}

}  // namespace regatta::sharing
