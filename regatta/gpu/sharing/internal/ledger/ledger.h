/* sharing/internal/ledger/ledger.h: how much device memory a tenant may have and has, exact to the
 * byte. Memory is handed out in leases: a client (a process of the tenant) leases some, uses it
 * without a call (lease_counter.h), and the daemon can call back the spare part. Leases count
 * against the quota, so the sum of what clients use never exceeds it, whatever they do at the same
 * time. A reservation is thus part of a lease from the start: there is nothing to commit, and one
 * that is not needed is released. Pure, in integers, in C: the user-space engine and the kernel
 * module compile the same source.
 */
#ifndef REGATTA_VGPU_LEDGER_LEDGER_H
#define REGATTA_VGPU_LEDGER_LEDGER_H

#ifdef __cplusplus
extern "C" {
#endif

enum { REGATTA_DEVICES_MAX = 16 };

/* The most that a quota, a lease or a request can be: 48 bits, see lease_counter.h. */
#define REGATTA_MEMORY_MAX ((1ULL << 48) - 1)
/* A client asks the daemon at most once for so much. */
#define REGATTA_LEASE_LEAST (16ULL << 20)
/* The unit in which the driver takes memory of a device, and in which memory is moved and counted.
 * A tenant with less can hold nothing.
 */
#define REGATTA_BLOCK_BYTES (2ULL << 20)

/* Quota and leased bytes of one tenant on one device. A quota may be set below what is leased: then
 * no more is leased until enough has come back.
 */
typedef struct {
  unsigned long long quota;
  unsigned long long leased;
} regatta_account;

/* Bytes that may still be leased. */
unsigned long long regatta_account_room(const regatta_account* account);

/* How much to lease to a client that holds `held` and lacks `least`: 0 when there is no room for
 * that. Else at least `least`, and as much again as the client holds, so that one which grows asks
 * a logarithmic number of times; but beyond `least` never more than an eighth of the room.
 */
unsigned long long regatta_lease_size(const regatta_account* account, unsigned long long held,
                                      unsigned long long least);

#ifdef __cplusplus
}
#endif

#endif
