// probe/internal/simulation/scenario.h: one or several faults with their network, as one line of
// text (bench/faults/README.md), and the verdicts of the locator on the simulated reports.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/probe/internal/simulation/simulated_traces.h"
#include "regatta/network/probe/internal/simulation/simulation.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {

struct Scenario {
  std::string name;
  std::string cluster;  // as the file is called, without .yaml
  std::uint64_t seed = 0;
  bool is_busy = false;             // all its servers are: probe::busy()
  Seconds lasts;                    // without a fault: so long
  std::vector<std::string> faults;  // texts; none: nothing is broken, and nothing may be blamed
};

// Every line but empty ones and those that start with '#'. kInvalidInput names file and line.
Result<std::vector<Scenario>> parse_scenarios(std::string_view text, const std::string& file);

// "link leaf0-spine1 from leaf0 loss 1%", "link leaf0-spine1 both some-flows", "nic s3.nic0 loss
// 5%", "switch spine0 loss 100%", "server s2 dead". kInvalidInput names what is not in the network.
Result<SimulatedFault> parse_fault(const topo::Graph& graph, std::string_view text);
std::string fault_text(const topo::Graph& graph, const SimulatedFault& fault);

// Random faults of all kinds in equal parts; the detection paths of no two share a link. Uses only
// links that probes can tell apart.
std::vector<SimulatedFault> random_faults(const topo::Graph& graph, const Coverage& coverage,
                                          int count, std::mt19937_64& random);

// A random fault that takes all packets of one variant, or all of some flows of users.
SimulatedFault random_variant_fault(const topo::Graph& graph, const Coverage& coverage,
                                    std::mt19937_64& random);

struct Outcome {
  std::vector<diag::Culprit> truth;
  std::vector<diag::FaultVerdict> blamed;  // faults ever reported as begun
  bool is_right = false;                   // all of the truth in time, and nothing else at any time
  std::vector<Seconds> after;              // for each of the truth, if named in time
  std::vector<diag::Culprit> vote;         // verdict of 007 on the same 2 s
  std::vector<diag::Culprit> threshold;    // verdict of a plain Pingmesh
};

// Faults begin about 2.5 s after the probes, at a random instant, and are to be named within 2 s.
// `options`: noise and seed. With `planned`, traceroutes are requested and weighed as in `regatta
// probe`.
Outcome try_scenario(const topo::Graph& graph, const Matrix& matrix,
                     std::vector<SimulatedFault> faults, const SimulationOptions& options,
                     const Planned* planned = nullptr);

}  // namespace regatta::probe
