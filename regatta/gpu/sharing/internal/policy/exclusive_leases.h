/* sharing/internal/policy/exclusive_leases.h: which tenant has a device alone for a while. A tenant
 * with a lease that gets work has the device alone until it pauses or its lease is over; then the
 * one that waits longest has it, or all together. A tenant's next lease begins no sooner than the
 * others had as much time as its last one took, so they have at least half of the time. Pure, in
 * integers, in C: time is an argument, in ns of any clock that does not go back.
 */
#ifndef REGATTA_VGPU_POLICY_EXCLUSIVE_LEASES_H
#define REGATTA_VGPU_POLICY_EXCLUSIVE_LEASES_H

#include "regatta/gpu/sharing/internal/policy/share.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A shorter pause does not end a lease. */
#define REGATTA_EXCLUSIVE_LEASE_PAUSE_NS 50000000ULL

typedef struct {
  unsigned long long lease_ns;      /* 0: it has no lease */
  unsigned long long changed_ns;    /* since when it has work, or has none */
  unsigned long long not_before_ns; /* of its next lease; it waits since the later of both */
  unsigned char is_ready;           /* it has work, and its memory is on the device */
} regatta_exclusive_tenant;

typedef struct {
  int holder; /* a tenant, or -1 */
  unsigned count;
  unsigned long long since_ns;
  regatta_exclusive_tenant tenants[REGATTA_TENANTS_MAX];
} regatta_exclusive_leases;

void regatta_exclusive_leases_init(regatta_exclusive_leases* leases);
void regatta_exclusive_leases_update(regatta_exclusive_leases* leases, unsigned tenant,
                                     unsigned long long lease_ns, int is_ready,
                                     unsigned long long now_ns);
/* The tenant that has the device alone now, or -1; *wake_ns is when that can change by time alone
 * (~0ULL: never).
 */
int regatta_exclusive_leases_step(regatta_exclusive_leases* leases, unsigned long long now_ns,
                                  unsigned long long* wake_ns);

#ifdef __cplusplus
}
#endif

#endif
