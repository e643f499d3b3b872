#include "regatta/gpu/sharing/internal/policy/turns.h"

typedef unsigned long long u64;

static const u64 kForever = ~0ULL;

/* Idle tenants may claim one quantum of their share. */
static long long idle_claim(const regatta_turns* turns, const regatta_turn_tenant* tenant) {
  return (long long)(turns->quantum_ns * tenant->share_ppm);
}

/* It has work, or had some a moment ago and may wait for the end of a kernel. */
static int is_about(const regatta_turns* turns, const regatta_turn_tenant* tenant) {
  return tenant->runnable ||
         (tenant->idle_since_ns != 0 && turns->now_ns < tenant->idle_since_ns + REGATTA_RETURN_NS);
}

/* Where the device never idles, only differences between balances count: they are kept around 0.
 * Those of a tenant that pauses for a moment count, too: its neighbours still owe it what they had.
 */
static void recenter(regatta_turns* turns) {
  int is_any = 0;
  long long most = 0;
  long long least = 0;
  long long shift;
  unsigned i;
  for (i = 0; i < turns->count; ++i) {
    const regatta_turn_tenant* tenant = &turns->tenants[i];
    if (!is_about(turns, tenant)) continue;
    if (!is_any || tenant->balance > most) most = tenant->balance;
    if (!is_any || tenant->balance < least) least = tenant->balance;
    is_any = 1;
  }
  if (!is_any) return;
  shift = most < 0 ? most : least > 0 ? least : 0;
  for (i = 0; i < turns->count; ++i)
    if (is_about(turns, &turns->tenants[i])) turns->tenants[i].balance -= shift;
}

