// The operations of c_api.h.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "regatta/runtime/comm/c_api.h"
#include "regatta/runtime/comm/internal/c_api_impl.h"
#include "regatta/runtime/comm/internal/group_scope.h"

namespace regatta::comm {
namespace {

static_assert(REGATTA_COLL_F32 == static_cast<int>(DataType::kF32));
static_assert(REGATTA_COLL_F64 == static_cast<int>(DataType::kF64));
static_assert(REGATTA_COLL_F16 == static_cast<int>(DataType::kF16));
static_assert(REGATTA_COLL_BF16 == static_cast<int>(DataType::kBf16));
static_assert(REGATTA_COLL_I8 == static_cast<int>(DataType::kI8));
static_assert(REGATTA_COLL_U8 == static_cast<int>(DataType::kU8));
static_assert(REGATTA_COLL_I32 == static_cast<int>(DataType::kI32));
static_assert(REGATTA_COLL_I64 == static_cast<int>(DataType::kI64));
static_assert(REGATTA_COLL_SUM == static_cast<int>(ReduceOp::kSum));
static_assert(REGATTA_COLL_PRODUCT == static_cast<int>(ReduceOp::kProduct));
static_assert(REGATTA_COLL_MIN == static_cast<int>(ReduceOp::kMin));
static_assert(REGATTA_COLL_MAX == static_cast<int>(ReduceOp::kMax));
static_assert(REGATTA_COLL_AVERAGE == static_cast<int>(ReduceOp::kAverage));

bool is_type(std::int32_t type) {
  return type >= REGATTA_COLL_F32 && type <= REGATTA_COLL_I64;
}

// The arguments of a call, for its checks.
struct Given {
  const char* call;
  regatta_coll_comm* comm;
  std::uint64_t count;
  std::int32_t type = REGATTA_COLL_U8;
  std::int32_t op = REGATTA_COLL_SUM;
  // The buffers that this rank needs; nothing is asked of them when the count is 0.
  bool has_buffers = true;
};

Error wrong(const Given& given, const std::string& what) {
  return {Code::kInvalidInput, std::string(given.call) + ": " + what};
}

Status check(const Given& given) {
  if (given.comm == nullptr) return missing(given.call, "the communicator");
  if (!is_type(given.type))
    return wrong(given, "there is no type " + std::to_string(given.type) +
                            ": use one of REGATTA_COLL_F32 to REGATTA_COLL_I64");
  if (given.op < REGATTA_COLL_SUM || given.op > REGATTA_COLL_AVERAGE)
    return wrong(given, "there is no reduction " + std::to_string(given.op) +
                            ": use one of REGATTA_COLL_SUM to REGATTA_COLL_AVERAGE");
  const auto ranks = static_cast<std::uint64_t>(given.comm->communicator.world_size());
  constexpr std::uint64_t kBytesMax = std::numeric_limits<std::int64_t>::max();
  if (given.count > kBytesMax / regatta_coll_size_of(given.type) / (ranks > 0 ? ranks : 1))
    return wrong(given, "a count of " + std::to_string(given.count) +
                            " is more than memory can hold: see whether it is negative");
  if (given.count > 0 && !given.has_buffers)
    return wrong(given, "a buffer is NULL: give " + std::to_string(given.count) + " elements");
  return {};
}

// Checks, begins the operation, and waits for it when the caller wants no handle.
template <typename Begin>
std::int32_t run(const Given& given, regatta_coll_handle** handle, regatta_coll_error* error,
                 Begin&& begin) noexcept {
  return guard(error, [&]() -> Status {
    if (handle != nullptr) *handle = nullptr;
    REGATTA_TRY_DO(check(given));
    Handle begun = begin(given.comm->communicator);
    if (handle == nullptr) return GroupScope::current() != nullptr ? Status() : begun.wait();
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guard() catches it
    *handle = new regatta_coll_handle{std::move(begun)};
    return {};
  });
}

// The arguments of a call whose parts vary.
struct GivenParts {
  const char* call;
  regatta_coll_comm* comm;
  const std::uint64_t* counts;
  const std::uint64_t* offsets;
  bool has_buffer;
};

Status check(const GivenParts& given, std::int32_t type) {
  if (given.comm == nullptr) return missing(given.call, "the communicator");
  if (given.counts == nullptr) return missing(given.call, "the array of counts");
  const auto ranks = static_cast<std::uint64_t>(given.comm->communicator.world_size());
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    REGATTA_TRY_DO(check(Given{.call = given.call,
                               .comm = given.comm,
                               .count = given.counts[rank],
                               .type = type,
                               .has_buffers = given.has_buffer}));
    if (given.offsets != nullptr)
      REGATTA_TRY_DO(check(Given{
          .call = given.call, .comm = given.comm, .count = given.offsets[rank], .type = type}));
  }
  return {};
}

Parts parts_of(const regatta_coll_comm* comm, const std::uint64_t* counts,
               const std::uint64_t* offsets) {
  static_assert(sizeof(std::uint64_t) == sizeof(std::size_t));
  const auto ranks = static_cast<std::size_t>(comm->communicator.world_size());
  const auto span_of = [&](const std::uint64_t* numbers) {
    return std::span<const std::size_t>(numbers, numbers == nullptr ? 0 : ranks);
  };
  return {span_of(counts), span_of(offsets)};
}

// run() for calls whose parts vary.
// NOLINTNEXTLINE(readability-function-size): both sides of a call, and what run() takes
template <typename Begin>
std::int32_t run_varying(const GivenParts& in, const GivenParts& out, const Given& given,
                         regatta_coll_handle** handle, regatta_coll_error* error,
                         Begin&& begin) noexcept {
  const std::int32_t status = guard(error, [&]() -> Status {
    if (handle != nullptr) *handle = nullptr;
    REGATTA_TRY_DO(check(given));
    REGATTA_TRY_DO(check(in, given.type));
    return check(out, given.type);
  });
  if (status != REGATTA_COLL_OK) return status;
  return run(given, handle, error, std::forward<Begin>(begin));
}

DataType type_of(std::int32_t type) {
  return static_cast<DataType>(type);
}
ReduceOp op_of(std::int32_t op) {
  return static_cast<ReduceOp>(op);
}
bool is_root(const regatta_coll_comm* comm, std::int32_t root) {
  return regatta_coll_rank(comm) == root;
}

}  // namespace
}  // namespace regatta::comm

