#include "regatta/gpu/sharing/internal/daemon/engine_shares.h"

#include <algorithm>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/clock.h"
#include "regatta/gpu/sharing/internal/policy/share.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kStepNs = 20'000'000;
// The share of a tenant that was idle until now, until the next step.
constexpr unsigned kLeastPpm = 10'000;

bool shares_any(const EngineRates& rates) {
  return std::ranges::any_of(rates, [](std::uint64_t rate) { return rate != 0; });
}

}  // namespace

EngineShares::EngineShares(TimerFd alarm, int devices, const EngineRates& rates,
                           const EngineSessions& sessions)
    : timer_fd_(std::move(alarm)), rates_(rates), sessions_(sessions), devices_(as_index(devices)) {
  for (auto& device : devices_) {
    for (Engine& engine : device)
      engine.uses.resize(kClientsMax);
  }
}

Result<EngineShares> EngineShares::create(const TenantStore& tenant_store, const EngineRates& rates,
                                          const EngineSessions& sessions) {
  REGATTA_TRY(alarm, TimerFd::create());
  if (shares_any(rates)) alarm.set(os::monotonic_ns() + kStepNs);
  return EngineShares(std::move(alarm), tenant_store.device_count(), rates, sessions);
}

void EngineShares::begin(const TenantStore& tenant_store, int client) {
  for (int device = 0; device < tenant_store.device_count(); ++device) {
    const regatta_engine_usage* feeds = tenant_store.clients().engine_usage(client, device);
    for (int engine = 0; engine < REGATTA_ENGINES; ++engine) {
      at(at(at(devices_, device), engine).uses, client) = {
          .known = feeds == nullptr ? 0 : __atomic_load_n(&feeds[engine].given, __ATOMIC_RELAXED)};
    }
  }
}

void EngineShares::end(const TenantStore& tenant_store, int client, std::uint64_t now_ns) {
  sample(tenant_store, client, now_ns);
  for (auto& device : devices_) {
    for (Engine& engine : device)
      at(engine.uses, client) = Use();
  }
}

void EngineShares::forget(int tenant) {
  for (auto& device : devices_) {
    for (Engine& engine : device)
      engine.history.forget(tenant);
  }
}

void EngineShares::sample(const TenantStore& tenant_store, int client, std::uint64_t now_ns) {
  const int tenant = tenant_store.clients().tenant_of(client);
  for (int device = 0; device < tenant_store.device_count(); ++device) {
    const regatta_engine_usage* feeds = tenant_store.clients().engine_usage(client, device);
    if (feeds == nullptr) return;
    for (int number = 0; number < REGATTA_ENGINES; ++number) {
      Engine& engine = at(devices_, device)[as_index(number)];
      Use& use = at(engine.uses, client);
      const std::uint64_t given = __atomic_load_n(&feeds[number].given, __ATOMIC_RELAXED);
      const bool waits = __atomic_load_n(&feeds[number].waiting, __ATOMIC_RELAXED) != 0;
      // Clients write there, so a count that decreases is ignored.
      if (given > use.known) engine.history.count(tenant, given - use.known, now_ns);
      if (given != use.known || waits) use.active_ns = now_ns;
      use.known = given;
    }
  }
}

void EngineShares::share(const TenantStore& tenant_store, int device, regatta_engine engine,
                         std::uint64_t now_ns) const {
  std::array<regatta_share_request, kTenantsMax> requests{};
  std::array<unsigned, kTenantsMax> shares{};
  std::array<unsigned, kTenantsMax> active{};
  const std::vector<Use>& uses = at(devices_, device)[engine].uses;
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (!tenant_store.tenants().is_live(tenant)) continue;
    for (const int client : tenant_store.clients().of_tenant(tenant)) {
      const std::uint64_t last = at(uses, client).active_ns;
      if (last != 0 && now_ns - last < kActiveNs) ++at(active, tenant);
    }
    at(requests, tenant) = tenant_store.share_request(tenant);
    at(requests, tenant).runnable = at(active, tenant) != 0 ? 1 : 0;
  }
  regatta_compute_shares(tenant_store.tenants().policy(), requests.data(), kTenantsMax,
                         shares.data());
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    unsigned long long* shown = tenant_store.tenants().engine_rates(tenant, device);
    if (shown == nullptr) continue;
    unsigned share = at(shares, tenant);
    if (share == 0) share = std::max(at(requests, tenant).quota_ppm, kLeastPpm);
    const std::uint64_t rate = rates_[engine] / REGATTA_WHOLE_PPM * share +
                               rates_[engine] % REGATTA_WHOLE_PPM * share / REGATTA_WHOLE_PPM;
    store(shown[engine],
          std::max(1ULL, static_cast<unsigned long long>(rate / std::max(1U, at(active, tenant)))));
  }
}

void EngineShares::step(const TenantStore& tenant_store, std::uint64_t now_ns) {
  if (shares_any(rates_)) timer_fd_.set(now_ns + kStepNs);
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (!tenant_store.tenants().is_live(tenant)) continue;
    for (const int client : tenant_store.clients().of_tenant(tenant))
      sample(tenant_store, client, now_ns);
  }
  for (int device = 0; device < tenant_store.device_count(); ++device) {
    for (int engine = 0; engine < REGATTA_ENGINES; ++engine) {
      if (at(rates_, engine) != 0)
        share(tenant_store, device, static_cast<regatta_engine>(engine), now_ns);
    }
  }
}

unsigned EngineShares::sessions(const TenantStore& tenant_store, int tenant, int device,
                                regatta_engine engine) const {
  unsigned sum = 0;
  for (const int client : tenant_store.clients().of_tenant(tenant)) {
    if (const regatta_engine_usage* feeds = tenant_store.clients().engine_usage(client, device))
      sum += __atomic_load_n(&feeds[engine].sessions, __ATOMIC_RELAXED);
  }
  return sum;
}

bool EngineShares::open_session(const TenantStore& tenant_store, int client, int device,
                                regatta_engine engine) const {
  regatta_engine_usage* feeds = tenant_store.clients().engine_usage(client, device);
  if (feeds == nullptr) return false;
  const int tenant = tenant_store.clients().tenant_of(client);
  const std::uint64_t most =
      std::max<std::uint64_t>(1, std::uint64_t{sessions_[engine]} *
                                     tenant_store.tenants().share_ppm(tenant) / REGATTA_WHOLE_PPM);
  if (sessions_[engine] != 0 && sessions(tenant_store, tenant, device, engine) >= most)
    return false;
  __atomic_fetch_add(&feeds[engine].sessions, 1U, __ATOMIC_RELAXED);
  return true;
}

std::uint64_t EngineShares::total(int tenant, int device, regatta_engine engine) const {
  return at(devices_, device)[engine].history.total(tenant);
}

std::uint64_t EngineShares::last_second(int tenant, int device, regatta_engine engine,
                                        std::uint64_t now_ns) const {
  return at(devices_, device)[engine].history.last_second(tenant, now_ns);
}

}  // namespace regatta::sharing
