// comm/internal/transport/verbs_writer.h: the sending half of a VerbsLink: messages that wait for a
// slot and for credit, and those that are posted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "regatta/base/core/result.h"
#include "regatta/network/rdma/credit.h"
#include "regatta/network/rdma/queues.h"
#include "regatta/network/rdma/wire.h"
#include "regatta/runtime/comm/internal/transport/peer_link.h"
#include "regatta/runtime/comm/internal/transport/send_slots.h"
#include "regatta/runtime/comm/internal/transport/verbs_device.h"
#include "regatta/runtime/comm/internal/transport/wire_header.h"

namespace regatta::comm {

inline constexpr std::uint32_t kSendSlots = 64;
// Messages up to this are copied at both ends rather than registered.
inline constexpr std::size_t kCopiedBytesMax = std::size_t{64} << 10;

// A message that takes several packets or writes.
struct LargeMessage {
  OutMessage* message = nullptr;
  std::optional<rdma::RemotePlace> place;  // granted by the other end; none: packets through slots
  RegistrationCache::Lease memory;         // none: packets are copied
};

class VerbsWriter {
 public:
  // All references outlive this. `sink` learns what was sent to `peer`.
  VerbsWriter(int peer, VerbsDevice& device, rdma::Queues& queues, rdma::Credit& credit,
              LinkSink& sink)
      : peer_(peer), device_(device), queues_(queues), credit_(credit), sink_(sink) {}

  void post_control(const PacketHeader& header, std::string text);
  void post_message(OutMessage& message);
  // The other end grants a place for a message of this end.
  void add_grant(const MessageKey& key, const rdma::RemotePlace& place) { grants_[key] = place; }

  // The number of connected queue pairs; 0 until the other end has sent its own.
  void set_queues(std::size_t queues) { slots_.set_queues(queues); }
  std::size_t queues() const { return slots_.queues(); }
  // Posts what slots and credit allow; true when there was any. An error: a queue pair is broken.
  Result<bool> write_some();
  // The slot's packet or write has completed; `is_sent`: without an error.
  void complete(std::uint32_t slot, bool is_sent);

  // Nothing waits and nothing is posted.
  bool is_empty() const;
  std::size_t posted() const { return slots_.in_use(); }
  // Posts nothing from now on and forgets all messages.
  void stop();

 private:
  Result<bool> write_next();
  Status write_packet(const PacketHeader& header, const std::byte* payload, std::size_t bytes);
  Status write_small(OutMessage& message);
  Status write_part(const std::shared_ptr<LargeMessage>& large);

  const int peer_;
  VerbsDevice& device_;
  rdma::Queues& queues_;
  rdma::Credit& credit_;
  LinkSink& sink_;
  SendSlots slots_{kSendSlots};
  std::deque<std::pair<PacketHeader, std::string>> controls_;
  std::deque<OutMessage*> small_;
  std::deque<std::shared_ptr<LargeMessage>> large_;
  std::unordered_map<MessageKey, rdma::RemotePlace> grants_;  // not used yet
  bool is_stopped_ = false;
};

}  // namespace regatta::comm
