#include "regatta/runtime/comm/c_api.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/runtime/comm/internal/c_api_impl.h"

namespace regatta::comm {
namespace {

std::int32_t status_of(Code code) {
  switch (code) {
    case Code::kInvalidInput:
      return REGATTA_COLL_INVALID_INPUT;
    case Code::kNotFound:
      return REGATTA_COLL_NOT_FOUND;
    case Code::kConflict:
      return REGATTA_COLL_CONFLICT;
    case Code::kExhausted:
      return REGATTA_COLL_EXHAUSTED;
    case Code::kUnavailable:
      return REGATTA_COLL_UNAVAILABLE;
    case Code::kTimeout:
      return REGATTA_COLL_TIMEOUT;
    case Code::kUnsupported:
      return REGATTA_COLL_UNSUPPORTED;
  }
  return REGATTA_COLL_INTERNAL;
}

void write_defaults(regatta_coll_options& options) {
  const CommunicatorOptions defaults;
  options.job_token = nullptr;
  options.server = nullptr;
  options.listen_address = nullptr;
  options.peer_timeout_s = defaults.peer_timeout.value;
  options.progress_timeout_s = defaults.progress_timeout.value;
  options.caller_moves_data = defaults.caller_moves_data ? 1 : 0;
  options.connections = defaults.connections;
  options.rank_names = nullptr;
  options.rdma = REGATTA_COLL_RDMA_AUTOMATIC;
  options.deterministic = defaults.deterministic ? 1 : 0;
  options.sums_in_f64 = defaults.sums_in_f64 ? 1 : 0;
  options.domain = nullptr;
}

Result<CommunicatorOptions> read_options(const regatta_coll_options* given, int world_size) {
  regatta_coll_options known{};
  regatta_coll_options_init(&known, sizeof known);
  if (given != nullptr) {
    if (given->struct_bytes < sizeof given->struct_bytes)
      return Error{Code::kInvalidInput,
                   "connect: options.struct_bytes is not set: fill the options in with "
                   "regatta_coll_options_init"};
    // A caller of an older version has fewer fields, one of a newer version has more.
    std::memcpy(&known, given, std::min<std::size_t>(given->struct_bytes, sizeof known));
  }
  CommunicatorOptions options;
  if (known.job_token != nullptr) options.job_token = known.job_token;
  if (known.server != nullptr) options.server = known.server;
  if (known.domain != nullptr) options.domain = known.domain;
  if (known.listen_address != nullptr) options.listen_address = known.listen_address;
  options.peer_timeout = Seconds{known.peer_timeout_s};
  options.progress_timeout = Seconds{known.progress_timeout_s};
  options.caller_moves_data = known.caller_moves_data != 0;
  options.connections = known.connections;
  if (known.rdma < REGATTA_COLL_RDMA_AUTOMATIC || known.rdma > REGATTA_COLL_RDMA_REQUIRED)
    return Error{Code::kInvalidInput, "connect: options.rdma is " + std::to_string(known.rdma) +
                                          ": use one of REGATTA_COLL_RDMA_..."};
  options.rdma = static_cast<Rdma>(known.rdma);
  options.deterministic = known.deterministic != 0;
  options.sums_in_f64 = known.sums_in_f64 != 0;
  if (known.rank_names != nullptr)
    options.rank_names.assign(known.rank_names, known.rank_names + std::max(world_size, 0));
  return options;
}

Result<std::vector<std::string>> run_exchange(regatta_coll_exchange exchange, void* context,
                                              const std::string& mine, int world_size) {
  regatta_coll_endpoints all;
  all.texts.resize(static_cast<std::size_t>(world_size));
  regatta_coll_error error{};
  if (exchange(context, mine.c_str(), &all, &error) != 0) {
    error.text[sizeof error.text - 1] = '\0';
    const std::string why = error.text[0] != '\0' ? error.text : "the callback gave no reason";
    return Error{Code::kUnavailable, "connect: the exchange failed: " + why};
  }
  for (std::size_t rank = 0; rank < all.texts.size(); ++rank)
    if (all.texts[rank].empty())
      return Error{Code::kInvalidInput, "connect: the exchange gave no endpoint of rank " +
                                            std::to_string(rank) + ": give one of every rank"};
  return std::move(all.texts);
}

// As an Exchange of communicator.h.
Exchange exchange_of(regatta_coll_exchange exchange, void* context, int world_size) {
  return [=](const std::string& mine) { return run_exchange(exchange, context, mine, world_size); };
}

}  // namespace

std::int32_t report(regatta_coll_error* error, std::int32_t status, std::string_view text) {
  if (error == nullptr) return status;
  error->status = status;
  const std::size_t bytes = std::min(text.size(), sizeof error->text - 1);
  std::memcpy(error->text, text.data(), bytes);
  error->text[bytes] = '\0';
  return status;
}

std::int32_t report(regatta_coll_error* error, const Error& cause) {
  return report(error, status_of(cause.code), cause.message);
}

std::int32_t report_ok(regatta_coll_error* error) {
  return report(error, REGATTA_COLL_OK, "");
}

}  // namespace regatta::comm

