/* sharing/internal/policy/residency.h: whose memory is on a device that has less than its tenants
 * want together, and when it goes to the host and comes back. A tenant works while all its
 * swappable memory is there. Who waits longest is the queue head, the only one whose memory comes
 * in: space is asked back for it from those who are idle, then from those who have worked long
 * enough for what their swap cost (a time slice). Who was asked needs nothing to obey, so nobody
 * waits in a circle; every time slice ends by time, so every queue head is served. Nothing moves
 * while all fit. Memory that is bound together, as what a process has that cannot be moved piece by
 * piece, is asked for where the rest of those who are as good to ask is not enough. Pure, in
 * integers, in C: time is an argument, in ns of any clock that does not go back.
 */
#ifndef REGATTA_VGPU_POLICY_RESIDENCY_H
#define REGATTA_VGPU_POLICY_RESIDENCY_H

#include "regatta/gpu/sharing/internal/policy/share.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of the time from one arrival to the next, what the link may take: as far as the longest wait
 * allows time slices that are long enough.
 */
enum { REGATTA_SWAP_PERCENT = 15 };
#define REGATTA_RESIDENCY_SLICE_MIN_NS 20000000ULL
/* The queue head gets space in steps of this at least, of an eighth of its memory, or what it
 * lacks. */
#define REGATTA_RESIDENCY_STEP (8ULL << 20)

typedef struct {
  unsigned long long demand;   /* what has to be there for it to work; 0: nothing moves */
  unsigned long long resident; /* what is there */
  unsigned long long bound;    /* of the demand: what leaves after all else and only as a whole */
  unsigned long long granted;  /* what it was told that may be there; above: it was asked to give */
  unsigned long long lease_ns; /* the length of its time slices; 0: by what its swap costs */
  unsigned long long began_ns; /* its time slice */
  unsigned long long idle_since_ns;    /* since when it has no work */
  unsigned long long waiting_since_ns; /* since when it has work and is not in */
  unsigned char is_runnable;
  unsigned char is_admitted; /* it may work */
  unsigned char has_slice;   /* from when it came in until it is asked to give */
  unsigned char is_stuck;    /* was asked and does not obey: it is not waited for */
} regatta_residency_tenant;

typedef struct {
  unsigned long long capacity;        /* of the device, for swappable memory */
  unsigned long long bytes_per_us;    /* of the link, in one direction */
  unsigned long long longest_wait_ns; /* for a turn, where time slices have to be cut for that */
  unsigned count;
  regatta_residency_tenant tenants[REGATTA_TENANTS_MAX];
} regatta_residency;

void regatta_residency_init(regatta_residency* residency, unsigned long long bytes_per_us,
                            unsigned long long longest_wait_ns);

/* What a tenant wants and has now. `is_runnable`: it has work, or would have if its memory were
 * there.
 */
void regatta_residency_update(regatta_residency* residency, unsigned tenant,
                              const regatta_residency_tenant* seen, unsigned long long now_ns);

/* A tenant that has gone, with all it had. */
void regatta_residency_forget(regatta_residency* residency, unsigned tenant);

/* Writes to `may` what each tenant may have there from now on (less than what is bound of it: that
 * is not there, and neither is anything else), and returns when to ask again if
 * nothing else happens (~0ULL: never). The caller tells the tenants, then sees them anew. The sum
 * of the larger of `resident` and `may` never grows beyond the capacity.
 */
unsigned long long regatta_residency_step(const regatta_residency* residency,
                                          unsigned long long now_ns, unsigned long long* may);

/* What it takes to move a tenant out and in. */
unsigned long long regatta_swap_cost_ns(const regatta_residency* residency, unsigned tenant);
/* How long a tenant stays that came in, while it has work and others wait. */
unsigned long long regatta_residency_slice_ns(const regatta_residency* residency, unsigned tenant);

#ifdef __cplusplus
}
#endif

#endif
