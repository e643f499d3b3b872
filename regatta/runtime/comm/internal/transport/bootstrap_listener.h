// comm/internal/transport/bootstrap_listener.h: accepts the connections of other ranks during the
// bootstrap and checks their handshakes. It has a loop of its own beside net::LineServer because
// handshakes are binary, some carry descriptors, and the connection is passed to a link afterwards.
// The bounds are the same: a number of pending connections, of bytes and of descriptors of each
// (handshake.h), and a time.
#pragma once

#include <cstddef>
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

// A connection whose handshake was right.
struct AcceptedConnection {
  RankHandshake handshake;
  os::UniqueFd fd;
  std::optional<RingSegment> segment;  // of a peer on this server
  SharedSegment shared_segment;        // the same; closed when it sent none
};

class BootstrapListener {
 public:
  // Why a connection is refused, "" to accept it.
  using AdmissionCheck = std::function<std::string(const RankHandshake&)>;

  // `host`: the name of the rank, for log lines. The address is numeric. `shared_segment`:
  // descriptor of this rank's shared segment, for peers on the same server; or -1.
  // `pending_max`: connections without a whole handshake; later ones wait in the backlog.
  static Result<BootstrapListener> open(std::string host, const std::string& address,
                                        int shared_segment, std::size_t pending_max = 1024);
  // Before serve(): the rank for replies.
  void set_rank(int rank) { rank_ = rank; }

  std::uint16_t port() const { return tcp_.port; }
  // "" where unix sockets do not work.
  const std::string& unix_name() const { return unix_name_; }

  // Accepts connections and reads handshakes without blocking; returns those that were accepted.
  // `ready`: of add_poll_fds(). A connection without a right handshake within 5 s is refused with a
  // log line.
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

  void accept_pending(const os::UniqueFd& listener, bool is_shared, Seconds now);
  ReadState read_handshake(PendingConnection& pending, const AdmissionCheck& check,
                           std::vector<AcceptedConnection>& accepted_connections);
  void accept(PendingConnection& pending, RankHandshake handshake,
              std::vector<AcceptedConnection>& accepted_connections) const;
  void reject(const PendingConnection& pending, const std::string& why) const;
  static ssize_t receive(PendingConnection& pending);

  int rank_ = 0;
  std::string host_;
  int shared_segment_ = -1;
  std::size_t pending_max_ = 0;
  TcpListener tcp_;
  os::UniqueFd unix_;
  std::string unix_name_;
  std::vector<std::unique_ptr<PendingConnection>> pending_;
};

}  // namespace regatta::comm
