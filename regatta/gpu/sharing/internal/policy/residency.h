/* sharing/internal/policy/residency.h: whose memory is on a device that has less than its tenants
 * want together, and when memory is swapped out and in. A tenant works while all its swappable
 * memory is resident. The tenant that waits longest is the queue head, the only one whose memory
 * comes in: space is called back for it from idle tenants, then from those that have worked long
 * enough for the cost of their swap (a time slice). A tenant needs nothing to give memory back, so
 * there is no circular wait; every time slice ends by time, so every queue head is served. Nothing
 * moves while all fit. Bound memory, which a process cannot move piece by piece, is called back
 * only where the rest of the tenants of the same class is not enough. Pure, in integers, in C: time
 * is an argument, in ns of any clock that does not go back.
 */
#ifndef REGATTA_VGPU_POLICY_RESIDENCY_H
#define REGATTA_VGPU_POLICY_RESIDENCY_H

#include "regatta/gpu/sharing/internal/policy/share.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The share of the time between two arrivals that the link may take, as far as the longest wait
 * allows time slices that are long enough.
 */
enum { REGATTA_SWAP_PERCENT = 15 };
#define REGATTA_RESIDENCY_SLICE_MIN_NS 20000000ULL
/* The queue head gets space in steps: at least this, an eighth of its memory, or what it lacks. */
#define REGATTA_RESIDENCY_STEP (8ULL << 20)

typedef struct {
  unsigned long long demand;   /* bytes that have to be resident for it to work; 0: nothing moves */
  unsigned long long resident; /* bytes that are resident */
  unsigned long long bound;    /* the part of the demand that leaves last and only as a whole */
  unsigned long long granted;  /* bytes that may be resident; below `resident`: it was called back
                                */
  unsigned long long lease_ns; /* length of its time slices; 0: by the cost of its swap */
  unsigned long long began_ns; /* its time slice */
  unsigned long long idle_since_ns;    /* since when it has no work */
  unsigned long long waiting_since_ns; /* since when it has work and is not in */
  unsigned char is_runnable;
  unsigned char is_admitted; /* it may work */
  unsigned char has_slice;   /* from its arrival until it is called back */
  unsigned char is_stuck;    /* was called back and gives nothing: nobody waits for it */
} regatta_residency_tenant;

typedef struct {
  unsigned long long capacity;        /* of the device, for swappable memory */
  unsigned long long bytes_per_us;    /* of the link, in one direction */
  unsigned long long longest_wait_ns; /* for a turn, where time slices have to be shortened for that
                                       */
  unsigned count;
  regatta_residency_tenant tenants[REGATTA_TENANTS_MAX];
} regatta_residency;

void regatta_residency_init(regatta_residency* residency, unsigned long long bytes_per_us,
                            unsigned long long longest_wait_ns);

/* The demand and the memory of a tenant now. `is_runnable`: it has work, or would have if its
 * memory were resident.
 */
void regatta_residency_update(regatta_residency* residency, unsigned tenant,
                              const regatta_residency_tenant* seen, unsigned long long now_ns);

/* A tenant has ended, with all its memory. */
void regatta_residency_forget(regatta_residency* residency, unsigned tenant);

/* Writes to `may` how much of each tenant may be resident from now on (less than its bound part:
 * nothing of it), and returns when to call again if nothing else happens (~0ULL: never). The caller
 * grants it to the tenants, then calls regatta_residency_update() for them. The sum of the larger
 * of `resident` and `may` never exceeds the capacity.
 */
unsigned long long regatta_residency_step(const regatta_residency* residency,
                                          unsigned long long now_ns, unsigned long long* may);

/* The time to move a tenant out and in. */
unsigned long long regatta_swap_cost_ns(const regatta_residency* residency, unsigned tenant);
/* How long a tenant stays after its arrival, while it has work and others wait. */
unsigned long long regatta_residency_slice_ns(const regatta_residency* residency, unsigned tenant);

#ifdef __cplusplus
}
#endif

#endif
