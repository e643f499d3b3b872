// comm/internal/c_api_impl.h: what the handles of c_api.h are made of, and how its calls end; not
// for users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/c_api.h"
#include "regatta/runtime/comm/communicator.h"

// NOLINTBEGIN(readability-identifier-naming): as in c_api.h
struct regatta_coll_comm {
  regatta::comm::Communicator communicator;
};
struct regatta_coll_handle {
  regatta::comm::Handle handle;
};
struct regatta_coll_memory {
  std::shared_ptr<std::byte> data;
};
struct regatta_coll_endpoints {
  std::vector<std::string> texts;
};
// NOLINTEND(readability-identifier-naming)

namespace regatta::comm {

std::int32_t report(regatta_coll_error* error, std::int32_t status, std::string_view text);
std::int32_t report(regatta_coll_error* error, const Error& cause);
std::int32_t report_ok(regatta_coll_error* error);

// "wait: the handle is NULL: give one".
inline Error missing(const char* call, const char* what) {
  return {Code::kInvalidInput, std::string(call) + ": " + what + " is NULL: give one"};
}

// Runs `body`, which returns a Status, and turns what comes out of it, exceptions included, into a
// status of the interface.
template <typename Body>
std::int32_t guard(regatta_coll_error* error, Body&& body) noexcept {
  try {
    const Status status = std::forward<Body>(body)();
    return status ? report_ok(error) : report(error, status.error());
  } catch (const std::bad_alloc&) {
    return report(error, REGATTA_COLL_EXHAUSTED, "there is no memory left: free some");
  } catch (const std::exception& cause) {
    return report(error, REGATTA_COLL_INTERNAL, cause.what());
  } catch (...) {
    return report(error, REGATTA_COLL_INTERNAL, "an unknown exception: report this as a bug");
  }
}

}  // namespace regatta::comm
