/* sharing/internal/ledger/page_layout.h: the two pages that the daemon shares with processes. Each
 * has 4096 bytes and is a memory file that nobody can shorten.
 *
 * The tenant's page says what the tenant may have and has, so that a process sees it without a
 * call. Tenants hold a descriptor of it from `regatta gpu run` on, by inheritance: it is what makes
 * a process belong to the tenant. F_SEAL_FUTURE_WRITE: nobody but the daemon can write to it. Its
 * first byte is locked for the open file description that the daemon made, so that the daemon can
 * tell a descriptor that was handed down from one that a process opened anew.
 *
 * The client page is of one client, which writes to it too: its lease counter on each device, what
 * it does there, and where its memory is.
 */
#ifndef REGATTA_VGPU_LEDGER_PAGE_LAYOUT_H
#define REGATTA_VGPU_LEDGER_PAGE_LAYOUT_H

#include "regatta/gpu/sharing/internal/ledger/lease_counter.h"

#define REGATTA_PAGE_SIZE 4096
#define REGATTA_TENANT_MAGIC 0x746e657461676572ULL
#define REGATTA_TENANT_PAGE_NAME "regatta-gpu-tenant"
#define REGATTA_CLIENT_PAGE_NAME "regatta-gpu-lease-counters"
/* Old name, until the next minor version: pages that an earlier daemon made. */
#define REGATTA_CLIENT_PAGE_OLD_NAME "regatta-gpu-purses"

#define REGATTA_TENANT_VERSION 3

/* The tenant's turn on a device. `word` is a futex: the number of the turn, and whether launches
 * are open. While they are, nothing is launched at or after the deadline, and no more than `bound`
 * is in flight, or one kernel.
 */
typedef struct {
  unsigned word; /* number << 1 | is_open */
  unsigned padding;
  unsigned long long deadline_ns; /* CLOCK_MONOTONIC; 0: none, for nobody else waits */
  unsigned long long bound_ns;
} regatta_turn;

/* The activity of one client on a device. The client writes it before it launches and then reads
 * the turn again; the daemon closes a turn and then reads the activity: so one of them sees the
 * other.
 */
typedef enum {
  REGATTA_IDLE,
  REGATTA_WAITING, /* waits to launch; nothing of it is in flight */
  REGATTA_WORKING, /* launches, or has launched what has not ended */
} regatta_activity;

typedef struct {
  unsigned word; /* number of the turn that it last saw << 2 | regatta_activity */
  /* In the turn of this number nothing more is launched before its deadline: what is in flight
   * ends at about ends_ns. Written after that. */
  unsigned ends_number;
  unsigned long long ends_ns;    /* CLOCK_MONOTONIC */
  unsigned long long entered_ns; /* when it first launched in the turn of `word` */
  unsigned long long used_ns;    /* of the device, measured and learned, of what has ended */
} regatta_work;

/* When the device worked for one client: what its turns are charged by. */
typedef struct {
  /* CLOCK_MONOTONIC; what has been in flight since then is not yet in used_ns. 0: nothing is */
  unsigned long long busy_since_ns;
  /* When the device ended the last work, as its events say, or when the client gave up its turn
   * after it had kept it for more. 0: unknown */
  unsigned long long ended_ns;
  unsigned long long padding;
} regatta_work_marks;

/* Engines beside the processors, and what they are given: bytes of copies, pixels of pictures. */
typedef enum {
  REGATTA_COPY_TO_DEVICE,
  REGATTA_COPY_FROM_DEVICE,
  REGATTA_ENCODE,
  REGATTA_DECODE,
  REGATTA_ENGINES,
} regatta_engine;

/* Units that one client gave to an engine, how many of its threads wait to give more, and its open
 * sessions. The daemon increments the sessions, the client decrements them.
 */
typedef struct {
  unsigned long long given;
  unsigned waiting;
  unsigned sessions;
} regatta_engine_usage;

/* Memory of one client on a device that can go to the host and come back
 * (internal/policy/residency.h). The daemon says how much of it may be on the device; the client
 * takes it away until no more is, or brings it in as far as that allows, and works only while all
 * of it is there. `order` is a futex.
 */
