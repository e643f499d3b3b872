// sharing/internal/daemon/client_processes.h: the process of each client: whether it lives, and
// whether it still runs the program that was given the client's page.
#pragma once

#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/daemon/address_space.h"
#include "regatta/gpu/sharing/internal/daemon/process_id.h"
#include "regatta/gpu/sharing/state.h"

namespace regatta::sharing {

class ClientProcesses {
 public:
  ClientProcesses() : pidfds_(kClientsMax), programs_(kClientsMax) {}

  // Until forget(). `pidfd` is of the client's process.
  void watch(int client, os::UniqueFd pidfd) { at(pidfds_, client) = std::move(pidfd); }
  int pidfd(int client) const { return at(pidfds_, client).get(); }
  bool is_watched(int client) const { return static_cast<bool>(at(pidfds_, client)); }
  // A client that is not watched has not.
  bool has_ended(int client) const {
    return at(pidfds_, client) && sharing::has_ended(at(pidfds_, client));
  }

  // `program` has the client's page.
  void set_program(int client, AddressSpace program) { at(programs_, client) = std::move(program); }
  // Whether the program that had the page is gone; with it is gone what it had on devices.
  bool has_new_program(int client) const { return at(programs_, client).has_ended(); }

  void forget(int client) {
    at(pidfds_, client).reset();
    at(programs_, client) = {};
  }

 private:
  std::vector<os::UniqueFd> pidfds_;
  std::vector<AddressSpace> programs_;
};

}  // namespace regatta::sharing
