/* tests/coll/rank_death.c: kills or stops one of four ranks in the middle of all_reduces and checks
 * what the survivors report. It uses the C interface of libregatta_coll alone. In every round each
 * survivor must get an error that names the victim and no other rank, every sum before it must be
 * right, and no call may hang; what a survivor does after its error (goes on calling, exits at
 * once, frees the communicator) changes nothing.
 *
 *   rank_death --fault kill|stop --layout shm|tcp [--rounds 20] [--jobs 1] [--peer-timeout 1]
 *              [--seed 1]
 *
 * Prints one line of JSON. Exit status: 0 all rounds are right, 1 some are not, 2 wrong usage. */
#define _GNU_SOURCE

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "regatta/runtime/comm/c_api.h"

enum {
  kRanks = 4,
  kTextBytes = 1024,
  kSmallCount = 4,
  kLargeCount = 300000,
  kCallsAfterError = 50
};

/* The behaviour of a survivor after its error. */
enum { kGoesOn, kExits, kFrees, kReactions };

struct options {
  int stops; /* SIGSTOP, else SIGKILL */
  int is_tcp;
  int rounds;
  int jobs;
  double peer_timeout_s;
  unsigned seed;
};

/* One round, in memory that the parent and the ranks share. */
struct round {
  int number;
  atomic_int joined;            /* endpoints that are written */
  atomic_int calls[kRanks];     /* all_reduces that ended well */
  atomic_int has_error[kRanks]; /* errors[] is written */
  atomic_int wrong_sums;
  atomic_int late_successes; /* calls that ended well after an error */
  char endpoints[kRanks][kTextBytes];
  char errors[kRanks][kTextBytes];
  int victim;
};

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void sleep_s(double seconds) {
  struct timespec rest = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&rest, NULL);
}

struct rank {
  struct round* round;
  int32_t rank;
};

static int32_t exchange_endpoints(void* context, const char* mine, regatta_coll_endpoints* all,
                                  regatta_coll_error* error) {
  const struct rank* self = context;
  snprintf(self->round->endpoints[self->rank], kTextBytes, "%s", mine);
  atomic_fetch_add(&self->round->joined, 1);
  const double deadline_s = now_s() + 30;
  while (atomic_load(&self->round->joined) < kRanks) {
    if (now_s() > deadline_s) return REGATTA_COLL_TIMEOUT;
    sleep_s(0.001);
  }
  for (int32_t rank = 0; rank < kRanks; ++rank) {
    const int32_t status =
        regatta_coll_endpoints_set(all, rank, self->round->endpoints[rank], error);
    if (status != REGATTA_COLL_OK) return status;
  }
  return REGATTA_COLL_OK;
}

static int32_t all_reduce(regatta_coll_comm* comm, float* data, int call, int* is_right,
                          regatta_coll_error* error) {
  const int count = call % 3 == 2 ? kLargeCount : kSmallCount;
  const float own = (float)(call % 1000 + regatta_coll_rank(comm));
  for (int i = 0; i < count; ++i)
    data[i] = own + (float)(i % 7);
  const int32_t status = regatta_coll_all_reduce(comm, data, data, (uint64_t)count,
                                                 REGATTA_COLL_F32, REGATTA_COLL_SUM, NULL, error);
  *is_right = 1;
  for (int i = 0; status == REGATTA_COLL_OK && i < count; ++i)
    if (data[i] != (float)(kRanks * (call % 1000 + i % 7) + 6)) *is_right = 0;
  return status;
}

