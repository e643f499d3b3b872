// cli/internal/healer_reporter.h: reports the faults that a locator finds to a healer, every second
// while they last.
#pragma once

#include <string>
#include <utility>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/probe/collector.h"

namespace regatta::cli {

class HealerReporter {
 public:
  // `path`: the socket of `regatta heal`; where none listens there yet, report() looks for it every
  // second. kInvalidInput for a path that cannot be a socket. `graph` outlives it.
  static Result<HealerReporter> open(const std::string& path, const topo::Graph& graph);

  const std::string& path() const { return path_; }
  bool is_connected() const { return static_cast<bool>(fd_); }

  // Reports new faults at once, and every second those that the collector's last locate() found
  // again: a healer takes a fault that is no longer reported as gone. While a fault is not over or
  // probes lose anything, and for a second after, it also reports what they lose every 30 ms. Never
  // waits: it tries at once and then every second to reach a lost healer. Returns the line to print
  // when it is lost or back; "": neither.
  std::string report(const diag::FaultChanges& news, const probe::Collector& collector,
                     Seconds now);

 private:
  HealerReporter(std::string path, os::UniqueFd fd, const topo::Graph& graph)
      : path_(std::move(path)),
        fd_(std::move(fd)),
        was_connected_(static_cast<bool>(fd_)),
        graph_(&graph) {}
  std::string reconnect(const probe::Collector& collector, Seconds now);
  std::string due_losses(const probe::Collector& collector, Seconds now);
  bool send(const std::string& lines);
  void discard_input();

  std::string path_;
  os::UniqueFd fd_;  // empty while the healer is gone
  bool was_connected_;
  const topo::Graph* graph_;
  Seconds connected_{-1e9};  // to this healer
  Seconds reported_;         // all lasting faults
  Seconds losses_reported_;  // and until when they are
  Seconds losses_until_;
};

}  // namespace regatta::cli
