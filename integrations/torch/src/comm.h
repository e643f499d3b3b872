// torch/comm.h: owns a communicator of the C interface; its errors become exceptions of torch. Only
// C crosses to libregatta_coll.so, so that torch may be built by another compiler, with another
// std::string.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "regatta/runtime/comm/c_api.h"

namespace regatta_torch {

struct CommHandleDeleter {
  void operator()(regatta_coll_handle* handle) const { regatta_coll_handle_free(handle); }
};
using CommHandle = std::unique_ptr<regatta_coll_handle, CommHandleDeleter>;

// Throws "regatta: TEXT" (in Python a RuntimeError) unless the status is REGATTA_COLL_OK.
void check(std::int32_t status, const regatta_coll_error& error);

struct ConnectOptions {
  int rank = 0;
  int size = 1;
  double timeout_s = 0;  // without progress
  std::string token;     // the same on all ranks
  std::string server;    // ranks with the same text share memory
  std::string address;   // of this rank, in numbers
};

// Passes on this rank's text and returns the texts of all ranks in rank order. May throw.
using EndpointExchange = std::function<std::vector<std::string>(const std::string& mine)>;

class Comm {
 public:
  static std::shared_ptr<Comm> connect(const ConnectOptions& options,
                                       const EndpointExchange& exchange);
  // A communicator of the same ranks with messages of its own. Collective.
  std::shared_ptr<Comm> duplicate();

  // Calls begin(comm, &handle, &error) while no other thread uses the communicator.
  template <typename Begin>
  CommHandle begin(Begin&& begin) {
    const std::lock_guard lock(mutex_);
    regatta_coll_handle* handle = nullptr;
    regatta_coll_error error{};
    check(begin(comm_.get(), &handle, &error), error);
    return CommHandle(handle);
  }

  // The same for several calls that begin together: begin(comm, &error) makes them without handles
  // and returns the status of the first that failed. It does not throw.
  template <typename Begin>
  CommHandle begin_together(Begin&& begin) {
    const std::lock_guard lock(mutex_);
    regatta_coll_error of_group{};
    regatta_coll_error error{};
    check(regatta_coll_group_start(&of_group), of_group);
    const std::int32_t status = begin(comm_.get(), &error);
    regatta_coll_handle* ended = nullptr;
    check(regatta_coll_group_end(&ended, &of_group), of_group);
    CommHandle handle(ended);
    check(status, error);
    return handle;
  }

 private:
  struct CommDeleter {
    void operator()(regatta_coll_comm* comm) const { regatta_coll_comm_free(comm); }
  };

  explicit Comm(regatta_coll_comm* comm) : comm_(comm) {}

  std::mutex mutex_;
  std::unique_ptr<regatta_coll_comm, CommDeleter> comm_;
};

}  // namespace regatta_torch
