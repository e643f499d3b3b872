// comm/internal/transport/verbs_link.h: the way to a rank of another server by RDMA.
// Several queue pairs, from UDP ports that lie apart, so that equal-cost links share the load; any
// of them takes the next packet. A granted message is written where the receiver wants it: its
// grant says where, and every write carries the number of that place. What has no such place (small
// messages, and those that are reduced as they come) goes through slots, as packets with a header.
// Both take a receive that the other end posted (rdma/credit.h). One TCP connection stays beside:
// it brings the queue pairs together, says goodbye and why a world ends, and tells when the other
// process dies, which a queue pair notices late or never.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/rdma/credit.h"
#include "regatta/network/rdma/queues.h"
#include "regatta/network/rdma/wire.h"
#include "regatta/runtime/comm/internal/transport/peer_link.h"
#include "regatta/runtime/comm/internal/transport/tcp_link.h"
#include "regatta/runtime/comm/internal/transport/verbs.h"
#include "regatta/runtime/comm/internal/transport/verbs_device.h"
#include "regatta/runtime/comm/internal/transport/wire_header.h"

namespace regatta::comm {

inline constexpr std::uint32_t kReceiveSlots = 64;
inline constexpr std::uint32_t kSendSlots = 64;

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
  // A large message on its way out.
  struct LargeMessage {
    OutMessage* message = nullptr;
    std::optional<rdma::RemotePlace> place;
    RegistrationCache::Lease memory;  // none: packets are copied
  };
  // What was posted and has not come back.
  struct Posted {
    std::size_t queue = 0;
    std::size_t bytes = 0;
    std::shared_ptr<LargeMessage> bulk;  // whose memory it reads; null: the slot's
  };
  // A message on its way in, to where it belongs.
  struct IncomingWrite {
    MessageKey key;
    std::byte* place = nullptr;
    std::size_t bytes = 0;
    std::size_t received = 0;
    std::uint32_t call = 0;  // PacketHeader::call
    RegistrationCache::Lease memory;
  };

  // Packets that wait for room and credit.
  bool write_some();
  bool write_next();
  void write_packet(const PacketHeader& header, const std::byte* payload, std::size_t bytes);
  void write_small(OutMessage& message);
  void write_bulk(const std::shared_ptr<LargeMessage>& bulk);
  std::uint32_t take_slot(std::size_t queue, std::size_t bytes, std::shared_ptr<LargeMessage> bulk);
  std::size_t next_queue();
  void check_posted(int error);

  // Completions.
  bool read_some(int max);
  void complete(const ibv_wc& completion);
  Posted give_back_slot(std::uint32_t slot);
  void complete_packet(const ibv_wc& completion);
  void complete_write(const ibv_wc& completion);
  void drain();

  void connect(std::string_view card);
  void stop();
  void lose(const std::string& reason);

  // From the control connection.
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

  std::deque<std::pair<PacketHeader, std::string>> controls_;
  std::deque<OutMessage*> small_;
  std::deque<std::shared_ptr<LargeMessage>> bulk_;
  std::unordered_map<MessageKey, rdma::RemotePlace> grants_;  // of the other end, not yet used
  std::vector<IncomingWrite> incoming_writes_;                // by number
  std::vector<std::uint32_t> free_incoming_writes_;

  std::array<Posted, kSendSlots> posted_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::size_t> in_flight_;  // by queue
  std::size_t first_queue_ = 0;         // which is asked first, in turn

  Seconds moved_at_;
  bool is_connected_ = false;  // both ends have each other's queue pairs: a packet will not be lost
  bool is_armed_ = false;
  bool is_stopped_ = false;  // the queue pairs are not used any more
  bool said_goodbye_ = false;
  bool lost_ = false;
};

}  // namespace regatta::comm
