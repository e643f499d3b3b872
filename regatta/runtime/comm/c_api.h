/* comm/c_api.h: the collectives of communicator.h for C and for other languages; installed as
 * regatta_coll.h, in libregatta_coll.so. Only what is declared here leaves that library.
 *
 * Every call returns a status. Where it is not REGATTA_COLL_OK, *error, when the caller passed one,
 * holds the same status and one sentence. No exception leaves a call. Handles are opaque and freed
 * by their own function, which accepts NULL. Counts are elements. Types and
 * reductions are the numbers below, which never change; a later library of the same major version
 * only adds to them.
 *
 * Thread rule: one thread calls into a communicator at a time; distinct communicators are
 * independent. Waiting for a handle, testing it and freeing it may be done on any thread. */
/* NOLINTBEGIN(readability-identifier-naming,modernize-use-using): this is C. */
#ifndef REGATTA_COLL_C_API_H_
#define REGATTA_COLL_C_API_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define REGATTA_COLL_API __attribute__((visibility("default")))
#else
#define REGATTA_COLL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define REGATTA_COLL_VERSION_MAJOR 1
#define REGATTA_COLL_VERSION_MINOR 2

/* The version of the library that is loaded: major * 65536 + minor. A program that was compiled
 * with one major version runs with every library of the same one whose minor is not lower. */
REGATTA_COLL_API uint32_t regatta_coll_version(void);

/* Status. */
enum {
  REGATTA_COLL_OK = 0,
  REGATTA_COLL_INVALID_INPUT = 1, /* the caller's argument is wrong */
  REGATTA_COLL_NOT_FOUND = 2,
  REGATTA_COLL_CONFLICT = 3,    /* the ranks made different calls */
  REGATTA_COLL_EXHAUSTED = 4,   /* no memory */
  REGATTA_COLL_UNAVAILABLE = 5, /* a rank died or cannot be reached */
  REGATTA_COLL_TIMEOUT = 6,     /* no progress within the stated time */
  REGATTA_COLL_UNSUPPORTED = 7,
  REGATTA_COLL_INTERNAL = 8 /* a bug in the library */
};

/* Types of elements. */
enum {
  REGATTA_COLL_F32 = 0,
  REGATTA_COLL_F64 = 1,
  REGATTA_COLL_F16 = 2,
  REGATTA_COLL_BF16 = 3,
  REGATTA_COLL_I8 = 4,
  REGATTA_COLL_U8 = 5,
  REGATTA_COLL_I32 = 6,
  REGATTA_COLL_I64 = 7
};

/* Reductions. The average of integers is cut towards zero. */
enum {
  REGATTA_COLL_SUM = 0,
  REGATTA_COLL_PRODUCT = 1,
  REGATTA_COLL_MIN = 2,
  REGATTA_COLL_MAX = 3,
  REGATTA_COLL_AVERAGE = 4
};

typedef struct regatta_coll_error {
  int32_t status;
  char text[1020]; /* ends with a zero; cut when it is longer */
} regatta_coll_error;

typedef struct regatta_coll_comm regatta_coll_comm;           /* a group of ranks */
typedef struct regatta_coll_handle regatta_coll_handle;       /* an operation under way */
typedef struct regatta_coll_memory regatta_coll_memory;       /* memory that the server shares */
typedef struct regatta_coll_endpoints regatta_coll_endpoints; /* the output of an exchange */

/* Bytes of an element; 0: there is no such type. */
REGATTA_COLL_API uint64_t regatta_coll_size_of(int32_t type);

/* ---- Connecting ---- */

/* Passes `mine` to all ranks and puts the text of every rank, this one included, into `all` with
 * regatta_coll_endpoints_set(). Called once, on the thread that connects. Returns 0, or another
 * number after writing the reason into error->text, which becomes the error of the connect. */
typedef int32_t (*regatta_coll_exchange)(void* context, const char* mine,
                                         regatta_coll_endpoints* all, regatta_coll_error* error);

REGATTA_COLL_API int32_t regatta_coll_endpoints_set(regatta_coll_endpoints* all, int32_t rank,
                                                    const char* text, regatta_coll_error* error);

/* RDMA between servers: where both ranks have a device, never, or always, else an error. */
enum { REGATTA_COLL_RDMA_AUTOMATIC = 0, REGATTA_COLL_RDMA_OFF = 1, REGATTA_COLL_RDMA_REQUIRED = 2 };

/* The choices of a rank; see CommunicatorOptions in communicator.h. Later versions add fields at
 * the end. */
typedef struct regatta_coll_options {
  uint64_t struct_bytes;      /* sizeof(regatta_coll_options) where the caller was compiled */
  const char* job_token;      /* NULL: "" */
  const char* server;         /* ranks with the same text share memory; NULL: none */
  const char* listen_address; /* NULL: 127.0.0.1; a numeric address */
  double peer_timeout_s;
  double progress_timeout_s;
  int32_t caller_moves_data;
  int32_t connections;
  const char* const* rank_names; /* world_size names for messages, or NULL */
  int32_t rdma;                  /* REGATTA_COLL_RDMA_... */
  int32_t deterministic;         /* since 1.1 */
  int32_t sums_in_f64;           /* since 1.1 */
  const char* domain;            /* since 1.2: servers with the same text are a scale-up domain;
                                    NULL: REGATTA_DOMAIN, else the server is one alone */
} regatta_coll_options;

