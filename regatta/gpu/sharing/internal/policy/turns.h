/* sharing/internal/policy/turns.h: which tenant has the device when, so that each tenant gets its
 * share of the time (share.h). Tenants take turns; a turn is charged with all of its time, from its
 * begin to the end of its last kernel, so nothing has to be known about kernels before. A kernel
 * that takes too long makes a debt that later turns pay. Deficit accounting after Shreedhar and
 * Varghese, "Efficient Fair Queueing Using Deficit Round Robin", SIGCOMM 1995, in time instead of
 * bytes. Pure, in integers, in C: time is an argument, in ns of any clock that does not go back.
 */
#ifndef REGATTA_VGPU_POLICY_TURNS_H
#define REGATTA_VGPU_POLICY_TURNS_H

#include "regatta/gpu/sharing/internal/policy/share.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A turn lasts this part of a quantum at least where a tenant that is owed more has work again. */
#define REGATTA_RETURN_PARTS 5ULL

/* Each tenant may claim this many quanta of its share of the time that was lost between turns. */
#define REGATTA_KEPT_QUANTA 4

/* A tenant without work keeps its claim, and its neighbours their debts, this long. */
#define REGATTA_RETURN_NS 20000000ULL

/* A tenant of high priority goes first while it owes no more than this beside others: the priority
 * decides when it runs, its share how much.
 */
#define REGATTA_HIGH_DEBT_NS 20000000ULL

/* Balances are in ns of the device times ppm: exact, and 2.5 hours of debt fit. */
typedef struct {
  long long balance;                /* above 0: the device owes it time */
  unsigned long long idle_since_ns; /* when it last ended its work; 0: never */
  unsigned share_ppm;
  unsigned char runnable;
  unsigned char is_high;
  unsigned char returned; /* it has work again after a pause, and has had no turn since */
} regatta_turn_tenant;

typedef struct {
  unsigned long long now_ns;
  unsigned long long began_ns; /* of the turn in progress */
  unsigned long long quantum_ns;
  int holder; /* a tenant, or -1 */
  unsigned count;
  unsigned char conserves; /* never idle while a tenant has work: only tenants with work have shares
                            */
  regatta_turn_tenant tenants[REGATTA_TENANTS_MAX];
} regatta_turns;

/* `quantum_ns`: how long a turn lasts while others wait. The error of a share over a window w is at
 * most some quanta and the longest kernel, over w.
 */
void regatta_turns_init(regatta_turns* turns, unsigned count, unsigned long long quantum_ns,
                        unsigned long long now_ns);

/* Sets the shares, at any time; balances stay. `conserves` as for burst-weight. */
void regatta_turns_set_shares(regatta_turns* turns, const unsigned* shares_ppm, int conserves,
                              unsigned long long now_ns);

/* Sets whether the tenant has work. An idle tenant earns at most one quantum of its share, so it
 * saves up no burst; what it was owed before is lost after REGATTA_RETURN_NS; its debt shrinks. One
 * that has work again does not wait for the whole quantum of a holder that is owed less.
 */
void regatta_turns_set_runnable(regatta_turns* turns, unsigned tenant, int is_runnable,
                                unsigned long long now_ns);

/* Sets high priority, or removes it. A high tenant pays later for what it takes at once beyond its
 * share.
 */
void regatta_turns_set_high(regatta_turns* turns, unsigned tenant, int is_high);

/* The tenant that may begin a turn now: the one that the device owes most, or -1; then *wait_ns is
 * how long until that can change by time alone (~0ULL: never). Requires no holder.
 */
int regatta_turns_next(regatta_turns* turns, unsigned long long now_ns,
                       unsigned long long* wait_ns);
void regatta_turns_begin(regatta_turns* turns, unsigned tenant, unsigned long long now_ns);

/* How long the holder may continue to launch while nothing else changes: until its quantum is over
 * and a tenant that is owed more may run, or its share is used up; 0 for a tenant of normal
 * priority while one of high priority waits. ~0ULL: for ever. 0 without a holder.
 */
unsigned long long regatta_turns_left(regatta_turns* turns, unsigned long long now_ns);
/* The holder's last kernel has ended: it is charged until now. Does nothing without a holder. */
void regatta_turns_end(regatta_turns* turns, unsigned long long now_ns);

#ifdef __cplusplus
}
#endif

#endif
