// experimental/remote/internal/packet_channel.h: a channel over packets. Bytes are copied once at
// each end, into the send slots and out of the receive slots; a packet carries the number of
// receives that the sender has posted again (rdma/credit.h). The TCP connection of the handshake
// stays open: its end ends this channel, because a queue pair learns late or never that the other
// process died.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "experimental/remote/internal/channel.h"
#include "experimental/remote/internal/packet_port.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/rdma/credit.h"

namespace regatta::remote {

class PacketChannel final : public ByteChannel {
 public:
  // The longest sleep without an event.
  static constexpr std::chrono::milliseconds kPollInterval{1000};

  // Nothing is sent over `tcp` from now on.
  PacketChannel(std::unique_ptr<PacketPort> port, os::UniqueFd tcp,
                std::chrono::milliseconds poll_interval = kPollInterval);
  ~PacketChannel() override;

  bool send(std::string_view first, std::string_view second) override;
  std::size_t receive(void* into, std::size_t count) override;
  void close() override;
  void leave() override;

  // Tests that packets go both ways; the end that requested the connection begins.
  bool handshake(bool begins, std::chrono::milliseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;
  struct ReceivedPacket {
    std::uint32_t slot = 0;
    std::size_t bytes = 0;
    std::size_t taken = 0;
  };

  // Returns when `condition` holds, the channel is lost, or the deadline has passed.
  template <typename Condition>
  void wait_until(MutexLock& lock, Condition condition, Clock::time_point deadline)
      REGATTA_REQUIRES(mutex_);
  bool may_send() const REGATTA_REQUIRES(mutex_) { return credit_.may_send() && !free_.empty(); }
  bool progress() REGATTA_REQUIRES(mutex_);
  void complete(const Completion& completion) REGATTA_REQUIRES(mutex_);
  void repost_receive(std::uint32_t receive) REGATTA_REQUIRES(mutex_);
  void return_credit() REGATTA_REQUIRES(mutex_);
  std::uint32_t take_slot() REGATTA_REQUIRES(mutex_);
  // Until a packet comes.
  void sleep(Clock::time_point deadline) REGATTA_REQUIRES(mutex_);
  void lose() REGATTA_REQUIRES(mutex_);

  const std::chrono::milliseconds poll_interval_;

  Mutex mutex_;
  ConditionVariable changed_;
  std::unique_ptr<PacketPort> port_;
  os::UniqueFd tcp_ REGATTA_GUARDED_BY(mutex_);
  rdma::Credit credit_ REGATTA_GUARDED_BY(mutex_){kPortReceives};
  std::vector<std::uint32_t> free_ REGATTA_GUARDED_BY(mutex_);  // slots to send from
  std::deque<ReceivedPacket> received_ REGATTA_GUARDED_BY(mutex_);
  Clock::time_point cut_at_ REGATTA_GUARDED_BY(mutex_){};
  bool is_cut_ REGATTA_GUARDED_BY(mutex_) = false;  // the TCP connection has ended
  bool is_watched_ REGATTA_GUARDED_BY(mutex_) =
      false;  // a thread sleeps in the port; the others wait for it
  bool is_lost_ REGATTA_GUARDED_BY(mutex_) = false;
};

}  // namespace regatta::remote