/* Fills in the defaults; struct_bytes is sizeof(regatta_coll_options). */
REGATTA_COLL_API void regatta_coll_options_init(regatta_coll_options* options,
                                                uint64_t struct_bytes);

/* Joins the ranks [0, world_size): returns when every rank has called it. options: NULL for the
 * defaults. */
REGATTA_COLL_API int32_t regatta_coll_connect(int32_t rank, int32_t world_size,
                                              regatta_coll_exchange exchange, void* context,
                                              const regatta_coll_options* options,
                                              regatta_coll_comm** comm, regatta_coll_error* error);

/* Wait for the handles of its operations first. */
REGATTA_COLL_API void regatta_coll_comm_free(regatta_coll_comm* comm);

REGATTA_COLL_API int32_t regatta_coll_rank(const regatta_coll_comm* comm);
REGATTA_COLL_API int32_t regatta_coll_world_size(const regatta_coll_comm* comm);

/* The communicator of the ranks that gave the same colour, ordered by rank. Collective. color < 0:
 * the caller is in none and gets a communicator of world size 0. */
REGATTA_COLL_API int32_t regatta_coll_split(regatta_coll_comm* comm, int32_t color,
                                            regatta_coll_comm** part, regatta_coll_error* error);

/* Since 1.1. After an error: a communicator of the remaining ranks, in their order, numbered
 * without gaps. Collective; communicator.h says which ranks remain, and which buffers keep their
 * values. The old one stays failed and may be freed at any time. */
REGATTA_COLL_API int32_t regatta_coll_shrink(regatta_coll_comm* comm, regatta_coll_comm** rest,
                                             regatta_coll_error* error);

/* Since 1.1. A larger world: the ranks of comm keep their numbers, newcomers get the others and
 * call regatta_coll_connect(rank, world_size, ...). Collective; comm works on. */
REGATTA_COLL_API int32_t regatta_coll_grow(regatta_coll_comm* comm, int32_t world_size,
                                           regatta_coll_exchange exchange, void* context,
                                           regatta_coll_comm** grown, regatta_coll_error* error);

/* Since 1.1: a communicator of the same ranks with an order of calls of its own. Collective. */
REGATTA_COLL_API int32_t regatta_coll_duplicate(regatta_coll_comm* comm, regatta_coll_comm** twin,
                                                regatta_coll_error* error);

/* ---- Operations ----
 * Each begins and returns a handle; with handle == NULL it returns when the operation has ended.
 * Buffers stay alive and untouched until then. In place: in == out. Shapes as in communicator.h. */

REGATTA_COLL_API int32_t regatta_coll_all_reduce(regatta_coll_comm* comm, const void* in, void* out,
                                                 uint64_t count, int32_t type, int32_t op,
                                                 regatta_coll_handle** handle,
                                                 regatta_coll_error* error);
/* in: count elements, out: count * world_size. */
REGATTA_COLL_API int32_t regatta_coll_all_gather(regatta_coll_comm* comm, const void* in, void* out,
                                                 uint64_t count, int32_t type,
                                                 regatta_coll_handle** handle,
                                                 regatta_coll_error* error);
/* in: count * world_size elements, out: count. */
REGATTA_COLL_API int32_t regatta_coll_reduce_scatter(regatta_coll_comm* comm, const void* in,
                                                     void* out, uint64_t count, int32_t type,
                                                     int32_t op, regatta_coll_handle** handle,
                                                     regatta_coll_error* error);
/* in, out: count * world_size elements. */
REGATTA_COLL_API int32_t regatta_coll_all_to_all(regatta_coll_comm* comm, const void* in, void* out,
                                                 uint64_t count, int32_t type,
                                                 regatta_coll_handle** handle,
                                                 regatta_coll_error* error);
REGATTA_COLL_API int32_t regatta_coll_broadcast(regatta_coll_comm* comm, void* data, uint64_t count,
                                                int32_t type, int32_t root,
                                                regatta_coll_handle** handle,
                                                regatta_coll_error* error);
/* out: at the root. */
REGATTA_COLL_API int32_t regatta_coll_reduce(regatta_coll_comm* comm, const void* in, void* out,
                                             uint64_t count, int32_t type, int32_t op, int32_t root,
                                             regatta_coll_handle** handle,
                                             regatta_coll_error* error);
/* in: count elements, out: count * world_size at the root. */
REGATTA_COLL_API int32_t regatta_coll_gather(regatta_coll_comm* comm, const void* in, void* out,
                                             uint64_t count, int32_t type, int32_t root,
                                             regatta_coll_handle** handle,
                                             regatta_coll_error* error);
/* in: count * world_size elements at the root, out: count. */
REGATTA_COLL_API int32_t regatta_coll_scatter(regatta_coll_comm* comm, const void* in, void* out,
                                              uint64_t count, int32_t type, int32_t root,
                                              regatta_coll_handle** handle,
                                              regatta_coll_error* error);
