/* sharing/internal/policy/turns.h: who has the device when, so that each tenant gets its part of
 * the time (share.h). Tenants take turns; a turn is charged with all of its time, from its begin to
 * the end of its last kernel, so nothing has to be known about kernels before. What a long kernel
 * took too much is a debt that later turns pay. Deficit accounting after Shreedhar and Varghese,
 * "Efficient Fair Queueing Using Deficit Round Robin", SIGCOMM 1995, in time instead of bytes.
 * Pure, in integers, in C: time is an argument, in ns of any clock that does not go back.
 */
#ifndef REGATTA_VGPU_POLICY_TURNS_H
#define REGATTA_VGPU_POLICY_TURNS_H

#include "regatta/gpu/sharing/internal/policy/share.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tenant of high priority goes first while it owes no more than this beside others: the priority
 * says when it runs, its part how much.
 */
#define REGATTA_HIGH_DEBT_NS 20000000ULL

/* Balances are in ns of the device times ppm: exact, and 2.5 hours of debt fit. */
typedef struct {
  long long balance; /* above 0: the device owes it time */
  unsigned share_ppm;
  unsigned char runnable;
  unsigned char is_high;
} regatta_turn_tenant;

typedef struct {
  unsigned long long now_ns;
  unsigned long long began_ns; /* of the turn under way */
  unsigned long long quantum_ns;
  int holder; /* a tenant, or -1 */
  unsigned count;
  unsigned char conserves; /* never idle while a tenant has work: parts are of those that have */
  regatta_turn_tenant tenants[REGATTA_TENANTS_MAX];
} regatta_turns;

/* `quantum_ns`: how long a turn lasts while others wait; error of a share over a window of w is at
 * most some quanta and the longest kernel, over w.
 */
void regatta_turns_init(regatta_turns* turns, unsigned count, unsigned long long quantum_ns,
                        unsigned long long now_ns);

/* New parts, at any time; debts and claims stay. `conserves` as for burst-weight. */
void regatta_turns_set_parts(regatta_turns* turns, const unsigned* parts_ppm, int conserves,
                             unsigned long long now_ns);

/* Whether the tenant has work. Idle tenants earn nothing beyond one quantum of their part, so that
 * nobody saves up a burst; their debt shrinks.
 */
void regatta_turns_set_runnable(regatta_turns* turns, unsigned tenant, int is_runnable,
                                unsigned long long now_ns);

/* High priority, or not. What a high tenant may take at once beyond its part, it pays later. */
void regatta_turns_set_high(regatta_turns* turns, unsigned tenant, int is_high);

/* Who may begin a turn now: the tenant that the device owes most, or -1 where nobody may; then
 * *wait_ns is how long until that can change by time alone (~0ULL: never). Requires no holder.
 */
int regatta_turns_next(regatta_turns* turns, unsigned long long now_ns,
                       unsigned long long* wait_ns);
void regatta_turns_begin(regatta_turns* turns, unsigned tenant, unsigned long long now_ns);

/* How long the holder may go on launching while nothing else changes: until its quantum is over and
 * somebody else may run who is owed more, or it has used up its part; 0 for one that is not of high
 * priority while one that is waits. ~0ULL: for ever. 0 where nobody holds.
 */
unsigned long long regatta_turns_left(regatta_turns* turns, unsigned long long now_ns);
/* Whether nothing is left. */
int regatta_turns_is_over(regatta_turns* turns, unsigned long long now_ns);
/* The holder's last kernel ended: it is charged no more. Nothing where nobody holds. */
void regatta_turns_end(regatta_turns* turns, unsigned long long now_ns);

#ifdef __cplusplus
}
#endif

#endif
