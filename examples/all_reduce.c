/* examples/all_reduce.c: two processes add up a vector through libregatta_coll. How to compile it
 * is in docs/c_library.md. */
#include <regatta_coll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kRanks = 2, kCount = 1 << 20, kTextBytes = 4096 };

static float data[kCount];

struct peer {
  int socket;
  int32_t rank;
};

/* Any way will do to give every rank the text of every other: here a socket between the two. */
static int32_t exchange(void* context, const char* mine, regatta_coll_endpoints* all,
                        regatta_coll_error* error) {
  const struct peer* self = context;
  char own[kTextBytes] = {0};
  char theirs[kTextBytes] = {0};
  snprintf(own, sizeof own, "%s", mine);
  if (send(self->socket, own, sizeof own, 0) != (ssize_t)sizeof own ||
      recv(self->socket, theirs, sizeof theirs, MSG_WAITALL) != (ssize_t)sizeof theirs) {
    snprintf(error->text, sizeof error->text, "the other process is gone");
    return 1;
  }
  regatta_coll_endpoints_set(all, self->rank, own, error);
  return regatta_coll_endpoints_set(all, 1 - self->rank, theirs, error);
}

static int run(int socket, int32_t rank) {
  regatta_coll_error error;
  regatta_coll_options options;
  regatta_coll_options_init(&options, sizeof options);
  options.job_token = "any text that all ranks know";
  options.server = "here"; /* ranks with the same text share memory */
  struct peer self = {socket, rank};
  regatta_coll_comm* comm = NULL;
  if (regatta_coll_connect(rank, kRanks, exchange, &self, &options, &comm, &error) !=
      REGATTA_COLL_OK) {
    fprintf(stderr, "rank %d: %s\n", (int)rank, error.text);
    return 1;
  }
  for (int i = 0; i < kCount; ++i)
    data[i] = (float)(rank + 1);
  /* Without a handle the call returns when it is done. */
  const int32_t status = regatta_coll_all_reduce(comm, data, data, kCount, REGATTA_COLL_F32,
                                                 REGATTA_COLL_SUM, NULL, &error);
  if (status != REGATTA_COLL_OK)
    fprintf(stderr, "rank %d: %s\n", (int)rank, error.text);
  else
    printf("rank %d of %d: the sum is %g\n", (int)rank, (int)regatta_coll_world_size(comm),
           data[kCount - 1]);
  regatta_coll_comm_free(comm);
  return status;
}

int main(void) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return 2;
  const pid_t child = fork();
  if (child == 0) return run(sockets[1], 1);
  const int failed = run(sockets[0], 0);
  int status = 0;
  waitpid(child, &status, 0);
  return failed || status;
}