using namespace regatta;        // NOLINT(google-build-using-namespace): the C names stand outside
using namespace regatta::comm;  // NOLINT(google-build-using-namespace): the same

std::uint64_t regatta_coll_size_of(std::int32_t type) {
  return is_type(type) ? size_of(type_of(type)) : 0;
}

// NOLINTBEGIN(readability-function-size): arguments as in communicator.h, and handle and error
std::int32_t regatta_coll_all_reduce(regatta_coll_comm* comm, const void* in, void* out,
                                     std::uint64_t count, std::int32_t type, std::int32_t op,
                                     regatta_coll_handle** handle, regatta_coll_error* error) {
  return run(
      {"all_reduce", comm, count, type, op, in != nullptr && out != nullptr}, handle, error,
      [&](Communicator& c) { return c.all_reduce(in, out, count, type_of(type), op_of(op)); });
}

std::int32_t regatta_coll_all_gather(regatta_coll_comm* comm, const void* in, void* out,
                                     std::uint64_t count, std::int32_t type,
                                     regatta_coll_handle** handle, regatta_coll_error* error) {
  return run({"all_gather", comm, count, type, REGATTA_COLL_SUM, in != nullptr && out != nullptr},
             handle, error,
             [&](Communicator& c) { return c.all_gather(in, out, count, type_of(type)); });
}

std::int32_t regatta_coll_reduce_scatter(regatta_coll_comm* comm, const void* in, void* out,
                                         std::uint64_t count, std::int32_t type, std::int32_t op,
                                         regatta_coll_handle** handle, regatta_coll_error* error) {
  return run(
      {"reduce_scatter", comm, count, type, op, in != nullptr && out != nullptr}, handle, error,
      [&](Communicator& c) { return c.reduce_scatter(in, out, count, type_of(type), op_of(op)); });
}

