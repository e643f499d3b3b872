// rdma/queues.h: the queue pairs of an end towards one other, with their shared completion queue,
// posted receives, and slots for packets sent and received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/rdma/device.h"
#include "regatta/network/rdma/wire.h"

namespace regatta::rdma {

// Largest payload of a packet that goes through slots.
inline constexpr std::size_t kSlotPayloadMax = std::size_t{32} << 10;

struct QueueShape {
  int queue_pairs = 1;
  std::uint32_t receive_slots = 64;
  std::uint32_t send_slots = 64;
  std::size_t header_bytes = 0;  // of every packet, at most a cache line
};

class Queues {
 public:
  // Posts all receives. `device` outlives this object.
  static Result<std::unique_ptr<Queues>> create(Device& device, const QueueShape& shape);
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;
  ~Queues();

  QueueCard card() const;
  // Connects each queue pair that the other end has too; the others stay idle.
  Status connect(const QueueCard& theirs);
  std::size_t connected() const { return connected_; }

  // A header and its payload; the payload starts at a cache line. Slot numbers [0, receive_slots)
  // are receives, the following ones are for sending.
  struct Slot {
    std::byte* header;
    std::byte* payload;
  };
  Slot receive_slot(std::uint64_t slot) const { return at(slot); }
  Slot send_slot(std::uint32_t slot) const { return at(shape_.receive_slots + slot); }

  struct Payload {
    std::size_t bytes = 0;
    const std::byte* memory = nullptr;  // null: the payload is in the slot
    std::uint32_t key = 0;              // of that memory
  };
  // All return an errno value, 0 when posted. The completion of a send or write has the number
  // receive_slots + slot.
  // Sends the slot's header and the payload into a receive slot of the other end.
  int send(std::size_t queue, std::uint32_t slot, const Payload& payload, std::uint32_t immediate);
  // Writes the payload alone to the other end's place, `offset` bytes into it.
  int write(std::size_t queue, std::uint32_t slot, const Payload& payload, const RemotePlace& to,
            std::size_t offset);
  int post_receive(std::uint64_t slot);

  // The next completion; false: there is none.
  bool poll(ibv_wc& completion) { return ibv_poll_cq(completion_, 1, &completion) == 1; }
  // The next completion makes fd() readable.
  void arm() { ibv_req_notify_cq(completion_, 0); }
  int fd() const { return channel_->fd; }
  void take_events();
  // After it, neither end accesses memory by these queue pairs; posted requests complete.
  void stop();

 private:
  Queues(Device& device, const QueueShape& shape)
      : device_(device), library_(device.library()), shape_(shape) {}

  Status make();
  std::size_t memory_bytes() const;
  Status connect_one(std::size_t index, const QueueCard& theirs, std::uint16_t source_port);
  Slot at(std::uint64_t slot) const;
  ibv_sge part_of_slot(const std::byte* from, std::size_t bytes) const;
  int post(std::size_t queue, std::span<ibv_sge> parts, ibv_send_wr request);

  Device& device_;
  const Library& library_;
  const QueueShape shape_;
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

}  // namespace regatta::rdma
