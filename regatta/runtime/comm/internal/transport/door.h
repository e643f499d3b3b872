// comm/internal/transport/door.h: where other ranks, and strangers, come in during the bootstrap.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/hello.h"
#include "regatta/runtime/comm/internal/transport/shm_ring.h"
#include "regatta/runtime/comm/internal/transport/socket.h"
#include "regatta/runtime/comm/shelf.h"

namespace regatta::comm {

// Somebody who was let in.
struct Arrival {
  Hello hello;
  os::UniqueFd fd;
  std::optional<ShmSegment> segment;  // of a caller through shared memory
  Shelf shelf;                        // the same; closed when it gave none
};

class Door {
 public:
  // Why a caller is refused, "" to let it in.
  using Judge = std::function<std::string(const Hello&)>;

  // `host`: the name of the rank, for log lines. The address is one in numbers.
  // `shelf`: descriptor of the own shelf, for callers of the same server; or -1.
  static Result<Door> open(std::string host, const std::string& address, int shelf);
  // Before anybody is served: the rank for replies.
  void set_rank(int rank) { rank_ = rank; }

  std::uint16_t port() const { return tcp_.port; }
  // "" when unix sockets cannot be had.
  const std::string& unix_name() const { return unix_name_; }

  // Takes in who calls, without blocking; gives who was let in. `ready`: of add_poll_fds(). Who
  // does not show a right hello within 5 s is refused with a log line.
  std::vector<Arrival> serve(Seconds now, const ReadyFds& ready, const Judge& judge);
  void add_poll_fds(std::vector<pollfd>& fds) const;

 private:
  struct Guest {
    os::UniqueFd fd;
    bool is_shared = false;
    Seconds deadline;
    std::vector<std::byte> in;
    std::vector<os::UniqueFd> memory;  // segment, shelf
  };
  enum class Verdict { kWaits, kGone };

  void take_callers(int listener, bool is_shared, Seconds now);
  Verdict hear(Guest& guest, const Judge& judge, std::vector<Arrival>& arrivals);
  void admit(Guest& guest, Hello hello, std::vector<Arrival>& arrivals) const;
  void refuse(const Guest& guest, const std::string& why) const;
  static ssize_t receive(Guest& guest);

  int rank_ = 0;
  std::string host_;
  int shelf_ = -1;
  TcpListener tcp_;
  os::UniqueFd unix_;
  std::string unix_name_;
  std::vector<std::unique_ptr<Guest>> guests_;
};

}  // namespace regatta::comm
