#include "regatta/gpu/sharing/internal/policy/exclusive_leases.h"

typedef unsigned long long u64;

static const u64 kForever = ~0ULL;

static u64 least_of(u64 a, u64 b) {
  return a < b ? a : b;
}

static u64 waits_since(const regatta_exclusive_tenant* one) {
  return one->changed_ns > one->not_before_ns ? one->changed_ns : one->not_before_ns;
}

void regatta_exclusive_leases_init(regatta_exclusive_leases* leases) {
  static const regatta_exclusive_tenant kNobody = {0, 0, 0, 0};
  unsigned i;
  leases->holder = -1;
  leases->count = 0;
  leases->since_ns = 0;
  for (i = 0; i < REGATTA_TENANTS_MAX; ++i)
    leases->tenants[i] = kNobody;
}

void regatta_exclusive_leases_update(regatta_exclusive_leases* leases, unsigned tenant,
                                     u64 lease_ns, int is_ready, u64 now_ns) {
  regatta_exclusive_tenant* const known = &leases->tenants[tenant];
  if (tenant >= leases->count) leases->count = tenant + 1;
  known->lease_ns = lease_ns;
  if ((known->is_ready != 0) == (is_ready != 0)) return;
  known->is_ready = is_ready != 0 ? 1 : 0;
  known->changed_ns = now_ns;
}

/* When the holder's lease ends if nothing else happens. */
static u64 end_of(const regatta_exclusive_leases* leases) {
  const regatta_exclusive_tenant* const holder = &leases->tenants[leases->holder];
  const u64 end = leases->since_ns + holder->lease_ns;
  if (holder->is_ready) return end;
  return least_of(end, holder->changed_ns + REGATTA_EXCLUSIVE_LEASE_PAUSE_NS);
}

int regatta_exclusive_leases_step(regatta_exclusive_leases* leases, u64 now_ns, u64* wake_ns) {
  unsigned i;
  *wake_ns = kForever;
  if (leases->holder >= 0 && now_ns >= end_of(leases)) {
    leases->tenants[leases->holder].not_before_ns = now_ns + (now_ns - leases->since_ns);
    leases->holder = -1;
  }
  if (leases->holder < 0) {
    for (i = 0; i < leases->count; ++i) {
      const regatta_exclusive_tenant* const one = &leases->tenants[i];
      if (one->lease_ns == 0 || !one->is_ready) continue;
      if (one->not_before_ns > now_ns) {
        *wake_ns = least_of(*wake_ns, one->not_before_ns);
      } else if (leases->holder < 0 ||
                 waits_since(one) < waits_since(&leases->tenants[leases->holder])) {
        leases->holder = (int)i;
      }
    }
    leases->since_ns = now_ns;
  }
  if (leases->holder >= 0) *wake_ns = end_of(leases);
  return leases->holder;
}
