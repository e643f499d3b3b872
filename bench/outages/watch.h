// outages/watch.h: a small prober of its own for the black-hole cases: a packet on every way each
// 10 ms, three misses make a report to the healer. To be replaced by any source of verdicts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lab_net.h"

namespace regatta::outages {

// Its rounds do not count while its own loopback packet is late: then this machine was busy.
class Watch {
 public:
  // Covers every way between each pair of leaves; reports to the healer's socket.
  static Result<std::unique_ptr<Watch>> start(const LabNet& net, const std::string& socket);
  ~Watch();

  std::size_t probes() const { return flows_.size() - 1; }
  int reports() const { return reports_; }
  // Nothing is reported any more, nor remembered.
  void pause(bool on) { paused_ = on; }

 private:
  explicit Watch(const LabNet& net) : net_(net) {}
  Status connect(const std::string& path);
  Status open_flows();
  void run();
  void look(std::uint32_t round);
  void report(const std::vector<std::size_t>& missing);

  const LabNet& net_;
  os::UniqueFd healer_;
  std::vector<Flow> flows_;  // the last one is the control
  std::vector<std::uint32_t> seen_;
  std::vector<int> misses_;
  std::atomic<int> reports_ = 0;
  std::atomic<bool> paused_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace regatta::outages
