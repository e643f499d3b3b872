// comm/internal/transport/tcp_link.h: the link to a rank of another server: several TCP
// connections. The control connection carries packets without data and messages up to
// kControlBytesMax, so that they never queue behind large ones. Larger messages are cut into
// fragments; the next outgoing connection that can write sends the next fragment, so each path
// carries as much as it can. Headers carry message and offset: order between connections is free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/internal/transport/peer_channel.h"
#include "regatta/runtime/comm/internal/transport/peer_link.h"

namespace regatta::comm {

inline constexpr std::size_t kControlBytesMax = std::size_t{8} << 10;

class TcpLink : public PeerLink {
 public:
  // All connected and non-blocking. Without data connections it sends packets without data only.
  TcpLink(int peer, TcpConnections connections, LinkSink& sink);
  ~TcpLink() override;

  std::vector<int> fds() const override;
  void post_control(const PacketHeader& header, std::string_view text) override;
  void post_message(OutMessage& message) override;
  bool progress() override;
  void on_event(int slot, std::uint32_t events) override;
  void abandon() override;
  bool is_backlogged() const override;
  bool is_flushed() override;
  void shut_down() override;

 private:
  struct Connection;
  struct Outgoing;

  bool write_connection(Connection& connection);
  bool next_outgoing(Connection& connection);
  std::size_t connections_for(const OutMessage& message) const;
  bool cut_fragment(Outgoing& out);
  void finish_outgoing(Connection& connection);
  bool read_connection(Connection& connection);
  void begin_payload(Connection& connection);
  void finish_packet(Connection& connection);
  void note_closed(Connection& connection, int error);
  void note_reason(int error);
  void check_closed();
  void lose(std::string_view reason);

  int peer_;
  LinkSink& sink_;
  std::vector<std::unique_ptr<Connection>> connections_;  // control, outgoing ones, incoming ones
  std::size_t outgoing_ = 0;                              // how many
  std::size_t first_out_ = 0;  // the outgoing connection that is tried first, in turn
  std::deque<std::pair<PacketHeader, std::string>> controls_;
  std::deque<OutMessage*> small_;
  std::deque<OutMessage*> bulk_;
  bool goodbye_ = false;
  bool lost_ = false;
  bool any_closed_ = false;
  std::string close_reason_;
};

// TCP_NODELAY, a user timeout as long as the peer timeout (four times that on data connections: the
// lost end of a message is sent again 0.2, 0.4, 0.8 .. s later, and may be lost again where links
// are full; the control connection shows whether the peer lives), little unsent data in the kernel;
// keepalive on the control connection alone, since many idle connections that probe every second
// overrun the queues of a machine. Errors are ignored: the connection works without these options.
void tune_tcp(int fd, double peer_timeout_s, bool is_control);

}  // namespace regatta::comm
