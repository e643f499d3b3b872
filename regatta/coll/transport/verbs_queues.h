// coll/transport/verbs_queues.h: the queue pairs of a rank towards one other, with what they share:
// a completion queue, posted receives, and the slots that packets are sent from and come into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "regatta/coll/transport/verbs_device.h"
#include "regatta/coll/transport/verbs_wire.h"
#include "regatta/coll/transport/wire_header.h"
#include "regatta/core/result.h"

namespace regatta::coll {

inline constexpr std::uint32_t kReceiveSlots = 64;
inline constexpr std::uint32_t kSendSlots = 64;
// Of a packet that goes through slots.
inline constexpr std::size_t kSlotPayloadMax = std::size_t{32} << 10;

class VerbsQueues {
 public:
  // All receives are posted. `device` outlives this object.
  static Result<std::unique_ptr<VerbsQueues>> create(VerbsDevice& device, int queue_pairs);
  VerbsQueues(const VerbsQueues&) = delete;
  VerbsQueues& operator=(const VerbsQueues&) = delete;
  ~VerbsQueues();

  QueueCard card() const;
  // Each queue pair that the other end has too becomes usable; the others stay idle.
  Status connect(const QueueCard& theirs);
  std::size_t connected() const { return connected_; }

  // A header with its payload beside it; the payload starts at a cache line. Slots for sending are
  // told from receives by the number: receives are [0, kReceiveSlots).
  struct Slot {
    std::byte* header;
    std::byte* payload;
  };
  Slot receive_slot(std::uint64_t slot) const { return at(slot); }
  Slot send_slot(std::uint32_t slot) const { return at(kReceiveSlots + slot); }

  struct Payload {
    std::size_t bytes = 0;
    const std::byte* memory = nullptr;  // null: it lies in the slot
    std::uint32_t key = 0;              // of that memory
  };
  // All return an errno value, 0 when posted. The completion of a send or write has the number
  // kReceiveSlots + slot.
  // The slot's header and the payload, into a receive slot of the other rank.
  int send(std::size_t queue, std::uint32_t slot, const Payload& payload, std::uint32_t immediate);
  // The payload alone, to the other rank's place, `offset` bytes into it.
  int write(std::size_t queue, std::uint32_t slot, const Payload& payload, const RemotePlace& to,
            std::size_t offset);
  int post_receive(std::uint64_t slot);

  // The next completion; false: there is none.
  bool poll(ibv_wc& completion) { return ibv_poll_cq(completion_, 1, &completion) == 1; }
  // The next completion makes fd() readable.
  void arm() { ibv_req_notify_cq(completion_, 0); }
  int fd() const { return channel_->fd; }
  void take_events();
  // From now on neither end touches memory by these queue pairs; what was posted comes back.
  void stop();

 private:
  explicit VerbsQueues(VerbsDevice& device) : device_(device), library_(device.library()) {}

  Status make(int queue_pairs);
  Status connect_one(std::size_t index, const QueueCard& theirs, std::uint16_t source_port);
  Slot at(std::uint64_t slot) const;
  ibv_sge part_of_slot(const std::byte* from, std::size_t bytes) const;
  int post(std::size_t queue, std::span<ibv_sge> parts, ibv_send_wr request);

  VerbsDevice& device_;
  const VerbsLibrary& library_;
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> memory_;
  ibv_mr* region_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* completion_ = nullptr;
  ibv_srq* receives_ = nullptr;
  std::vector<ibv_qp*> pairs_;
  std::size_t connected_ = 0;
};

}  // namespace regatta::coll
