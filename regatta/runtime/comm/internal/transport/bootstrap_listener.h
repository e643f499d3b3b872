// comm/internal/transport/bootstrap_listener.h: where other ranks, and strangers, come in during
// the bootstrap.
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
#include "regatta/runtime/comm/handshake.h"
#include "regatta/runtime/comm/internal/transport/shm_ring.h"
#include "regatta/runtime/comm/internal/transport/socket.h"
#include "regatta/runtime/comm/shared_segment.h"

namespace regatta::comm {

// Somebody who was let in.
struct AcceptedConnection {
  RankHandshake handshake;
  os::UniqueFd fd;
  std::optional<RingSegment> segment;  // of a caller through shared memory
  SharedSegment shared_segment;        // the same; closed when it gave none
};

class BootstrapListener {
 public:
  // Why a caller is refused, "" to let it in.
  using AdmissionCheck = std::function<std::string(const RankHandshake&)>;

  // `host`: the name of the rank, for log lines. The address is one in numbers.
  // `shared_segment`: descriptor of the own shared segment, for callers of the same server; or -1.
  static Result<BootstrapListener> open(std::string host, const std::string& address,
                                        int shared_segment);
  // Before anybody is served: the rank for replies.
  void set_rank(int rank) { rank_ = rank; }

  std::uint16_t port() const { return tcp_.port; }
  // "" when unix sockets cannot be had.
  const std::string& unix_name() const { return unix_name_; }

  // Takes in who calls, without blocking; gives who was let in. `ready`: of add_poll_fds(). Who
  // does not show a right handshake within 5 s is refused with a log line.
  std::vector<AcceptedConnection> serve(Seconds now, const ReadyFds& ready,
                                        const AdmissionCheck& check);
  void add_poll_fds(std::vector<pollfd>& fds) const;

 private:
  struct PendingConnection {
    os::UniqueFd fd;
    bool is_shared = false;
    Seconds deadline;
    std::vector<std::byte> in;
    std::vector<os::UniqueFd> memory;  // segment, shared segment
  };
  enum class ReadState { kIncomplete, kClosed };

  void accept_pending(int listener, bool is_shared, Seconds now);
  ReadState read_handshake(PendingConnection& pending, const AdmissionCheck& check,
                           std::vector<AcceptedConnection>& accepted_connections);
  void accept(PendingConnection& pending, RankHandshake handshake,
              std::vector<AcceptedConnection>& accepted_connections) const;
  void reject(const PendingConnection& pending, const std::string& why) const;
  static ssize_t receive(PendingConnection& pending);

  int rank_ = 0;
  std::string host_;
  int shared_segment_ = -1;
  TcpListener tcp_;
  os::UniqueFd unix_;
  std::string unix_name_;
  std::vector<std::unique_ptr<PendingConnection>> pending_;
};

}  // namespace regatta::comm
