#include "regatta/gpu/sharing/internal/policy/residency.h"

typedef unsigned long long u64;

static const u64 kForever = ~0ULL;

static u64 least_of(u64 a, u64 b) {
  return a < b ? a : b;
}
static u64 most_of(u64 a, u64 b) {
  return a > b ? a : b;
}

static int is_waiting(const regatta_residency_tenant* tenant) {
  return tenant->is_runnable && !tenant->is_admitted;
}

void regatta_residency_init(regatta_residency* residency, u64 bytes_per_us, u64 longest_wait_ns) {
  unsigned i;
  residency->capacity = 0;
  residency->bytes_per_us = bytes_per_us == 0 ? 1 : bytes_per_us;
  residency->longest_wait_ns = longest_wait_ns;
  residency->count = REGATTA_TENANTS_MAX;
  for (i = 0; i < REGATTA_TENANTS_MAX; ++i)
    regatta_residency_forget(residency, i);
  residency->count = 0;
}

void regatta_residency_forget(regatta_residency* residency, unsigned tenant) {
  static const regatta_residency_tenant kNobody = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  residency->tenants[tenant] = kNobody;
}

u64 regatta_swap_cost_ns(const regatta_residency* residency, unsigned tenant) {
  return 2 * residency->tenants[tenant].demand * 1000 / residency->bytes_per_us;
}

/* When many tenants wait, time slices are shorter, but never so short that more time is lost than
 * used.
 */
u64 regatta_residency_slice_ns(const regatta_residency* residency, unsigned tenant) {
  const u64 cost = regatta_swap_cost_ns(residency, tenant);
  const u64 wanted = most_of(REGATTA_RESIDENCY_SLICE_MIN_NS,
                             cost * (100 - REGATTA_SWAP_PERCENT) / REGATTA_SWAP_PERCENT);
  u64 waiting = 1;
  unsigned i;
  if (residency->tenants[tenant].lease_ns != 0) return residency->tenants[tenant].lease_ns;
  for (i = 0; i < residency->count; ++i)
    if (i != tenant && is_waiting(&residency->tenants[i])) ++waiting;
  return most_of(least_of(wanted, residency->longest_wait_ns / waiting), cost);
}

void regatta_residency_update(regatta_residency* residency, unsigned tenant,
                              const regatta_residency_tenant* seen, u64 now_ns) {
  regatta_residency_tenant* const known = &residency->tenants[tenant];
  const int was_waiting = is_waiting(known);
  const int was_in = known->is_admitted;
  const int was_runnable = known->is_runnable;
  if (tenant >= residency->count) residency->count = tenant + 1;
  if (was_runnable && !seen->is_runnable) known->idle_since_ns = now_ns;
  known->demand = seen->demand;
  known->resident = seen->resident;
  known->bound = seen->bound;
  known->granted = seen->granted;
  known->lease_ns = seen->lease_ns;
  known->is_stuck = seen->is_stuck;
  known->is_runnable = seen->is_runnable;
  known->is_admitted = known->granted >= known->demand && known->resident >= known->demand;
  /* A tenant whose demand grows during its stay continues its time slice when it is resident again.
   * A tenant that returns from a pause long enough to lose its memory begins a new one.
   */
  if (known->is_admitted && (!was_in || !was_runnable) &&
      (!known->has_slice ||
       (!was_runnable && known->is_runnable &&
        now_ns - known->idle_since_ns >= regatta_swap_cost_ns(residency, tenant)))) {
    known->has_slice = 1;
    known->began_ns = now_ns;
  }
  if (known->granted < known->resident) known->has_slice = 0;
  if (is_waiting(known) && !was_waiting) known->waiting_since_ns = now_ns;
}

static u64 slice_end(const regatta_residency* residency, unsigned tenant) {
  const regatta_residency_tenant* const one = &residency->tenants[tenant];
  return one->has_slice ? one->began_ns + regatta_residency_slice_ns(residency, tenant) : 0;
}

/* Bytes beyond their grants that stuck tenants keep. */
static u64 kept_by_stuck(const regatta_residency* residency) {
  u64 sum = 0;
  unsigned i;
  for (i = 0; i < residency->count; ++i) {
    const regatta_residency_tenant* const one = &residency->tenants[i];
    if (one->is_stuck && one->resident > one->granted) sum += one->resident - one->granted;
  }
  return sum;
}

/* All bytes of stuck tenants: none of them can be called back. */
static u64 held_by_stuck(const regatta_residency* residency, unsigned except) {
  u64 sum = 0;
  unsigned i;
  for (i = 0; i < residency->count; ++i) {
    const regatta_residency_tenant* const one = &residency->tenants[i];
    if (i != except && one->is_stuck) sum += most_of(one->resident, one->granted);
  }
  return sum;
}

/* First a tenant that lacks memory in its time slice, then the one that waits longest; never one
 * that cannot be served.
 */
static int find_queue_head(const regatta_residency* residency, u64 now_ns) {
  int head = -1;
  int head_in_slice = 0;
  unsigned i;
  for (i = 0; i < residency->count; ++i) {
    const regatta_residency_tenant* const one = &residency->tenants[i];
    const int in_slice = slice_end(residency, i) > now_ns;
    if (!is_waiting(one) || one->demand == 0 || one->is_stuck) continue;
    if (one->demand + held_by_stuck(residency, i) > residency->capacity) continue;
    if (head >= 0 && (head_in_slice > in_slice ||
                      (head_in_slice == in_slice &&
                       residency->tenants[head].waiting_since_ns <= one->waiting_since_ns)))
      continue;
    head = (int)i;
    head_in_slice = in_slice;
  }
  return head;
}

