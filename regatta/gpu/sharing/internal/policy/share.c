#include "regatta/gpu/sharing/internal/policy/share.h"

typedef unsigned long long u64;

static u64 weight_of(const regatta_share_request* tenant) {
  return tenant->weight == 0 ? 1 : tenant->weight;
}

static int counts(regatta_share_policy policy, const regatta_share_request* tenant) {
  if (policy == REGATTA_SHARE_BURST_WEIGHT) return tenant->runnable;
  return tenant->present || tenant->runnable;
}

static void scale_down(unsigned* shares, unsigned count) {
  u64 sum = 0;
  unsigned i;
  for (i = 0; i < count; ++i)
    sum += shares[i];
  if (sum <= REGATTA_WHOLE_PPM) return;
  for (i = 0; i < count; ++i)
    shares[i] = (unsigned)(shares[i] * (u64)REGATTA_WHOLE_PPM / sum);
}

static void by_quota(const regatta_share_request* tenants, unsigned count, unsigned* shares) {
  unsigned i;
  for (i = 0; i < count; ++i)
    shares[i] = counts(REGATTA_SHARE_FIXED, &tenants[i]) ? tenants[i].quota_ppm : 0;
  scale_down(shares, count);
}

/* Gives each tenant its weight's share of the rest, then lifts those below their floor to it and
 * divides the rest anew: at most `count` rounds, for each lifts one tenant for good.
 */
static void by_weight(regatta_share_policy policy, const regatta_share_request* tenants,
                      unsigned count, unsigned* shares) {
  unsigned char lifted[REGATTA_TENANTS_MAX] = {0};
  const int has_floor = policy == REGATTA_SHARE_BURST_WEIGHT;
  int changed = 1;
  unsigned floors[REGATTA_TENANTS_MAX];
  unsigned i;
  for (i = 0; i < count; ++i)
    floors[i] = has_floor && counts(policy, &tenants[i]) ? tenants[i].quota_ppm : 0;
  scale_down(floors, count);
  while (changed) {
    u64 weights = 0;
    u64 left = REGATTA_WHOLE_PPM;
    changed = 0;
    for (i = 0; i < count; ++i) {
      if (!counts(policy, &tenants[i])) continue;
      if (lifted[i])
        left -= floors[i];
      else
        weights += policy == REGATTA_SHARE_EQUAL ? 1 : weight_of(&tenants[i]);
    }
    for (i = 0; i < count; ++i) {
      const u64 own = policy == REGATTA_SHARE_EQUAL ? 1 : weight_of(&tenants[i]);
      shares[i] = 0;
      if (!counts(policy, &tenants[i])) continue;
      shares[i] = lifted[i] ? floors[i] : (unsigned)(left * own / weights);
      if (lifted[i] || shares[i] >= floors[i]) continue;
      lifted[i] = 1;
      changed = 1;
    }
  }
}

void regatta_compute_shares(regatta_share_policy policy, const regatta_share_request* tenants,
                            unsigned count, unsigned* shares_ppm) {
  if (policy == REGATTA_SHARE_FIXED)
    by_quota(tenants, count, shares_ppm);
  else
    by_weight(policy, tenants, count, shares_ppm);
}
