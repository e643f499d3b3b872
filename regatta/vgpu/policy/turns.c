#include "regatta/vgpu/policy/turns.h"

typedef unsigned long long u64;

static const u64 kForever = ~0ULL;

/* Idle tenants may claim one quantum of their part. */
static long long idle_claim(const regatta_turns* turns, const regatta_turn_tenant* tenant) {
  return (long long)(turns->quantum_ns * tenant->part_ppm);
}

/* Where the device never idles, only differences between balances count: they are kept around 0. */
static void recenter(regatta_turns* turns) {
  int is_any = 0;
  long long most = 0;
  long long least = 0;
  long long shift;
  unsigned i;
  for (i = 0; i < turns->count; ++i) {
    const regatta_turn_tenant* tenant = &turns->tenants[i];
    if (!tenant->runnable) continue;
    if (!is_any || tenant->balance > most) most = tenant->balance;
    if (!is_any || tenant->balance < least) least = tenant->balance;
    is_any = 1;
  }
  if (!is_any) return;
  shift = most < 0 ? most : least > 0 ? least : 0;
  for (i = 0; i < turns->count; ++i)
    if (turns->tenants[i].runnable) turns->tenants[i].balance -= shift;
}

static void advance(regatta_turns* turns, u64 now_ns) {
  const u64 passed = now_ns > turns->now_ns ? now_ns - turns->now_ns : 0;
  unsigned i;
  if (passed == 0) return;
  turns->now_ns = now_ns;
  for (i = 0; i < turns->count; ++i) {
    regatta_turn_tenant* tenant = &turns->tenants[i];
    const long long earned = (long long)(passed * tenant->part_ppm);
    const long long most = idle_claim(turns, tenant);
    if (tenant->runnable) {
      tenant->balance += earned;
    } else if (tenant->balance < most) {
      tenant->balance = tenant->balance + earned < most ? tenant->balance + earned : most;
    }
  }
  if (turns->conserves) recenter(turns);
}

void regatta_turns_init(regatta_turns* turns, unsigned count, u64 quantum_ns, u64 now_ns) {
  unsigned i;
  turns->now_ns = now_ns;
  turns->began_ns = now_ns;
  turns->quantum_ns = quantum_ns;
  turns->holder = -1;
  turns->count = count;
  turns->conserves = 0;
  for (i = 0; i < count; ++i) {
    turns->tenants[i].balance = 0;
    turns->tenants[i].part_ppm = 0;
    turns->tenants[i].runnable = 0;
  }
}

void regatta_turns_set_parts(regatta_turns* turns, const unsigned* parts_ppm, int conserves,
                             u64 now_ns) {
  unsigned i;
  advance(turns, now_ns);
  turns->conserves = conserves ? 1 : 0;
  for (i = 0; i < turns->count; ++i)
    turns->tenants[i].part_ppm = parts_ppm[i];
}

void regatta_turns_set_runnable(regatta_turns* turns, unsigned tenant, int is_runnable,
                                u64 now_ns) {
  regatta_turn_tenant* one = &turns->tenants[tenant];
  const long long most = idle_claim(turns, one);
  advance(turns, now_ns);
  /* A claim from waiting is lost with the work that waited. */
  if (!is_runnable && one->balance > most) one->balance = most;
  one->runnable = is_runnable ? 1 : 0;
}

/* The runnable tenant other than `except` with the largest balance; -1: there is none. */
static int owed_most(const regatta_turns* turns, int except) {
  int best = -1;
  unsigned i;
  for (i = 0; i < turns->count; ++i) {
    const regatta_turn_tenant* tenant = &turns->tenants[i];
    if (!tenant->runnable || tenant->part_ppm == 0 || (int)i == except) continue;
    if (best < 0 || tenant->balance > turns->tenants[best].balance) best = (int)i;
  }
  return best;
}

int regatta_turns_next(regatta_turns* turns, u64 now_ns, u64* wait_ns) {
  int best;
  unsigned i;
  advance(turns, now_ns);
  *wait_ns = kForever;
  best = owed_most(turns, -1);
  if (best < 0) return -1;
  if (turns->conserves || turns->tenants[best].balance >= 0) {
    *wait_ns = 0;
    return best;
  }
  for (i = 0; i < turns->count; ++i) {
    const regatta_turn_tenant* tenant = &turns->tenants[i];
    u64 wait;
    if (!tenant->runnable || tenant->part_ppm == 0) continue;
    wait = ((u64)-tenant->balance + tenant->part_ppm - 1) / tenant->part_ppm;
    if (wait < *wait_ns) *wait_ns = wait;
  }
  return -1;
}

void regatta_turns_begin(regatta_turns* turns, unsigned tenant, u64 now_ns) {
  advance(turns, now_ns);
  turns->holder = (int)tenant;
  turns->began_ns = turns->now_ns;
}

int regatta_turns_is_over(regatta_turns* turns, u64 now_ns) {
  u64 held;
  int other;
  long long left;
  advance(turns, now_ns);
  if (turns->holder < 0) return 1;
  held = turns->now_ns - turns->began_ns;
  left = turns->tenants[turns->holder].balance - (long long)(held * REGATTA_WHOLE_PPM);
  if (!turns->conserves && left < 0 && held >= turns->quantum_ns) return 1;
  if (held < turns->quantum_ns) return 0;
  other = owed_most(turns, turns->holder);
  return other >= 0 && turns->tenants[other].balance > left &&
         (turns->conserves || turns->tenants[other].balance >= 0);
}

void regatta_turns_end(regatta_turns* turns, u64 now_ns) {
  advance(turns, now_ns);
  if (turns->holder < 0) return;
  turns->tenants[turns->holder].balance -=
      (long long)((turns->now_ns - turns->began_ns) * REGATTA_WHOLE_PPM);
  turns->holder = -1;
  if (turns->conserves) recenter(turns);
}
