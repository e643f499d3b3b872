// sharing/internal/hook/tenant.h: the tenant that this process belongs to: its quota, and what
// happens where nobody can say whether memory may be had: as its operator chose with --on-fault.
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

// Null: this process is of no tenant, or has not joined it yet.
Client* tenant_client();

// At the first use of the driver. False, and a line to standard error: the process may not use it.
bool join_tenant();

// To be called before the driver takes `bytes` of a device. None: the tenant may not have them.
// Else how much of it is to be given back by release(): all, or 0 in a child of fork(). Where a
// fault is met by letting things pass, they are a debt: leased as soon as a daemon is there. May
// wait for the daemon, or hours for room; `busy` is paused meanwhile, not when what is reserved
// counts.
std::optional<std::uint64_t> reserve(int device, std::uint64_t bytes,
                                     AccountingGuard* busy = nullptr);
void release(int device, std::uint64_t bytes);
// Leases what is owed, as far as the quota goes. Asks at most once in a second, and gives up on a
// daemon that does not answer at once, or while another thread asks it: for calls that wait anyway.
// When it is pressing, it asks now and waits for that daemon.
extern std::atomic<std::uint64_t> debt_bytes;  // of all devices; not less than what is owed now
void pay_known_debts(bool is_pressing);
inline void pay_debts() {
  if (debt_bytes.load(std::memory_order_relaxed) != 0) [[unlikely]]
    pay_known_debts(false);
}

// What is reserved now for this process.
std::uint64_t reserved_bytes(int device);

// What this process may give to an engine in a second; 0: as much as it likes.
std::uint64_t engine_rate(int device, regatta_engine engine);
// Waits until it may give so much, and counts it.
void acquire_engine(int device, regatta_engine engine, std::uint64_t units);

// One more session of a codec; false when the tenant may have no more.
bool open_session(int device, regatta_engine engine);
void close_session(int device, regatta_engine engine);

// Of a device, as the driver or the tenant sees it.
struct MemoryView {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
};
MemoryView tenant_view(int device, MemoryView real);

}  // namespace regatta::sharing::hook