std::int32_t regatta_coll_all_to_all(regatta_coll_comm* comm, const void* in, void* out,
                                     std::uint64_t count, std::int32_t type,
                                     regatta_coll_handle** handle, regatta_coll_error* error) {
  return run({"all_to_all", comm, count, type, REGATTA_COLL_SUM, in != nullptr && out != nullptr},
             handle, error,
             [&](Communicator& c) { return c.all_to_all(in, out, count, type_of(type)); });
}

std::int32_t regatta_coll_broadcast(regatta_coll_comm* comm, void* data, std::uint64_t count,
                                    std::int32_t type, std::int32_t root,
                                    regatta_coll_handle** handle, regatta_coll_error* error) {
  return run({"broadcast", comm, count, type, REGATTA_COLL_SUM, data != nullptr}, handle, error,
             [&](Communicator& c) { return c.broadcast(data, count, type_of(type), Rank{root}); });
}

std::int32_t regatta_coll_reduce(regatta_coll_comm* comm, const void* in, void* out,
                                 std::uint64_t count, std::int32_t type, std::int32_t op,
                                 std::int32_t root, regatta_coll_handle** handle,
                                 regatta_coll_error* error) {
  const bool has_out = out != nullptr || !is_root(comm, root);
  return run({"reduce", comm, count, type, op, in != nullptr && has_out}, handle, error,
             [&](Communicator& c) {
               return c.reduce(in, out, count, type_of(type), op_of(op), Rank{root});
             });
}

std::int32_t regatta_coll_gather(regatta_coll_comm* comm, const void* in, void* out,
                                 std::uint64_t count, std::int32_t type, std::int32_t root,
                                 regatta_coll_handle** handle, regatta_coll_error* error) {
  const bool has_out = out != nullptr || !is_root(comm, root);
  return run({"gather", comm, count, type, REGATTA_COLL_SUM, in != nullptr && has_out}, handle,
             error,
             [&](Communicator& c) { return c.gather(in, out, count, type_of(type), Rank{root}); });
}

std::int32_t regatta_coll_scatter(regatta_coll_comm* comm, const void* in, void* out,
                                  std::uint64_t count, std::int32_t type, std::int32_t root,
                                  regatta_coll_handle** handle, regatta_coll_error* error) {
  const bool has_in = in != nullptr || !is_root(comm, root);
  return run({"scatter", comm, count, type, REGATTA_COLL_SUM, out != nullptr && has_in}, handle,
             error,
             [&](Communicator& c) { return c.scatter(in, out, count, type_of(type), Rank{root}); });
}

std::int32_t regatta_coll_send(regatta_coll_comm* comm, const void* data, std::uint64_t count,
                               std::int32_t type, std::int32_t to, regatta_coll_handle** handle,
                               regatta_coll_error* error) {
  return run({"send", comm, count, type, REGATTA_COLL_SUM, data != nullptr}, handle, error,
             [&](Communicator& c) { return c.send(data, count, type_of(type), Rank{to}); });
}

std::int32_t regatta_coll_recv(regatta_coll_comm* comm, void* data, std::uint64_t count,
                               std::int32_t type, std::int32_t from, regatta_coll_handle** handle,
                               regatta_coll_error* error) {
  return run({"recv", comm, count, type, REGATTA_COLL_SUM, data != nullptr}, handle, error,
             [&](Communicator& c) { return c.recv(data, count, type_of(type), Rank{from}); });
}

std::int32_t regatta_coll_barrier(regatta_coll_comm* comm, regatta_coll_handle** handle,
                                  regatta_coll_error* error) {
  return run({"barrier", comm, 0}, handle, error, [](Communicator& c) { return c.barrier(); });
}

std::int32_t regatta_coll_all_to_all_v(regatta_coll_comm* comm, const void* in,
                                       const std::uint64_t* in_counts,
                                       const std::uint64_t* in_offsets, void* out,
                                       const std::uint64_t* out_counts,
                                       const std::uint64_t* out_offsets, std::int32_t type,
                                       regatta_coll_handle** handle, regatta_coll_error* error) {
  return run_varying({"all_to_all_v", comm, in_counts, in_offsets, in != nullptr},
                     {"all_to_all_v", comm, out_counts, out_offsets, out != nullptr},
                     {"all_to_all_v", comm, 0, type}, handle, error, [&](Communicator& c) {
                       return c.all_to_all_v(in, parts_of(comm, in_counts, in_offsets), out,
                                             parts_of(comm, out_counts, out_offsets),
                                             type_of(type));
                     });
}