typedef struct {
  unsigned long long granted;     /* by the daemon: what may be on the device */
  unsigned long long leased;      /* by the daemon: what the client may have of it in all */
  unsigned order;                 /* by the daemon: moves on whenever `granted` has changed */
  unsigned doing;                 /* by the client, as all below: a regatta_activity */
  unsigned long long resident;    /* what is on the device, coming and going included */
  unsigned long long swapped_out; /* the rest: in the host, or never written */
  unsigned long long moved_in;    /* copied, ever */
  unsigned long long moved_out;
  unsigned long long lacking; /* of what was granted: what the driver had no room for */
} regatta_residency_state;

/* Where a process is as a whole: what of its memory cannot be moved otherwise leaves the device by
 * the driver's checkpoint of the process, and comes back with it.
 */
typedef enum {
  REGATTA_PROCESS_RUNNING,
  REGATTA_PROCESS_CHECKPOINTING,
  REGATTA_PROCESS_CHECKPOINTED, /* its calls of the driver wait */
  REGATTA_PROCESS_RESTORING,
} regatta_process_state;
typedef struct {
  unsigned state;   /* by the daemon: a regatta_process_state */
  unsigned pinned;  /* by the daemon: it shares memory, or has some that no checkpoint can take */
  unsigned watches; /* by the client: a thread of it says when it wants to come back */
  unsigned padding;
} regatta_process;

/* Where nobody can say whether memory may be had, it may. Without it, it may not. */
#define REGATTA_TENANT_OPEN_ON_FAULT 1U
/* Its memory goes to the host while others work. */
#define REGATTA_TENANT_OVERCOMMIT 2U

typedef struct {
  unsigned long long magic;
  unsigned version;
  unsigned share_ppm;      /* of the device's time, under the policy of now; atomic, as all below */
  unsigned char token[16]; /* says to the daemon which tenant asks */
  char name[48];
  char socket[112];
  unsigned long long quota[REGATTA_DEVICES_MAX];
  unsigned long long leased[REGATTA_DEVICES_MAX];
  unsigned opens_when_lost; /* whether launches go on while no daemon answers */
  unsigned flags;           /* REGATTA_TENANT_* */
  regatta_turn turns[REGATTA_DEVICES_MAX];
  /* Units a second that each process of the tenant may give to an engine; 0: unlimited. */
  unsigned long long rates[REGATTA_DEVICES_MAX][REGATTA_ENGINES];
  /* Processes of the tenant that have work on the device: each gets this part of a turn. 0: one. */
  unsigned working_processes[REGATTA_DEVICES_MAX];
} regatta_tenant_page;

typedef struct {
  regatta_lease_counter lease_counters[REGATTA_DEVICES_MAX];
  regatta_work works[REGATTA_DEVICES_MAX];
  regatta_engine_usage engine_usage[REGATTA_DEVICES_MAX][REGATTA_ENGINES];
  regatta_residency_state residency[REGATTA_DEVICES_MAX];
  regatta_process process;
  regatta_work_marks work_marks[REGATTA_DEVICES_MAX];
} regatta_client_page;

static inline unsigned regatta_turn_word(unsigned number, int is_open) {
  return number << 1 | (is_open ? 1U : 0U);
}
static inline unsigned regatta_turn_number(unsigned word) {
  return word >> 1;
}
static inline int regatta_turn_is_open(unsigned word) {
  return (word & 1U) != 0;
}
#define REGATTA_TURN_NUMBER_MAX 0x3fffffffU
/* How long the device works for one process before it looks whether another has work. */
#define REGATTA_TIME_SLICE_NS 1000000ULL
/* A turn begins at most so long before the work of the one before is expected to end. */
#define REGATTA_LEAD_MOST_NS REGATTA_TIME_SLICE_NS

static inline unsigned regatta_work_word(unsigned number, regatta_activity doing) {
  return number << 2 | (unsigned)doing;
}
static inline unsigned regatta_work_number(unsigned word) {
  return word >> 2;
}
static inline regatta_activity regatta_work_activity(unsigned word) {
  return (regatta_activity)(word & 3U);
}

#ifdef __cplusplus
static_assert(sizeof(regatta_tenant_page) == 1416 && sizeof(regatta_client_page) == 3088,
              "processes of another build read these pages");
#endif

#endif
