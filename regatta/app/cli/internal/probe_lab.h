// cli/internal/probe_lab.h: what `regatta probe` has of a lab: a prober in each of its servers, and
// what its cables say of themselves.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

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

  // `collector`: where they report; `period` as the user wrote it.
  Status start(const lab::LabInfo& lab, const topo::Graph& graph, const probe::Matrix& matrix,
               const std::string& collector, const std::string& period);
  // Names of the servers whose prober has ended by itself.
  std::vector<std::string> ended();
  std::size_t count() const { return probers_.size(); }

 private:
  struct Prober {
    pid_t pid = -1;
    std::string server;
    bool has_ended = false;
  };
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

}  // namespace regatta::cli
