// comm/internal/transport/send_slots.h: the send slots of an RDMA link, and which queue pair each
// posted one uses. Pure bookkeeping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace regatta::comm {

struct LargeMessage;  // verbs_writer.h

class SendSlots {
 public:
  struct Posted {
    std::size_t queue = 0;
    std::size_t bytes = 0;
    std::shared_ptr<LargeMessage> message = nullptr;  // whose memory is sent; null: the slot's own
  };

  explicit SendSlots(std::uint32_t slots);

  // The number of connected queue pairs; 0: nothing can be posted.
  void set_queues(std::size_t queues) { in_flight_.assign(queues, 0); }
  std::size_t queues() const { return in_flight_.size(); }
  bool has_free() const { return !free_.empty(); }
  // Slots that are posted.
  std::size_t in_use() const { return posted_.size() - free_.size(); }

  // The queue pair with the fewest posted slots; in turn where several have as few.
  std::size_t next_queue() const;
  std::size_t in_flight(std::size_t queue) const { return in_flight_[queue]; }
  // has_free().
  std::uint32_t acquire(Posted posted);
  Posted release(std::uint32_t slot);
  // Forgets the messages of all posted slots, which stay in use.
  void drop_messages();

 private:
  std::vector<Posted> posted_;  // by slot
  std::vector<std::uint32_t> free_;
  std::vector<std::size_t> in_flight_;  // by queue pair
  std::size_t first_queue_ = 0;         // which next_queue() prefers
};

}  // namespace regatta::comm
