// experimental/remote/internal/packet_channel.h: a channel over packets. Bytes are copied once at
// each end, into the slots that packets leave from and out of those that they come into; a packet
// carries how many the other end has taken (rdma/credit.h). The TCP connection over which both met
// stays: its end is this channel's, as a queue pair hears late or never that the other process
// died.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "experimental/remote/internal/channel.h"
#include "experimental/remote/internal/packet_port.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/rdma/credit.h"

namespace regatta::remote {

class PacketChannel final : public ByteChannel {
 public:
  // Without an event nobody sleeps longer.
  static constexpr std::chrono::milliseconds kPollInterval{1000};

  // `tcp`: nothing is said on it from now on.
  PacketChannel(std::unique_ptr<PacketPort> port, os::UniqueFd tcp,
                std::chrono::milliseconds poll_interval = kPollInterval);
  ~PacketChannel() override;

  bool send(std::string_view first, std::string_view second) override;
  std::size_t receive(void* into, std::size_t count) override;
  void close() override;
  void leave() override;

  // Shows that packets go both ways; the end that asked for the connection begins.
  bool handshake(bool begins, std::chrono::milliseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  struct ReceivedPacket {
    std::uint32_t slot = 0;
    std::size_t bytes = 0;
    std::size_t taken = 0;
  };

  // All with mutex_ held. Until it is so, the channel is lost or the time is over.
  template <typename Condition>
  void wait_until(Lock& lock, Condition condition, Clock::time_point deadline);
  bool may_send() const { return credit_.may_send() && !free_.empty(); }
  bool progress();
  void complete(const Completion& completion);
  void give_back(std::uint32_t receive);
  void return_credit();
  std::uint32_t take_slot();
  void sleep(Lock& lock, Clock::time_point deadline);
  void lose();

  const std::chrono::milliseconds poll_interval_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::unique_ptr<PacketPort> port_;
  os::UniqueFd tcp_;
  rdma::Credit credit_{kPortReceives};
  std::vector<std::uint32_t> free_;  // slots to send from
  std::deque<ReceivedPacket> received_;
  Clock::time_point cut_at_{};
  bool is_cut_ = false;      // the TCP connection is over
  bool is_watched_ = false;  // a thread sleeps until something comes; the others wait for it
  bool is_lost_ = false;
};

}  // namespace regatta::remote
