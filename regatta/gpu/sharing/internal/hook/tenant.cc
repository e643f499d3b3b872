#include "regatta/gpu/sharing/internal/hook/tenant.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>

#include <sys/mman.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"
#include "regatta/gpu/sharing/internal/client/client.h"
#include "regatta/gpu/sharing/internal/client/engine_rate_limiter.h"
#include "regatta/gpu/sharing/internal/client/tenant_page.h"
#include "regatta/gpu/sharing/internal/hook/contexts.h"
#include "regatta/gpu/sharing/internal/hook/launch_gate.h"
#include "regatta/gpu/sharing/internal/hook/memory.h"
#include "regatta/gpu/sharing/internal/hook/report.h"

namespace regatta::sharing::hook {

std::atomic<std::uint64_t> debt_bytes = 0;

namespace {

constexpr Seconds kTimeout{5.0};  // with a daemon that is started again
constexpr Seconds kPause{1.0};    // after a fault, before the daemon is asked again
constexpr Seconds kMoment{0.05};  // for its answer, where the program must not wait

// All for the life of the process: other threads may be in it when it ends.
struct Tenant {
  Mutex mutex;
  // For views without a client.
  const regatta_tenant_page* page REGATTA_GUARDED_BY(mutex) = nullptr;
  std::atomic<Client*> client = nullptr;
  std::atomic<double> fault_until = 0;
  std::atomic<bool> is_daemon_dead = false;  // when the last fault was met
  std::array<std::atomic<std::uint64_t>, REGATTA_DEVICES_MAX> reserved{};
  // The part of them that was allowed without a daemon and is not leased yet.
  std::array<std::atomic<std::uint64_t>, REGATTA_DEVICES_MAX> owed{};
  std::atomic<double> pay_at = 0;  // not before
  EngineRateLimiter rate_limiter;
};

Tenant& tenant() {
  static Tenant only;
  return only;
}

// The page that this process inherited, of the daemon that was there then.
const regatta_tenant_page* inherited_page() {
  const MutexLock lock(tenant().mutex);
  if (tenant().page != nullptr) return tenant().page;
  const auto fd = find_tenant_page();
  if (!fd) return nullptr;
  void* const memory = ::mmap(nullptr, REGATTA_PAGE_SIZE, PROT_READ, MAP_SHARED, *fd, 0);
  if (memory == MAP_FAILED) return nullptr;
  const auto* const page = static_cast<const regatta_tenant_page*>(memory);
  if (page->magic == REGATTA_TENANT_MAGIC && page->version == REGATTA_TENANT_VERSION)
    tenant().page = page;
  return tenant().page;
}

bool is_paused() {
  return os::monotonic_now().value < tenant().fault_until.load(std::memory_order_relaxed);
}

bool is_open_on_fault() {
  Client* const client = tenant().client.load(std::memory_order_acquire);
  const regatta_tenant_page* const page =
      client != nullptr ? &client->pages().tenant() : inherited_page();
  return page != nullptr &&
         (__atomic_load_n(&page->flags, __ATOMIC_RELAXED) & REGATTA_TENANT_OPEN_ON_FAULT) != 0;
}

// Anything but a dead daemon may be the program's doing: no descriptors, no right to connect, a
// daemon that is kept busy.
bool is_daemon_known_dead() {
  if (Client* const client = tenant().client.load(std::memory_order_acquire))
    return client->is_daemon_dead();
  const regatta_tenant_page* const page = inherited_page();
  return page != nullptr &&
         is_daemon_dead({page->socket, ::strnlen(page->socket, sizeof page->socket)});
}

// The message about a call that no daemon can decide, where it is allowed and where it is refused.
struct Ending {
  const char* open;
  const char* closed;
};
constexpr Ending kMemory{"; memory is counted later", "; memory is refused"};
constexpr Ending kSession{"; sessions of codecs are not counted",
                          "; sessions of codecs are refused"};

// The operator's choice for such a call: 0 allows it.
std::optional<std::uint64_t> after_fault(const std::string& what, Ending ending) {
  const bool is_new = !is_paused();
  if (is_new) tenant().is_daemon_dead = is_daemon_known_dead();
  const bool is_open = tenant().is_daemon_dead && is_open_on_fault();
  if (is_new) {
    report(what + (is_open ? ending.open : ending.closed));
    tenant().fault_until = (os::monotonic_now() + kPause).value;
  }
  if (is_open) return 0;
  return std::nullopt;
}

// An allowed reservation becomes a debt.
std::optional<std::uint64_t> owe(int device, std::uint64_t bytes, const std::string& why) {
  if (!after_fault(why, kMemory)) return std::nullopt;
  if (!is_known(device)) return 0;
  debt_bytes += bytes;
  tenant().owed[as_index(device)] += bytes;
  return bytes;
}

// Strikes up to `bytes` off what is owed; how many.
std::uint64_t strike(std::atomic<std::uint64_t>& owed, std::uint64_t bytes) {
  std::uint64_t known = owed.load();
  while (!owed.compare_exchange_weak(known, known - std::min(known, bytes))) {
  }
  debt_bytes -= std::min(known, bytes);
  return std::min(known, bytes);
}

// Leases what is owed of a device, or as much as the tenant may still have. False: the daemon does
// not answer now.
bool pay(Client& client, int device, bool is_pressing) {
  const auto lease = [&](std::uint64_t bytes) {
    return is_pressing ? client.try_reserve(device, bytes)
                       : client.try_reserve_within(kMoment, device, bytes);
  };
  std::atomic<std::uint64_t>& owed = tenant().owed[as_index(device)];
  std::uint64_t bytes = owed.load();
  if (bytes == 0) return true;
  Status status = lease(bytes);
  if (!status && status.error().code == Code::kExhausted) {
    const std::uint64_t quota =
        __atomic_load_n(&client.pages().tenant().quota[device], __ATOMIC_RELAXED);
    const std::uint64_t leased =
        __atomic_load_n(&client.pages().tenant().leased[device], __ATOMIC_RELAXED);
    bytes = std::min(bytes, quota - std::min(quota, leased) + client.pages().spare(device));
    if (bytes != 0) status = lease(bytes);
  }
  // Another thread may have paid or freed meanwhile: what is too much goes back.
  if (status) client.release(device, bytes - strike(owed, bytes));
  if (!status && status.error().code == Code::kConflict) return false;
  // A daemon answers again: calls need not be let through any more.
  const bool is_answer = status || status.error().code == Code::kExhausted;
  tenant().fault_until = is_answer ? 0 : (os::monotonic_now() + kPause).value;
  return is_answer;
}

// Null, and why in `error`, when it is not a client and cannot become one now.
Client* connected(std::string& error) {
  Client* const known = tenant().client.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  error = "no daemon to ask for memory";
  if (is_paused()) return nullptr;
  const MutexLock lock(tenant().mutex);
  if (tenant().client.load() != nullptr) return tenant().client;
  auto client = Client::connect(kTimeout);
  if (client && !open_gates()) {
    error = "no memory for the gates of launches";
  } else if (client) {
    (*client)->set_listener([](const Error& why) {
      report(why.message + "; launches wait until this process reaches its daemon");
    });
    tenant().client.store(client->release(), std::memory_order_release);
  } else {
    error = client.error().message;
  }
  return tenant().client;
}

}  // namespace

Client* tenant_client() {
  return tenant().client.load(std::memory_order_acquire);
}

bool join_tenant() {
  std::string error;
  return connected(error) != nullptr || after_fault(error, kMemory).has_value();
}

// As reserve(), which counts it.
static std::optional<std::uint64_t> request_room(int device, std::uint64_t bytes) {
  std::string error;
  Client* const client = connected(error);
  if (client == nullptr) return owe(device, bytes, error);
  // The driver refuses a child of a process that used it, in its own words.
  if (!client->is_joined_process()) return 0;
  // First, or a program could have its quota beside them.
  if (debt_bytes != 0) pay_known_debts(!is_paused());
  // While the daemon is away, what the process has spare is all that can be had without waiting.
  if (is_known(device) && is_paused() && client->pages().spare(device) < bytes)
    return owe(device, bytes, "the daemon does not answer");
  const Status status = client->reserve(device, bytes);
  if (status) return bytes;
  if (status.error().code == Code::kExhausted) return std::nullopt;
  return owe(device, bytes, status.error().message);
}

std::optional<std::uint64_t> reserve(int device, std::uint64_t bytes, AccountingGuard* busy) {
  if (bytes == 0) return 0;
  if (bytes > REGATTA_MEMORY_MAX) return std::nullopt;  // also where nobody can be asked
  if (busy != nullptr) busy->pause();
  const auto granted = request_room(device, bytes);
  if (busy != nullptr) busy->go_on();
  if (granted && *granted != 0) tenant().reserved[as_index(device)] += *granted;
  return granted;
}

void release(int device, std::uint64_t bytes) {
  Client* const client = tenant().client.load(std::memory_order_acquire);
  if (bytes == 0 || !is_known(device)) return;
  tenant().reserved[as_index(device)] -= bytes;
  const std::uint64_t struck = strike(tenant().owed[as_index(device)], bytes);
  if (client != nullptr) client->release(device, bytes - struck);
}

void owe_beyond_quota(int device, std::uint64_t bytes) {
  if (bytes == 0 || !is_known(device)) return;
  tenant().reserved[as_index(device)] += bytes;
  debt_bytes += bytes;
  tenant().owed[as_index(device)] += bytes;
  pay_known_debts(!is_paused());
}

void pay_known_debts(bool is_pressing) {
  Client* const client = tenant().client.load(std::memory_order_acquire);
  if (client == nullptr || !client->is_joined_process()) return;
  if (!is_pressing && os::monotonic_now().value < tenant().pay_at.load()) return;
  // Where one device's are not paid for want of an answer, there is no need to ask for the others.
  for (int device = 0; device < REGATTA_DEVICES_MAX; ++device)
    if (!pay(*client, device, is_pressing)) break;
  if (debt_bytes != 0) tenant().pay_at = (os::monotonic_now() + kPause).value;
}

std::uint64_t reserved_bytes(int device) {
  return tenant().reserved[as_index(device)].load();
}

// Null where the tenant has no part of the device's engines.
static Client* client_on(int device) {
  Client* const client = tenant().client.load(std::memory_order_acquire);
  return client != nullptr && client->is_joined_process() && is_known(device) ? client : nullptr;
}

std::uint64_t engine_rate(int device, regatta_engine engine) {
  const Client* const client = client_on(device);
  return client == nullptr ? 0 : EngineRateLimiter::rate(*client, device, engine);
}

void acquire_engine(int device, regatta_engine engine, std::uint64_t units) {
  if (Client* const client = client_on(device))
    tenant().rate_limiter.acquire(*client, device, engine, units);
}

bool open_session(int device, regatta_engine engine) {
  std::string error;
  Client* const client = connected(error);
  if (client == nullptr) return after_fault(error, kSession).has_value();
  if (!client->is_joined_process() || device < 0)
    return true;  // the driver has its own words for it
  if (is_paused()) return after_fault("the daemon does not answer", kSession).has_value();
  const Status status = client->open_session(device, engine);
  if (status) return true;
  return status.error().code != Code::kExhausted &&
         after_fault(status.error().message, kSession).has_value();
}

void close_session(int device, regatta_engine engine) {
  Client* const client = tenant().client.load(std::memory_order_acquire);
  if (client != nullptr) client->close_session(device, engine);
}

MemoryView tenant_view(int device, MemoryView real) {
  if (!is_known(device)) return real;
  Client* const client = tenant().client.load(std::memory_order_acquire);
  const regatta_tenant_page* const page =
      client != nullptr ? &client->pages().tenant() : inherited_page();
  if (page == nullptr) return real;
  const std::uint64_t quota = __atomic_load_n(&page->quota[device], __ATOMIC_RELAXED);
  const std::uint64_t leased = __atomic_load_n(&page->leased[device], __ATOMIC_RELAXED);
  // Spare bytes of the tenant's other processes cannot be seen from here: they count as used.
  const std::uint64_t spare =
      client != nullptr && client->is_joined_process() ? client->pages().spare(device) : 0;
  const std::uint64_t free = quota - std::min(quota, leased) + spare;
  const std::uint64_t total = std::min(real.total_bytes, quota);
  // With over-commit it matters little what others have on the device now.
  const bool moves = client != nullptr && client->pages().is_overcommitted();
  return {total, std::min({moves ? total : real.free_bytes, free, total})};
}

}  // namespace regatta::sharing::hook
