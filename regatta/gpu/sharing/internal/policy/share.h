/* sharing/internal/policy/share.h: the share of a device's time that each tenant is entitled to,
 * under four policies. Pure, in integers, in C: the user-space engine and the kernel module compile
 * the same source. Shares are in millionths of the device's time (ppm).
 */
#ifndef REGATTA_VGPU_POLICY_SHARE_H
#define REGATTA_VGPU_POLICY_SHARE_H

#ifdef __cplusplus
extern "C" {
#endif

enum { REGATTA_WHOLE_PPM = 1000000, REGATTA_TENANTS_MAX = 256 };

/* The share of each tenant:
 *   fixed         its quota; the share of an idle tenant stays idle
 *   equal         1 / N of the present tenants
 *   weight        its weight over those of the present tenants
 *   burst-weight  its weight over those of the tenants that have work, never less than its quota
 */
typedef enum {
  REGATTA_SHARE_FIXED,
  REGATTA_SHARE_EQUAL,
  REGATTA_SHARE_WEIGHT,
  REGATTA_SHARE_BURST_WEIGHT,
} regatta_share_policy;

typedef struct {
  unsigned quota_ppm; /* fixed: what it gets; burst-weight: the least it gets while it has work */
  unsigned weight;    /* 0 counts as 1 */
  unsigned char present;  /* a process of it holds the device open */
  unsigned char runnable; /* it has work now; implies present */
} regatta_share_request;

/* Writes the share of each of `count` tenants: 0 for absent ones and, under burst-weight, for those
 * without work. The shares never sum to more than the whole: quotas that do are scaled down alike.
 * Requires count <= REGATTA_TENANTS_MAX.
 */
void regatta_compute_shares(regatta_share_policy policy, const regatta_share_request* tenants,
                            unsigned count, unsigned* shares_ppm);

#ifdef __cplusplus
}
#endif

#endif