REGATTA_COLL_API int32_t regatta_coll_send(regatta_coll_comm* comm, const void* data,
                                           uint64_t count, int32_t type, int32_t to,
                                           regatta_coll_handle** handle, regatta_coll_error* error);
REGATTA_COLL_API int32_t regatta_coll_recv(regatta_coll_comm* comm, void* data, uint64_t count,
                                           int32_t type, int32_t from, regatta_coll_handle** handle,
                                           regatta_coll_error* error);
REGATTA_COLL_API int32_t regatta_coll_barrier(regatta_coll_comm* comm, regatta_coll_handle** handle,
                                              regatta_coll_error* error);

/* Since 1.1: parts of any length, 0 too. counts and offsets have an element for each rank, in
 * elements; offsets == NULL: one part after the other. They are read during the call only; the
 * buffers do not overlap. A part must have the same length at its sender and its receiver. */
REGATTA_COLL_API int32_t regatta_coll_all_to_all_v(
    regatta_coll_comm* comm, const void* in, const uint64_t* in_counts, const uint64_t* in_offsets,
    void* out, const uint64_t* out_counts, const uint64_t* out_offsets, int32_t type,
    regatta_coll_handle** handle, regatta_coll_error* error);
/* in: counts[rank] elements, out: the parts of all ranks. The counts are the same on all ranks. */
REGATTA_COLL_API int32_t regatta_coll_all_gather_v(regatta_coll_comm* comm, const void* in,
                                                   void* out, const uint64_t* counts,
                                                   const uint64_t* offsets, int32_t type,
                                                   regatta_coll_handle** handle,
                                                   regatta_coll_error* error);
/* in: the parts for all ranks, out: counts[rank] elements. The counts are the same on all ranks. */
REGATTA_COLL_API int32_t regatta_coll_reduce_scatter_v(
    regatta_coll_comm* comm, const void* in, const uint64_t* counts, const uint64_t* offsets,
    void* out, int32_t type, int32_t op, regatta_coll_handle** handle, regatta_coll_error* error);
/* Since 1.1: a send and a receive at once, so that ranks that exchange do not wait for each other.
 */
REGATTA_COLL_API int32_t regatta_coll_send_recv(regatta_coll_comm* comm, const void* data,
                                                uint64_t count, int32_t to, void* into,
                                                uint64_t into_count, int32_t from, int32_t type,
                                                regatta_coll_handle** handle,
                                                regatta_coll_error* error);

/* Since 1.1: the operations that this thread calls between the two, on any communicators, begin
 * together at the end, with one wake-up; none of them waits, even with handle == NULL. The handle
 * of the end (NULL: it waits) ends when all of them did, with their first error. Ranks may call
 * sends, receives, and collectives of distinct communicators in any order in between. A group in a
 * group is part of it. Connecting, splitting, duplicating, shrinking and growing fail inside;
 * collectives inside a server begin at once. */
REGATTA_COLL_API int32_t regatta_coll_group_start(regatta_coll_error* error);
REGATTA_COLL_API int32_t regatta_coll_group_end(regatta_coll_handle** handle,
                                                regatta_coll_error* error);

/* Returns when the operation has ended, with its status. May be called again. */
REGATTA_COLL_API int32_t regatta_coll_wait(regatta_coll_handle* handle, regatta_coll_error* error);
/* Never waits. *done: 1 when the operation has ended, and the status is its own; else 0. */
REGATTA_COLL_API int32_t regatta_coll_test(regatta_coll_handle* handle, int32_t* done,
                                           regatta_coll_error* error);
/* When an ended operation moved its first byte and when it ended: seconds of CLOCK_MONOTONIC. */
REGATTA_COLL_API int32_t regatta_coll_times(const regatta_coll_handle* handle, double* started_at,
                                            double* ended_at, regatta_coll_error* error);
/* Does not cancel the operation. */
REGATTA_COLL_API void regatta_coll_handle_free(regatta_coll_handle* handle);

/* ---- Memory and counters ---- */

/* Zeroed memory, aligned to a page, that all ranks of the server can access: collectives inside the
 * server copy nothing where every buffer comes from here. It may outlive the communicator. */
REGATTA_COLL_API int32_t regatta_coll_allocate(regatta_coll_comm* comm, uint64_t bytes,
                                               regatta_coll_memory** memory,
                                               regatta_coll_error* error);
REGATTA_COLL_API void* regatta_coll_memory_data(const regatta_coll_memory* memory);
REGATTA_COLL_API void regatta_coll_memory_free(regatta_coll_memory* memory);

/* Bytes that this rank sent so far to each rank of the world that regatta_coll_connect() made, over
 * the network and through shared memory. Writes at most `ranks` numbers to each array. */
REGATTA_COLL_API int32_t regatta_coll_traffic(const regatta_coll_comm* comm, int64_t* network_bytes,
                                              int64_t* shared_bytes, uint64_t ranks,
                                              regatta_coll_error* error);

#ifdef __cplusplus
}
#endif

#endif /* REGATTA_COLL_C_API_H_ */
/* NOLINTEND(readability-identifier-naming,modernize-use-using) */