static void advance(regatta_turns* turns, u64 now_ns) {
  const u64 passed = now_ns > turns->now_ns ? now_ns - turns->now_ns : 0;
  unsigned i;
  if (passed == 0) return;
  turns->now_ns = now_ns;
  for (i = 0; i < turns->count; ++i) {
    regatta_turn_tenant* tenant = &turns->tenants[i];
    const u64 spent = (int)i == turns->holder ? passed * REGATTA_WHOLE_PPM : 0;
    const long long earned = (long long)(passed * tenant->share_ppm) - (long long)spent;
    const long long most = idle_claim(turns, tenant);
    if (tenant->runnable || spent != 0) {
      tenant->balance += earned;
    } else if (tenant->balance < most) {
      tenant->balance = tenant->balance + earned < most ? tenant->balance + earned : most;
    } else if (!is_about(turns, tenant)) {
      tenant->balance = most;
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
    turns->tenants[i].share_ppm = 0;
    turns->tenants[i].runnable = 0;
    turns->tenants[i].is_high = 0;
    turns->tenants[i].returned = 0;
    turns->tenants[i].idle_since_ns = 0;
  }
}

void regatta_turns_set_shares(regatta_turns* turns, const unsigned* shares_ppm, int conserves,
                              u64 now_ns) {
  unsigned i;
  advance(turns, now_ns);
  turns->conserves = conserves ? 1 : 0;
  for (i = 0; i < turns->count; ++i)
    turns->tenants[i].share_ppm = shares_ppm[i];
}

void regatta_turns_set_runnable(regatta_turns* turns, unsigned tenant, int is_runnable,
                                u64 now_ns) {
  regatta_turn_tenant* one = &turns->tenants[tenant];
  advance(turns, now_ns);
  if (one->runnable && !is_runnable) one->idle_since_ns = turns->now_ns;
  if (!one->runnable) one->returned = is_runnable ? 1 : 0;
  one->runnable = is_runnable ? 1 : 0;
}

void regatta_turns_set_high(regatta_turns* turns, unsigned tenant, int is_high) {
  turns->tenants[tenant].is_high = is_high ? 1 : 0;
}

static int may_run(const regatta_turn_tenant* tenant) {
  return tenant->runnable && tenant->share_ppm != 0;
}

/* The most that a tenant of high priority may owe and still go first. */
static long long first_debt(const regatta_turns* turns) {
  return turns->conserves ? (long long)(REGATTA_HIGH_DEBT_NS * REGATTA_WHOLE_PPM) : 0;
}

static int goes_first(const regatta_turns* turns, const regatta_turn_tenant* tenant) {
  return tenant->is_high && tenant->balance >= -first_debt(turns);
}

/* The tenant that goes first with the largest balance, otherwise any with the largest; -1: no
 * tenant is runnable.
 */
static int owed_most(const regatta_turns* turns) {
  int best = -1;
  int best_is_first = 0;
  unsigned i;
  for (i = 0; i < turns->count; ++i) {
    const regatta_turn_tenant* tenant = &turns->tenants[i];
    int is_first;
    if (!may_run(tenant)) continue;
    is_first = goes_first(turns, tenant);
    if (best < 0 || is_first > best_is_first ||
        (is_first == best_is_first && tenant->balance > turns->tenants[best].balance)) {
      best = (int)i;
      best_is_first = is_first;
    }
  }
  return best;
}

int regatta_turns_next(regatta_turns* turns, u64 now_ns, u64* wait_ns) {
  int best;
  unsigned i;
  advance(turns, now_ns);
  *wait_ns = kForever;
  best = owed_most(turns);
  if (best < 0) return -1;
  if (turns->conserves || turns->tenants[best].balance >= 0) {
    *wait_ns = 0;
    return best;
  }
  for (i = 0; i < turns->count; ++i) {
    const regatta_turn_tenant* tenant = &turns->tenants[i];
    u64 wait;
    if (!tenant->runnable || tenant->share_ppm == 0) continue;
    wait = ((u64)-tenant->balance + tenant->share_ppm - 1) / tenant->share_ppm;
    if (wait < *wait_ns) *wait_ns = wait;
  }
  return -1;
}

void regatta_turns_begin(regatta_turns* turns, unsigned tenant, u64 now_ns) {
  advance(turns, now_ns);
  turns->holder = (int)tenant;
  turns->tenants[tenant].returned = 0;
  turns->began_ns = turns->now_ns;
}

/* Time until `amount` (ns times ppm) is used up at `rate` (ppm). */
static u64 time_of(long long amount, u64 rate) {
  if (amount <= 0) return 0;
  return rate == 0 ? kForever : ((u64)amount + rate - 1) / rate;
}

static u64 later(u64 a, u64 b) {
  return a > b ? a : b;
}
static u64 earlier(u64 a, u64 b) {
  return a < b ? a : b;
}

/* Time until `other` may take the device from the holder, which has `left` of its balance. */
static u64 left_beside(const regatta_turns* turns, const regatta_turn_tenant* other, long long left,
                       u64 quantum_left) {
  const regatta_turn_tenant* holder = &turns->tenants[turns->holder];
  const long long debt = first_debt(turns);
  const u64 spends = (u64)REGATTA_WHOLE_PPM - holder->share_ppm;
  /* The holder goes first until then, the other from then on. */
  const u64 is_first = holder->is_high ? time_of(left + debt + 1, spends) : 0;
  const u64 gets_first =
      other->is_high ? time_of(-debt - other->balance, other->share_ppm) : kForever;
  u64 among_equals = later(quantum_left, time_of(left - other->balance, spends + other->share_ppm));
  if (!turns->conserves)
    among_equals = later(among_equals, time_of(-other->balance, other->share_ppm));
  return earlier(later(is_first, gets_first), later(among_equals, earlier(is_first, gets_first)));
}

u64 regatta_turns_left(regatta_turns* turns, u64 now_ns) {
  const regatta_turn_tenant* holder;
  u64 held;
  u64 quantum_left;
  u64 least_left; /* where a tenant has work again */
  u64 least = kForever;
  long long left;
  unsigned i;
  advance(turns, now_ns);
  if (turns->holder < 0) return 0;
  holder = &turns->tenants[turns->holder];
  held = turns->now_ns - turns->began_ns;
  quantum_left = held < turns->quantum_ns ? turns->quantum_ns - held : 0;
  least_left = held * REGATTA_RETURN_PARTS < turns->quantum_ns
                   ? turns->quantum_ns / REGATTA_RETURN_PARTS - held
                   : 0;
  left = holder->balance;
  if (!turns->conserves)
    least = later(quantum_left, time_of(left, (u64)REGATTA_WHOLE_PPM - holder->share_ppm));
  for (i = 0; i < turns->count; ++i) {
    u64 wait;
    if ((int)i == turns->holder || !may_run(&turns->tenants[i])) continue;
    wait = left_beside(turns, &turns->tenants[i], left,
                       turns->tenants[i].returned ? least_left : quantum_left);
    if (wait < least) least = wait;
  }
  return least;
}

/* When all tenants with work are owed time, and more than those without work owe, time was lost
 * between turns and cannot be returned; otherwise one would claim all of it once the others are
 * idle. The debt of a tenant that has just ended its work is still owed to the others, and so is
 * what a tenant waited for while others with a right to the device had it: some quanta stay.
 */
static void drop_common_claim(regatta_turns* turns) {
  long long least = -1;
  long long claims = 0;
  long long debts = 0;
  long long lost;
  int count = 0;
  unsigned i;
  for (i = 0; i < turns->count; ++i) {
    const regatta_turn_tenant* tenant = &turns->tenants[i];
    long long more; /* than what stays */
    if (!may_run(tenant)) {
      if (tenant->balance < 0) debts -= tenant->balance;
      continue;
    }
    more = tenant->balance - REGATTA_KEPT_QUANTA * idle_claim(turns, tenant);
    if (more <= 0) return;
    if (least < 0 || more < least) least = more;
    claims += tenant->balance;
    ++count;
  }
  if (count == 0 || claims <= debts) return;
  lost = (claims - debts) / count;
  if (lost > least) lost = least;
  for (i = 0; i < turns->count; ++i)
    if (may_run(&turns->tenants[i])) turns->tenants[i].balance -= lost;
}

void regatta_turns_end(regatta_turns* turns, u64 now_ns) {
  advance(turns, now_ns);
  if (turns->holder < 0) return;
  turns->holder = -1;
  if (turns->conserves)
    recenter(turns);
  else
    drop_common_claim(turns);
}