/* When memory of a tenant can be called back. */
static u64 free_from(const regatta_residency* residency, unsigned tenant) {
  const regatta_residency_tenant* const one = &residency->tenants[tenant];
  const u64 end = slice_end(residency, tenant);
  if (one->is_runnable || !one->has_slice) return end;
  /* After an idle time as long as its swap: then calling it back was right, whenever it returns. */
  return least_of(end, one->idle_since_ns + regatta_swap_cost_ns(residency, tenant));
}

/* The order in which memory is called back: from idle tenants, longest idle first; from working
 * ones, longest resident first; then from waiting ones with a part of their memory resident, the
 * last in the queue first, because it needs it last.
 */
static int class_of(const regatta_residency_tenant* one) {
  return !one->is_runnable ? 0 : one->is_admitted ? 1 : 2;
}
static int is_asked_before(const regatta_residency_tenant* a, const regatta_residency_tenant* b) {
  if (class_of(a) != class_of(b)) return class_of(a) < class_of(b);
  if (class_of(a) == 0) return a->idle_since_ns < b->idle_since_ns;
  if (class_of(a) == 1) return a->began_ns < b->began_ns;
  return a->waiting_since_ns > b->waiting_since_ns;
}

/* Bytes that can be called back by `when` from tenants other than `head`. */
static u64 available_by(const regatta_residency* residency, int head, const u64* may, u64 when) {
  u64 sum = 0;
  unsigned i;
  for (i = 0; i < residency->count; ++i)
    if ((int)i != head && !residency->tenants[i].is_stuck && free_from(residency, i) <= when)
      sum += may[i];
  return sum;
}

/* Bytes that can be taken of a tenant without its bound part. */
static u64 loose_part(const regatta_residency_tenant* one, u64 may) {
  return may < one->bound ? may : may - one->bound;
}

/* Within a class, takes first what is not bound, then everything of one tenant after the other. */
static u64 ask_class(const regatta_residency* residency, int head, u64* may, u64 wanted, u64 when,
                     int of_class) {
  int takes_bound = 0;
  while (wanted != 0) {
    int next = -1;
    unsigned i;
    u64 part;
    for (i = 0; i < residency->count; ++i) {
      const regatta_residency_tenant* const one = &residency->tenants[i];
      const u64 there = takes_bound ? may[i] : loose_part(one, may[i]);
      if ((int)i == head || there == 0 || one->is_stuck || class_of(one) != of_class ||
          free_from(residency, i) > when)
        continue;
      if (next < 0 || is_asked_before(one, &residency->tenants[next])) next = (int)i;
    }
    if (next < 0 && takes_bound) return wanted;
    if (next < 0) {
      takes_bound = 1;
      continue;
    }
    part = takes_bound ? may[next]
                       : least_of(wanted, loose_part(&residency->tenants[next], may[next]));
    may[next] -= part;
    wanted -= least_of(wanted, part);
  }
  return 0;
}

static void ask_back(const regatta_residency* residency, int head, u64* may, u64 wanted, u64 when) {
  int of_class;
  for (of_class = 0; of_class < 3; ++of_class)
    wanted = ask_class(residency, head, may, wanted, when, of_class);
}

/* The first time at which enough can be called back, or never. */
static u64 enough_from(const regatta_residency* residency, int head, const u64* may, u64 wanted,
                       u64 now_ns) {
  u64 first = kForever;
  unsigned i;
  for (i = 0; i < residency->count; ++i) {
    const u64 from = free_from(residency, i);
    if ((int)i == head || may[i] == 0 || from <= now_ns || from >= first) continue;
    if (available_by(residency, head, may, from) >= wanted) first = from;
  }
  return first;
}

u64 regatta_residency_step(const regatta_residency* residency, u64 now_ns, u64* may) {
  const int head = find_queue_head(residency, now_ns);
  const u64 stuck = kept_by_stuck(residency);
  const u64 capacity = residency->capacity > stuck ? residency->capacity - stuck : 0;
  u64 held = 0;
  u64 promised = 0;
  u64 lacking = 0;
  unsigned i;
  for (i = 0; i < residency->count; ++i) {
    const regatta_residency_tenant* const one = &residency->tenants[i];
    may[i] = one->granted;
    held += most_of(one->resident, one->granted);
    promised += one->granted;
  }
  if (head >= 0) {
    const u64 room = residency->capacity > held ? residency->capacity - held : 0;
    /* Enough for several copies in progress at a time. */
    const u64 step = most_of(REGATTA_RESIDENCY_STEP, residency->tenants[head].demand / 8);
    u64 grant = 0;
    lacking = residency->tenants[head].demand > may[head]
                  ? residency->tenants[head].demand - may[head]
                  : 0;
    grant = least_of(lacking, room);
    if (grant < lacking) grant = grant / step * step;
    may[head] += grant;
    promised += grant;
    lacking -= grant;
  }
  /* Granted memory has to fit, time slice or not: the device may have less than before. */
  if (promised > capacity) {
    ask_back(residency, head, may, promised - capacity, kForever);
    promised = capacity; /* at most */
  }
  if (promised + lacking <= capacity) return kForever;
  lacking = promised + lacking - capacity;
  if (available_by(residency, head, may, now_ns) >= lacking) {
    ask_back(residency, head, may, lacking, now_ns);
    return kForever;
  }
  return enough_from(residency, head, may, lacking, now_ns);
}