using namespace regatta;        // NOLINT(google-build-using-namespace): the C names stand outside
using namespace regatta::comm;  // NOLINT(google-build-using-namespace): the same

std::uint32_t regatta_coll_version(void) {
  return REGATTA_COLL_VERSION_MAJOR << 16U | REGATTA_COLL_VERSION_MINOR;
}

void regatta_coll_options_init(regatta_coll_options* options, std::uint64_t struct_bytes) {
  if (options == nullptr) return;
  regatta_coll_options known{};
  write_defaults(known);
  known.struct_bytes = struct_bytes;
  std::memset(static_cast<void*>(options), 0, struct_bytes);
  std::memcpy(options, &known, std::min<std::size_t>(struct_bytes, sizeof known));
}

std::int32_t regatta_coll_endpoints_set(regatta_coll_endpoints* all, std::int32_t rank,
                                        const char* text, regatta_coll_error* error) {
  return guard(error, [&]() -> Status {
    if (all == nullptr) return missing("endpoints_set", "all");
    if (text == nullptr) return missing("endpoints_set", "text");
    if (rank < 0 || static_cast<std::size_t>(rank) >= all->texts.size())
      return Error{Code::kInvalidInput, "endpoints_set: rank " + std::to_string(rank) +
                                            " is not in a world of " +
                                            std::to_string(all->texts.size()) + " ranks"};
    at(all->texts, rank) = text;
    return {};
  });
}

// NOLINTNEXTLINE(readability-function-size): one argument each for what C cannot put together
std::int32_t regatta_coll_connect(std::int32_t rank, std::int32_t world_size,
                                  regatta_coll_exchange exchange, void* context,
                                  const regatta_coll_options* options, regatta_coll_comm** comm,
                                  regatta_coll_error* error) {
  return guard(error, [&]() -> Status {
    if (exchange == nullptr) return missing("connect", "the exchange");
    if (comm == nullptr) return missing("connect", "the place for the communicator");
    *comm = nullptr;
    REGATTA_TRY(read, read_options(options, world_size));
    REGATTA_TRY(made, Communicator::connect(Rank{rank}, world_size,
                                            exchange_of(exchange, context, world_size), read));
    *comm = new regatta_coll_comm{std::move(made)};
    return {};
  });
}

void regatta_coll_comm_free(regatta_coll_comm* comm) {
  guard(nullptr, [&]() -> Status {
    delete comm;
    return {};
  });
}

std::int32_t regatta_coll_rank(const regatta_coll_comm* comm) {
  return comm == nullptr ? -1 : comm->communicator.rank().value;
}

std::int32_t regatta_coll_world_size(const regatta_coll_comm* comm) {
  return comm == nullptr ? 0 : comm->communicator.world_size();
}

