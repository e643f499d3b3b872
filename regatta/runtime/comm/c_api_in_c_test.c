/* comm/c_api_in_c_test.c: the interface as a program in C uses it: two processes that exchange
 * their endpoints through a socket pair. Fails with the line that did not hold. */
#define _POSIX_C_SOURCE 200809L

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/runtime/comm/c_api.h"

#define EXPECT(condition)                                                                      \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition, error.text); \
      return 1;                                                                                \
    }                                                                                          \
  } while (0)

enum { kTextBytes = 1024, kCount = 100000 };

struct peer {
  int socket;
  int32_t rank;
};

static int32_t exchange_endpoints(void* context, const char* mine, regatta_coll_endpoints* all,
                                  regatta_coll_error* error) {
  const struct peer* peer = context;
  char own[kTextBytes] = {0};
  char theirs[kTextBytes] = {0};
  snprintf(own, sizeof own, "%s", mine);
  if (write(peer->socket, own, sizeof own) != (ssize_t)sizeof own ||
      recv(peer->socket, theirs, sizeof theirs, MSG_WAITALL) != (ssize_t)sizeof theirs) {
    snprintf(error->text, sizeof error->text, "the other process is gone");
    return 1;
  }
  int32_t status = regatta_coll_endpoints_set(all, peer->rank, own, error);
  return status != REGATTA_COLL_OK ? status
                                   : regatta_coll_endpoints_set(all, 1 - peer->rank, theirs, error);
}

static int all_reduce(regatta_coll_comm* comm) {
  regatta_coll_error error = {0};
  regatta_coll_memory* memory = NULL;
  EXPECT(regatta_coll_allocate(comm, kCount * sizeof(float), &memory, &error) == REGATTA_COLL_OK);
  float* data = regatta_coll_memory_data(memory);
  for (int i = 0; i < kCount; ++i)
    data[i] = (float)(i % 1000 + regatta_coll_rank(comm));
  regatta_coll_handle* handle = NULL;
  EXPECT(regatta_coll_all_reduce(comm, data, data, kCount, REGATTA_COLL_F32, REGATTA_COLL_SUM,
                                 &handle, &error) == REGATTA_COLL_OK);
  int32_t done = 0;
  while (!done)
    EXPECT(regatta_coll_test(handle, &done, &error) == REGATTA_COLL_OK);
  EXPECT(regatta_coll_wait(handle, &error) == REGATTA_COLL_OK);
  double started_at = 0;
  double ended_at = 0;
  EXPECT(regatta_coll_times(handle, &started_at, &ended_at, &error) == REGATTA_COLL_OK);
  EXPECT(ended_at >= started_at && started_at > 0);
  regatta_coll_handle_free(handle);
  for (int i = 0; i < kCount; ++i)
    EXPECT(data[i] == (float)(2 * (i % 1000) + 1));
  regatta_coll_memory_free(memory);
  return 0;
}

static int run(int socket, int32_t rank) {
  regatta_coll_error error = {0};
  regatta_coll_options options;
  regatta_coll_options_init(&options, sizeof options);
  options.job_token = "c";
  options.server = "here";
  struct peer peer = {socket, rank};
  regatta_coll_comm* comm = NULL;
  EXPECT(regatta_coll_version() >> 16 == REGATTA_COLL_VERSION_MAJOR);
  EXPECT(regatta_coll_connect(rank, 2, exchange_endpoints, &peer, &options, &comm, &error) ==
         REGATTA_COLL_OK);
  EXPECT(regatta_coll_world_size(comm) == 2);
  int failed = all_reduce(comm);
  EXPECT(regatta_coll_barrier(comm, NULL, &error) == REGATTA_COLL_OK);
  EXPECT(regatta_coll_broadcast(comm, NULL, 1, REGATTA_COLL_F32, 0, NULL, &error) ==
         REGATTA_COLL_INVALID_INPUT);
  EXPECT(strcmp(error.text, "broadcast: a buffer is NULL: give 1 elements") == 0);
  regatta_coll_comm_free(comm);
  return failed;
}

int main(void) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return 2;
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) _exit(run(sockets[1], 1));
  const int failed = run(sockets[0], 0);
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 2;
  return failed != 0 || !WIFEXITED(status) ? 1 : WEXITSTATUS(status);
}