std::int32_t regatta_coll_all_gather_v(regatta_coll_comm* comm, const void* in, void* out,
                                       const std::uint64_t* counts, const std::uint64_t* offsets,
                                       std::int32_t type, regatta_coll_handle** handle,
                                       regatta_coll_error* error) {
  const GivenParts parts{"all_gather_v", comm, counts, offsets, in != nullptr && out != nullptr};
  return run_varying(
      parts, parts, {"all_gather_v", comm, 0, type}, handle, error, [&](Communicator& c) {
        return c.all_gather_v(in, out, parts_of(comm, counts, offsets), type_of(type));
      });
}

std::int32_t regatta_coll_reduce_scatter_v(regatta_coll_comm* comm, const void* in,
                                           const std::uint64_t* counts,
                                           const std::uint64_t* offsets, void* out,
                                           std::int32_t type, std::int32_t op,
                                           regatta_coll_handle** handle,
                                           regatta_coll_error* error) {
  const GivenParts parts{"reduce_scatter_v", comm, counts, offsets,
                         in != nullptr && out != nullptr};
  return run_varying(parts, parts, {"reduce_scatter_v", comm, 0, type, op}, handle, error,
                     [&](Communicator& c) {
                       return c.reduce_scatter_v(in, parts_of(comm, counts, offsets), out,
                                                 type_of(type), op_of(op));
                     });
}

std::int32_t regatta_coll_send_recv(regatta_coll_comm* comm, const void* data, std::uint64_t count,
                                    std::int32_t to, void* into, std::uint64_t into_count,
                                    std::int32_t from, std::int32_t type,
                                    regatta_coll_handle** handle, regatta_coll_error* error) {
  const bool has_buffers = (data != nullptr || count == 0) && (into != nullptr || into_count == 0);
  return run(
      {"send_recv", comm, std::max(count, into_count), type, REGATTA_COLL_SUM, has_buffers}, handle,
      error, [&](Communicator& c) {
        return send_recv(c, {data, count, Rank{to}}, {into, into_count, Rank{from}}, type_of(type));
      });
}
// NOLINTEND(readability-function-size)

std::int32_t regatta_coll_group_start(regatta_coll_error* error) {
  return guard(error, []() -> Status {
    GroupScope::open();
    return {};
  });
}

std::int32_t regatta_coll_group_end(regatta_coll_handle** handle, regatta_coll_error* error) {
  return guard(error, [&]() -> Status {
    if (handle != nullptr) *handle = nullptr;
    REGATTA_TRY(ended, GroupScope::close());
    if (handle == nullptr) return ended.wait();
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guard() catches it
    *handle = new regatta_coll_handle{std::move(ended)};
    return {};
  });
}

std::int32_t regatta_coll_wait(regatta_coll_handle* handle, regatta_coll_error* error) {
  return guard(error, [&]() -> Status {
    if (handle == nullptr) return missing("wait", "the handle");
    return handle->handle.wait();
  });
}

std::int32_t regatta_coll_test(regatta_coll_handle* handle, std::int32_t* done,
                               regatta_coll_error* error) {
  return guard(error, [&]() -> Status {
    if (done != nullptr) *done = 0;
    if (handle == nullptr) return missing("test", "the handle");
    if (!handle->handle.done()) return {};
    if (done != nullptr) *done = 1;
    return handle->handle.wait();
  });
}

std::int32_t regatta_coll_times(const regatta_coll_handle* handle, double* started_at,
                                double* ended_at, regatta_coll_error* error) {
  return guard(error, [&]() -> Status {
    if (handle == nullptr) return missing("times", "the handle");
    if (started_at != nullptr) *started_at = handle->handle.started_at().value;
    if (ended_at != nullptr) *ended_at = handle->handle.ended_at().value;
    return {};
  });
}

void regatta_coll_handle_free(regatta_coll_handle* handle) {
  delete handle;
}
