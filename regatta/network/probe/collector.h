// probe/collector.h: gathers the reports of the probers of all servers and passes them to the
// locator. Pure: the caller passes the lines, and the time of the clock that numbers the windows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/probe/handshake.h"
#include "regatta/network/probe/internal/report_text.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {

// Sums of all probes from one server to another, since the beginning.
struct PairSum {
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  std::uint64_t answers = 0;  // with a latency
  double total_us = 0;
  double least_us = 0;
  double most_us = 0;
};

// Counts start shortly after begin(): the first probers to start get no answers. The same holds for
// a server that first reports later.
class Collector {
 public:
  // Graph and matrix must outlive this. `is_healed`: as in diag::LocatorOptions.
  Collector(const topo::Graph& graph, const Matrix& matrix, Seconds period, bool is_healed = false);

  // Reporters that have not reported yet count as missing.
  void begin(Seconds now);
  // Handles a line of the prober of `server`. kInvalidInput for a malformed line and for windows in
  // the future.
  Status accept(NodeId server, std::string_view line, Seconds now);
  void add(const diag::CarrierEvent& event) { locator_.add(event); }
  void add(const diag::PassiveCount& count) { locator_.add(count); }
  void add(const diag::HeardPort& port) { locator_.add(port); }
  void add(const diag::ServerAddresses& addresses) { locator_.add(addresses); }
  void add(const diag::PortReading& reading) { locator_.add(reading); }
  diag::FaultChanges locate(Seconds now) { return locator_.locate(now); }
  // By the last locate(): where probes lost anything lately.
  std::vector<diag::LinkLoss> link_losses(Seconds now) const { return locator_.link_losses(now); }
  Seconds loss_span() const { return locator_.loss_span(); }
  // As in diag::Locator.
  diag::FaultChanges reconsider(diag::FaultChanges changes, Seconds now) {
    return locator_.reconsider(std::move(changes), now);
  }

  void leave_out(std::vector<bool> paths) { locator_.leave_out(std::move(paths)); }
  // As of the last locate(): paths with losses, and active faults.
  const std::vector<std::uint32_t>& lossy() const { return locator_.lossy(); }
  const std::vector<diag::FaultVerdict>& standing() const { return locator_.active_faults(); }
  // Those that the last locate() found again, or that nobody observes.
  std::vector<diag::FaultVerdict> lasting() const { return locator_.lasting_faults(); }
  diag::CounterEvidence& counters() { return locator_.counters(); }
  // Culprits whose verdicts wait: traceroutes may show that a switch has changed its hash instead.
  std::vector<diag::Culprit> doubted() const { return locator_.unconfirmed(); }

  std::size_t servers() const { return servers_.size(); }
  const PairSum& pair(std::size_t from, std::size_t to) const {
    return pairs_[from * servers_.size() + to];
  }
  std::uint64_t probes_sent() const;  // of all pairs
  // Length limit of the lines of this server, in bytes.
  std::size_t longest_line(NodeId server) const;

 private:
  struct Server {
    ServerPart part;
    diag::Window counts_from = -1;
  };
  struct Counted {  // of a window that may be reported again
    diag::Window window = -1;
    std::uint16_t sent = 0;
    std::uint16_t answered = 0;
  };

  void count(const diag::ProbeReport& report);
  void count(const std::vector<Latency>& latencies);
  PairSum& pair_of(const Probe& probe);

  const topo::Graph& graph_;
  const Matrix& matrix_;
  int periods_ = 3;
  Seconds window_;
  std::vector<Server> servers_;  // by NodeId
  diag::Locator locator_;
  diag::Window counts_from_ = -1;
  std::vector<PairSum> pairs_;
  std::vector<std::vector<Counted>> counted_;  // per probe, by window
};

// A prober's connection to the collector: carries its lines, and requests back. Lines are dropped
// while there is no connection.

struct CollectorConnectionOptions {
  std::string collector;  // "unix:PATH" or "HOST:PORT"
  Handshake handshake;    // its clock is set when it is sent
  Seconds again{1};       // between two attempts; five times that after a refusal
  // Called from another thread with a sentence for each new problem, and for its end.
  std::function<void(const std::string&)> note;
  // Called from the same thread with each line of the collector, without its end; an error closes
  // the connection.
  std::function<Status(std::string_view)> on_line;
};

// kInvalidInput for an address at which no collector can be: one that open() refuses, an unknown
// host, a socket in a missing folder. Queries name servers, so it may take seconds.
Status check_collector(const std::string& at);

class CollectorConnection {
 public:
  // Returns before the collector answers. kInvalidInput for a malformed address.
  static Result<CollectorConnection> open(CollectorConnectionOptions options);
  ~CollectorConnection();
  CollectorConnection(CollectorConnection&&) noexcept;
  CollectorConnection& operator=(CollectorConnection&&) noexcept;

  // Sends a complete line without waiting: drops it without a collector, and drops the connection
  // if the collector does not read.
  void send(const std::string& line);

 private:
  struct Impl;
  explicit CollectorConnection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::probe