static void run_rank(struct round* round, int32_t rank, const struct options* options) {
  char server[16];
  snprintf(server, sizeof server, "s%d", options->is_tcp ? (int)rank : 0);
  regatta_coll_options given;
  regatta_coll_options_init(&given, sizeof given);
  given.job_token = "rank_death";
  given.server = server;
  given.peer_timeout_s = options->peer_timeout_s;
  given.connections = 2;
  struct rank self = {round, rank};
  regatta_coll_comm* comm = NULL;
  regatta_coll_error error = {0};
  float* data = malloc(kLargeCount * sizeof *data);
  int32_t status =
      regatta_coll_connect(rank, kRanks, exchange_endpoints, &self, &given, &comm, &error);
  int is_right = 1;
  for (int call = 0; status == REGATTA_COLL_OK; ++call) {
    status = all_reduce(comm, data, call, &is_right, &error);
    if (!is_right) atomic_fetch_add(&round->wrong_sums, 1);
    if (status == REGATTA_COLL_OK) atomic_fetch_add(&round->calls[rank], 1);
  }
  /* All survivors behave alike in three of four rounds, and differently in the fourth. */
  const int is_mixed = round->number % 4 == 3;
  const int reaction = is_mixed ? rank % kReactions : round->number % 4;
  /* The text is in place when the exit of the process shows. */
  snprintf(round->errors[rank], kTextBytes, "%s", error.text);
  atomic_store(&round->has_error[rank], 1);
  if (reaction == kExits) _exit(1);
  for (int call = 0; reaction == kGoesOn && call < kCallsAfterError; ++call)
    if (all_reduce(comm, data, call, &is_right, &error) == REGATTA_COLL_OK)
      atomic_fetch_add(&round->late_successes, 1);
  regatta_coll_comm_free(comm);
  free(data);
  _exit(0);
}

/* The processes of the round, by rank; 0: reaped. The parent's own, so no child overwrites them. */
static pid_t pids[kRanks];

/* Returns 0 when a process cannot be started. */
static int start_round(struct round* round, int number, const struct options* options) {
  memset(round, 0, sizeof *round);
  memset(pids, 0, sizeof pids);
  round->number = number;
  round->victim = rand() % kRanks;
  for (int32_t rank = 0; rank < kRanks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) run_rank(round, rank, options);
    if (pid < 0) return 0;
    pids[rank] = pid;
  }
  return 1;
}

static int all_called(const struct round* round) {
  for (int rank = 0; rank < kRanks; ++rank)
    if (atomic_load(&round->calls[rank]) < 3) return 0;
  return 1;
}

/* Waits until every survivor has ended. Returns 0 when one hangs. */
static int await_survivors(struct round* round, double limit_s) {
  const double deadline_s = now_s() + limit_s;
  int left = kRanks - 1;
  while (left > 0 && now_s() < deadline_s) {
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == round->victim || pids[rank] <= 0) continue;
      if (waitpid(pids[rank], NULL, WNOHANG) != pids[rank]) continue;
      pids[rank] = 0;
      --left;
    }
    sleep_s(0.001);
  }
  return left == 0;
}

static void end_round(void) {
  for (int rank = 0; rank < kRanks; ++rank) {
    if (pids[rank] <= 0) continue;
    kill(pids[rank], SIGKILL);
    waitpid(pids[rank], NULL, 0);
  }
}

static int names(const char* text, int rank) {
  char name[16];
  snprintf(name, sizeof name, "rank %d ", rank);
  return strstr(text, name) != NULL;
}

/* Counts the survivors whose error does not name the victim alone. */
static int count_wrong_names(const struct round* round) {
  int wrong = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == round->victim) continue;
    int is_wrong =
        !atomic_load(&round->has_error[rank]) || !names(round->errors[rank], round->victim);
    for (int other = 0; other < kRanks; ++other)
      if (other != round->victim && names(round->errors[rank], other)) is_wrong = 1;
    if (is_wrong)
      fprintf(stderr, "round %d: rank %d: the victim is rank %d: %s\n", round->number, rank,
              round->victim, round->errors[rank]);
    wrong += is_wrong;
  }
  return wrong;
}

struct outcome {
  int rounds, hangs, wrong_sums, wrong_names, late_successes, bad_rounds;
};

