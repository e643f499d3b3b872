// comm/internal/transport/verbs_device.h: the RDMA device of a rank, and the memory that is
// registered with it.
#pragma once

#include <memory>
#include <utility>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/rdma/device.h"
#include "regatta/runtime/comm/internal/transport/registration_cache.h"

namespace regatta::comm {

class VerbsDevice {
 public:
  explicit VerbsDevice(std::unique_ptr<rdma::Device> device)
      : device_(std::move(device)), memory_(*device_) {}

  rdma::Device& device() { return *device_; }
  // Kept from one message of a call to the next.
  RegistrationCache& memory() { return memory_; }
  // The status of a post to a queue pair that returned this errno value; 0: it was posted.
  Status check_post(int error) const {
    if (error == 0) return {};
    return Error{Code::kUnavailable, "cannot post to a queue pair of " + device_->name() + ": " +
                                         os::errno_text(error)};
  }

 private:
  std::unique_ptr<rdma::Device> device_;
  RegistrationCache memory_;  // goes before the device
};

}  // namespace regatta::comm
