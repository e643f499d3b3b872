// experimental/remote/internal/reservations.h: the slices that a GPU server has lent, and their
// host processes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "experimental/remote/internal/serve.h"
#include "experimental/remote/internal/tls_channel.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::remote {

struct SliceRequest {
  std::string name;
  std::uint64_t memory = 0;  // bytes
  int gpu = 0;
  unsigned compute_ppm = 0;
  unsigned weight = 0;   // 0: not said
  std::string priority;  // likewise
};

class Reservations {
 public:
  explicit Reservations(const GpuServerOptions& options) : options_(options) {}
  Reservations(const Reservations&) = delete;
  Reservations& operator=(const Reservations&) = delete;

  // Makes the tenant; returns the ticket.
  Result<std::string> reserve(const SliceRequest& request);
  void end(const std::string& ticket);
  // Starts a host process for one more program; returns its key. The process ends when `anchor`
  // does.
  Result<std::string> open(const std::string& ticket, os::UniqueFd anchor);
  // The key by which the programs of a reservation prove that they are of it.
  std::optional<std::string> find_key(std::string_view identity);
  // Passes a connection of that program to its host process, with its offer (rendezvous.h).
  struct Joining {
    std::uint64_t number = 0;
    std::string offer;
  };
  Status join(const std::string& ticket, const std::string& key, const Joining& joining,
              os::UniqueFd fd);

 private:
  struct Child {
    pid_t pid = 0;
    os::UniqueFd control;
  };
  struct Reservation {
    std::string name;
    SharedSecret secret;
    Child tenant_holder;                 // a process in the tenant, which keeps the tenant alive
    std::map<std::string, Child> hosts;  // by key
  };
  Result<Child> start(const std::vector<std::string>& tenant) const;
  // Returns its exit status, also when it had ended before.
  static int stop(Child& child);
  std::map<std::string, Reservation>::iterator find(const std::string& ticket)
      REGATTA_REQUIRES(mutex_);

  const GpuServerOptions options_;
  Mutex mutex_;
  std::map<std::string, Reservation> all_ REGATTA_GUARDED_BY(mutex_);  // by ticket
};

}  // namespace regatta::remote
