#include "integrations/torch/src/comm.h"

#include <cstdio>
#include <exception>

#include <c10/util/Exception.h>

namespace regatta_torch {
namespace {

// Runs the exchange for a caller in C.
std::int32_t run_exchange(void* context, const char* mine, regatta_coll_endpoints* all,
                          regatta_coll_error* error) {
  try {
    const EndpointExchange& exchange = *static_cast<const EndpointExchange*>(context);
    const std::vector<std::string> texts = exchange(mine);
    for (std::size_t rank = 0; rank < texts.size(); ++rank)
      check(regatta_coll_endpoints_set(all, static_cast<std::int32_t>(rank), texts[rank].c_str(),
                                       error),
            *error);
    return 0;
  } catch (const std::exception& cause) {
    std::snprintf(error->text, sizeof error->text, "%s", cause.what());
    return 1;
  }
}

}  // namespace

void check(std::int32_t status, const regatta_coll_error& error) {
  TORCH_CHECK(status == REGATTA_COLL_OK, "regatta: ", error.text);
}

std::shared_ptr<Comm> Comm::connect(const ConnectOptions& options,
                                    const EndpointExchange& exchange) {
  regatta_coll_options given;
  regatta_coll_options_init(&given, sizeof given);
  given.job_token = options.token.c_str();
  given.server = options.server.c_str();
  given.listen_address = options.address.c_str();
  given.progress_timeout_s = options.timeout_s;
  EndpointExchange copy = exchange;
  regatta_coll_comm* comm = nullptr;
  regatta_coll_error error{};
  check(
      regatta_coll_connect(options.rank, options.size, run_exchange, &copy, &given, &comm, &error),
      error);
  return std::shared_ptr<Comm>(new Comm(comm));
}

std::shared_ptr<Comm> Comm::duplicate() {
  const std::lock_guard lock(mutex_);
  regatta_coll_comm* twin = nullptr;
  regatta_coll_error error{};
  check(regatta_coll_split(comm_.get(), 0, &twin, &error), error);
  return std::shared_ptr<Comm>(new Comm(twin));
}

}  // namespace regatta_torch
