// probe/collector.h: gathers what the probers of all servers tell, and has the locator look at it.
// Pure: the caller says what came, and what time it is by the clock that windows are numbered by.
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

// All probes from one server to another, since the beginning.
struct PairSum {
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  std::uint64_t answers = 0;  // that the latencies are of
  double total_us = 0;
  double least_us = 0;
  double most_us = 0;
};

// Nothing counts before begin(), and a moment longer: whoever starts first finds nobody who
// answers. The same of a server that tells something for the first time later on.
class Collector {
 public:
  // Graph and matrix must outlive this.
  Collector(const topo::Graph& graph, const Matrix& matrix, Seconds period);

  // Whoever has told nothing by now is missing.
  void begin(Seconds now);
  // A line of the prober of `server`. kInvalidInput for what no prober writes, and for windows that
  // are yet to come.
  Status take(NodeId server, std::string_view line, Seconds now);
  void add(const diag::CarrierEvent& event) { locator_.add(event); }
  void add(const diag::PassiveCount& count) { locator_.add(count); }
  diag::FaultChanges look(Seconds now) { return locator_.locate(now); }

  void leave_out(std::vector<bool> paths) { locator_.leave_out(std::move(paths)); }
  // As the last look saw it: paths that lose something, and what is broken.
  const std::vector<std::uint32_t>& lossy() const { return locator_.lossy(); }
  const std::vector<diag::FaultVerdict>& standing() const { return locator_.active_faults(); }
  // Who is not told for a second: routers may say that a switch has changed its hash instead.
  std::vector<diag::Culprit> doubted() const { return locator_.unconfirmed(); }

  std::size_t servers() const { return servers_.size(); }
  const PairSum& pair(std::size_t from, std::size_t to) const {
    return pairs_[from * servers_.size() + to];
  }
  std::uint64_t probes_sent() const;  // of all pairs
  // No line of this server is longer, in bytes.
  std::size_t longest_line(NodeId server) const;

 private:
  struct Server {
    ServerPart part;
    diag::Window counts_from = -1;
  };
  struct Counted {  // of a window that may be told again
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

// A prober's connection to the collector of all: lines go there while
// it is there, its orders come back, and nobody waits for it while it is not.

struct CollectorConnectionOptions {
  std::string collector;  // "unix:PATH" or "HOST:PORT"
  Handshake handshake;    // its clock is set when it is said
  Seconds again{1};       // between two attempts; five times that after a refusal
  // Hears in a sentence what goes wrong, once each, and that it is well again. From another thread.
  std::function<void(const std::string&)> note;
  // Hears the collector's lines, without their end; an error ends the connection. From the same
  // thread.
  std::function<Status(std::string_view)> hear;
};

// kInvalidInput for a place where nobody can ever be reported to: what open() refuses, a host that
// there is not, a socket in a folder that there is not. Asks name servers, so it may take seconds.
Status check_collector(const std::string& at);

class CollectorConnection {
 public:
  // Returns before the collector answers. kInvalidInput for what is no place.
  static Result<CollectorConnection> open(CollectorConnectionOptions options);
  ~CollectorConnection();
  CollectorConnection(CollectorConnection&&) noexcept;
  CollectorConnection& operator=(CollectorConnection&&) noexcept;

  // A whole line. Never waits: without a collector it is lost, and with one that does not read the
  // connection is.
  void tell(const std::string& line);

 private:
  struct Impl;
  explicit CollectorConnection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::probe