std::int32_t regatta_coll_split(regatta_coll_comm* comm, std::int32_t color,
                                regatta_coll_comm** part, regatta_coll_error* error) {
  return guard(error, [&]() -> Status {
    if (comm == nullptr) return missing("split", "the communicator");
    if (part == nullptr) return missing("split", "the place for the new communicator");
    *part = nullptr;
    REGATTA_TRY(made, comm->communicator.split(color));
    *part = new regatta_coll_comm{std::move(made)};
    return {};
  });
}

std::int32_t regatta_coll_shrink(regatta_coll_comm* comm, regatta_coll_comm** rest,
                                 regatta_coll_error* error) {
  return guard(error, [&]() -> Status {
    if (comm == nullptr) return missing("shrink", "the communicator");
    if (rest == nullptr) return missing("shrink", "the place for the new communicator");
    *rest = nullptr;
    REGATTA_TRY(made, comm->communicator.shrink());
    *rest = new regatta_coll_comm{std::move(made)};
    return {};
  });
}

// NOLINTNEXTLINE(readability-function-size): as in regatta_coll_connect
std::int32_t regatta_coll_grow(regatta_coll_comm* comm, std::int32_t world_size,
                               regatta_coll_exchange exchange, void* context,
                               regatta_coll_comm** grown, regatta_coll_error* error) {
  return guard(error, [&]() -> Status {
    if (comm == nullptr) return missing("grow", "the communicator");
    if (exchange == nullptr) return missing("grow", "the exchange");
    if (grown == nullptr) return missing("grow", "the place for the new communicator");
    *grown = nullptr;
    REGATTA_TRY(made,
                comm->communicator.grow(world_size, exchange_of(exchange, context, world_size)));
    *grown = new regatta_coll_comm{std::move(made)};
    return {};
  });
}

std::int32_t regatta_coll_duplicate(regatta_coll_comm* comm, regatta_coll_comm** twin,
                                    regatta_coll_error* error) {
  return guard(error, [&]() -> Status {
    if (comm == nullptr) return missing("duplicate", "the communicator");
    if (twin == nullptr) return missing("duplicate", "the place for the new communicator");
    *twin = nullptr;
    REGATTA_TRY(made, duplicate(comm->communicator));
    *twin = new regatta_coll_comm{std::move(made)};
    return {};
  });
}

std::int32_t regatta_coll_allocate(regatta_coll_comm* comm, std::uint64_t bytes,
                                   regatta_coll_memory** memory, regatta_coll_error* error) {
  return guard(error, [&]() -> Status {
    if (comm == nullptr) return missing("allocate", "the communicator");
    if (memory == nullptr) return missing("allocate", "the place for the memory");
    *memory = nullptr;
    REGATTA_TRY(data, comm->communicator.allocate(bytes));
    *memory = new regatta_coll_memory{std::move(data)};
    return {};
  });
}

void* regatta_coll_memory_data(const regatta_coll_memory* memory) {
  return memory == nullptr ? nullptr : memory->data.get();
}

void regatta_coll_memory_free(regatta_coll_memory* memory) {
  delete memory;
}

std::int32_t regatta_coll_traffic(const regatta_coll_comm* comm, std::int64_t* network_bytes,
                                  std::int64_t* shared_bytes, std::uint64_t ranks,
                                  regatta_coll_error* error) {
  return guard(error, [&]() -> Status {
    if (comm == nullptr) return missing("traffic", "the communicator");
    const auto write = [&](const std::vector<long long>& bytes, std::int64_t* out) {
      if (out != nullptr)
        std::copy_n(bytes.begin(), std::min<std::size_t>(bytes.size(), ranks), out);
    };
    const Traffic traffic = traffic_of(comm->communicator);
    write(traffic.network_bytes, network_bytes);
    write(traffic.shared_bytes, shared_bytes);
    return {};
  });
}
