// sharing/internal/hook/tenant.h: the tenant of this process: its quota, and the operator's choice
// (--on-fault) for calls that no daemon can decide.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "regatta/gpu/sharing/internal/ledger/page_layout.h"

namespace regatta::sharing {
class Client;
}

namespace regatta::sharing::hook {

class AccountingGuard;

// Null: this process belongs to no tenant, or has not joined it yet.
Client* tenant_client();

// At the first use of the driver. False, with a line on standard error: the process may not use it.
bool join_tenant();

// Call before the driver takes `bytes` of a device. None: the tenant may not have them. Otherwise
// the bytes to return by release(): all, or 0 in a child of fork(). Bytes that are allowed without
// a daemon are a debt, leased as soon as a daemon answers. May wait for the daemon, or hours for
// room; `busy` is paused meanwhile, but not while the reservation is counted.
std::optional<std::uint64_t> reserve(int device, std::uint64_t bytes,
                                     AccountingGuard* busy = nullptr);
void release(int device, std::uint64_t bytes);
// Counts bytes that the device holds already and that reserve() refused. They are a debt: nothing
// more is reserved until they are returned, or the quota has room for them.
void owe_beyond_quota(int device, std::uint64_t bytes);
// Leases the debt, as far as the quota allows. At most one request a second, which gives up on a
// daemon that does not reply at once, or while another thread waits for it: for calls that wait
// anyway. `is_pressing`: requests now and waits for the daemon.
extern std::atomic<std::uint64_t> debt_bytes;  // of all devices; an upper bound of the debt
void pay_known_debts(bool is_pressing);
inline void pay_debts() {
  if (debt_bytes.load(std::memory_order_relaxed) != 0) [[unlikely]]
    pay_known_debts(false);
}

// Bytes that this process has reserved.
std::uint64_t reserved_bytes(int device);

// Units a second that this process may give to an engine; 0: unlimited.
std::uint64_t engine_rate(int device, regatta_engine engine);
// Waits until the rate allows `units`, and counts them.
void acquire_engine(int device, regatta_engine engine, std::uint64_t units);

// Opens one more session of a codec; false when the tenant may have no more.
bool open_session(int device, regatta_engine engine);
void close_session(int device, regatta_engine engine);

// Memory of a device, as the driver or the tenant sees it.
struct MemoryView {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
};
MemoryView tenant_view(int device, MemoryView real);

}  // namespace regatta::sharing::hook
