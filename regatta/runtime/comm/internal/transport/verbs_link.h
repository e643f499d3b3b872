// comm/internal/transport/verbs_link.h: the RDMA link to a rank of another server.
// It has several queue pairs, from UDP ports that lie apart, so that equal-cost links share the
// load; any of them takes the next packet. The receiver of a granted message says where it belongs,
// and the sender writes it there: every write carries the number of that place
// (incoming_writes.h). Messages without such a place (small ones, and those that are reduced as
// they arrive) go through slots, as packets with a header. Both use up a receive that the other end
// posted (rdma/credit.h). A TCP connection connects the queue pairs, carries the goodbye and the
// reason of an abort, and shows the death of the other process, which a queue pair notices late or
// never.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/rdma/credit.h"
#include "regatta/network/rdma/queues.h"
#include "regatta/runtime/comm/internal/transport/incoming_writes.h"
#include "regatta/runtime/comm/internal/transport/peer_link.h"
#include "regatta/runtime/comm/internal/transport/tcp_link.h"
#include "regatta/runtime/comm/internal/transport/verbs.h"
#include "regatta/runtime/comm/internal/transport/verbs_device.h"
#include "regatta/runtime/comm/internal/transport/verbs_writer.h"
#include "regatta/runtime/comm/internal/transport/wire_header.h"

namespace regatta::comm {

inline constexpr std::uint32_t kReceiveSlots = 64;

class VerbsLink final : public PeerLink, private LinkSink {
 public:
  VerbsLink(VerbsLinkSetup setup, std::unique_ptr<rdma::Queues> queues, LinkSink& sink);
  ~VerbsLink() override;

  std::vector<int> fds() const override;
  void post_control(const PacketHeader& header, std::string_view text) override;
  void post_grant(const PacketHeader& header, std::byte* place) override;
  void post_message(OutMessage& message) override;
  bool progress() override;
  bool arm() override;
  void on_event(int slot, std::uint32_t events) override;
  void abandon() override;
  bool is_flushed() override;
  void shut_down() override;

 private:
  bool write_some();
  bool read_some(int max);
  void complete(const ibv_wc& completion);
  void complete_packet(const ibv_wc& completion);
  void complete_write(const ibv_wc& completion);
  void drain();

  void connect(std::string_view card);
  void stop();
  void lose(const std::string& reason);

  // LinkSink of the control connection.
  std::byte* place(int peer, const PacketHeader& header) override;
  void arrived(int peer, const PacketHeader& header, const std::byte* payload) override;
  void sent(int peer, OutMessage& message, std::size_t bytes) override;
  void lost(int peer, std::string_view reason) override;

  const int peer_;
  LinkSink& sink_;
  const std::shared_ptr<VerbsDevice> device_;
  std::unique_ptr<rdma::Queues> queues_;
  TcpLink control_;
  rdma::Credit credit_{kReceiveSlots};

  VerbsWriter writer_;
  IncomingWrites incoming_writes_;

  Seconds moved_at_;
  bool is_connected_ = false;  // both ends have each other's queue pairs: a packet will not be lost
  bool is_armed_ = false;
  bool is_stopped_ = false;  // the queue pairs are not used any more
  bool said_goodbye_ = false;
  bool lost_ = false;
};

}  // namespace regatta::comm
