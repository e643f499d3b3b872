// cli/internal/probe_lab.h: what `regatta probe` has of a lab: a prober in each of its servers, and
// what its cables say of themselves.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/app/cli/internal/kept_process.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/lab/lab.h"
#include "regatta/network/probe/collector.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::cli {

// Ends them with itself.
class LabProbers {
 public:
  LabProbers() = default;
  ~LabProbers();
  LabProbers(const LabProbers&) = delete;
  LabProbers& operator=(const LabProbers&) = delete;

  // `collector`: where they report; `period` as the user wrote it. `lab`, `graph` and `matrix` must
  // outlive this.
  Status start(const lab::LabInfo& lab, const topo::Graph& graph, const probe::Matrix& matrix,
               const std::string& collector, const std::string& period);
  // Names of the servers whose prober has ended by itself.
  std::vector<std::string> ended();
  // Starts those again, at once and later after pauses; the names of their servers.
  std::vector<std::string> restart_ended(Seconds now);
  std::size_t count() const { return probers_.size(); }
  std::size_t restarts() const;

 private:
  struct Prober {
    NodeId server;
    KeptProcess process;
  };
  // Arguments of start().
  struct Plan {
    const lab::LabInfo* lab = nullptr;
    const topo::Graph* graph = nullptr;
    const probe::Matrix* matrix = nullptr;
    std::uint64_t number = 0;
    std::string collector;
    std::string period;
  };
  Result<pid_t> start_one(NodeId server) const;
  const std::string& name_of(const Prober& one) const;

  Plan plan_;
  std::vector<Prober> probers_;
};

// Cables that lost or got back their carrier.
class LabCarriers {
 public:
  // Samples them now and then; most calls return at once.
  Status sample(const lab::LabInfo& lab, probe::Collector& collector);

 private:
  std::vector<bool> up_;
  Seconds next_;
};

// Where the cables of the lab are plugged in.
class LabCabling {
 public:
  // Has all ports name themselves, once a second and where faults have begun that cables at the
  // wrong ports would cause; then takes `changes` back as far as that is their cause.
  Status check(const lab::LabInfo& lab, probe::Collector& collector, diag::FaultChanges& changes);

 private:
  std::vector<int> heard_;  // by port, as of the last look
  Seconds next_;
};

}  // namespace regatta::cli