static void run_round(struct round* round, int number, const struct options* options,
                      struct outcome* outcome) {
  if (!start_round(round, number, options)) {
    end_round();
    exit(2);
  }
  const double deadline_s = now_s() + 60;
  while (!all_called(round) && now_s() < deadline_s)
    sleep_s(0.001);
  sleep_s(1e-6 * (double)(rand() % 50000));
  kill(pids[round->victim], options->stops ? SIGSTOP : SIGKILL);
  const int hangs = !await_survivors(round, 10 * options->peer_timeout_s + 20);
  end_round();
  const int wrong_names = count_wrong_names(round);
  ++outcome->rounds;
  outcome->hangs += hangs;
  outcome->wrong_sums += atomic_load(&round->wrong_sums);
  outcome->wrong_names += wrong_names;
  outcome->late_successes += atomic_load(&round->late_successes);
  outcome->bad_rounds += hangs || wrong_names > 0 || atomic_load(&round->wrong_sums) > 0 ||
                         atomic_load(&round->late_successes) > 0;
}

static void run_job(int job, const struct options* options, struct outcome* outcome) {
  srand(options->seed * 1000 + (unsigned)job);
  struct round* round =
      mmap(NULL, sizeof *round, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (round == MAP_FAILED) exit(2);
  for (int number = job; number < options->rounds; number += options->jobs)
    run_round(round, number, options, outcome);
}

static int read_options(int argc, char** argv, struct options* options) {
  *options = (struct options){.rounds = 20, .jobs = 1, .peer_timeout_s = 1, .seed = 1};
  int has_fault = 0;
  int has_layout = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const char* value = argv[i + 1];
    if (strcmp(argv[i], "--fault") == 0) {
      options->stops = strcmp(value, "stop") == 0;
      has_fault = options->stops || strcmp(value, "kill") == 0;
    } else if (strcmp(argv[i], "--layout") == 0) {
      options->is_tcp = strcmp(value, "tcp") == 0;
      has_layout = options->is_tcp || strcmp(value, "shm") == 0;
    } else if (strcmp(argv[i], "--rounds") == 0) {
      options->rounds = atoi(value);
    } else if (strcmp(argv[i], "--jobs") == 0) {
      options->jobs = atoi(value);
    } else if (strcmp(argv[i], "--peer-timeout") == 0) {
      options->peer_timeout_s = atof(value);
    } else if (strcmp(argv[i], "--seed") == 0) {
      options->seed = (unsigned)atoi(value);
    } else {
      return 0;
    }
  }
  return argc % 2 == 1 && has_fault && has_layout && options->rounds > 0 && options->jobs > 0 &&
         options->peer_timeout_s > 0;
}

int main(int argc, char** argv) {
  struct options options;
  if (!read_options(argc, argv, &options)) {
    fprintf(stderr,
            "usage: rank_death --fault kill|stop --layout shm|tcp [--rounds N] [--jobs N] "
            "[--peer-timeout SECONDS] [--seed N]\n");
    return 2;
  }
  struct outcome* outcomes = mmap(NULL, (size_t)options.jobs * sizeof *outcomes,
                                  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (outcomes == MAP_FAILED) return 2;
  const double begun_s = now_s();
  for (int job = 0; job < options.jobs; ++job) {
    if (fork() != 0) continue;
    run_job(job, &options, &outcomes[job]);
    _exit(0);
  }
  while (wait(NULL) > 0) {
  }
  struct outcome sum = {0};
  for (int job = 0; job < options.jobs; ++job) {
    sum.rounds += outcomes[job].rounds;
    sum.hangs += outcomes[job].hangs;
    sum.wrong_sums += outcomes[job].wrong_sums;
    sum.wrong_names += outcomes[job].wrong_names;
    sum.late_successes += outcomes[job].late_successes;
    sum.bad_rounds += outcomes[job].bad_rounds;
  }
  printf(
      "{\"fault\": \"%s\", \"layout\": \"%s\", \"rounds\": %d, \"bad_rounds\": %d, "
      "\"wrong_names\": %d, \"wrong_sums\": %d, \"hangs\": %d, \"successes_after_an_error\": %d, "
      "\"wall_s\": %.1f}\n",
      options.stops ? "stop" : "kill", options.is_tcp ? "tcp" : "shm", sum.rounds, sum.bad_rounds,
      sum.wrong_names, sum.wrong_sums, sum.hangs, sum.late_successes, now_s() - begun_s);
  return sum.rounds == options.rounds && sum.bad_rounds == 0 ? 0 : 1;
}
