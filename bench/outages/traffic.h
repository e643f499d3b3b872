// outages/traffic.h: steady traffic of many flows, and the longest silence of each.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "lab_net.h"

namespace regatta::outages {

inline constexpr std::int64_t kPeriodNs = 1'000'000;

// Longest gap and arrivals of one flow within a time.
struct Silence {
  std::int64_t longest_ns = 0;    // beyond the period; up to the end where nothing came any more
  std::int64_t with_loss_ns = 0;  // the longest in which at least one packet was lost
  std::uint32_t lost = 0;
  std::uint32_t lost_in_a_row = 0;
};

// Sends a numbered packet of each flow every millisecond, all from one thread, and collects what
// arrives with the kernel's times. The last flow is the control: it never leaves its server, so its
// silence is that of this machine.
class Traffic {
 public:
  Traffic(std::vector<Flow> flows, Flow control);
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // Forgets what arrived until now.
  void begin();
  // Per flow, control last: since begin(), of what was sent until `end`.
  std::vector<Silence> measure(std::int64_t end);
  const std::vector<Flow>& flows() const { return flows_; }

 private:
  struct Arrival {
    std::uint32_t number;
    std::int64_t at;
  };
  void send_all();
  void receive_all();

  std::vector<Flow> flows_;
  std::mutex mutex_;
  std::vector<std::vector<Arrival>> arrivals_;
  std::int64_t begin_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread sender_;
  std::thread receiver_;
};

}  // namespace regatta::outages
