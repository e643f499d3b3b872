#include <algorithm>
#include <random>

#include "bench/healing/fault_sequence.h"
#include "regatta/network/probe/internal/simulation/scenario.h"

namespace regatta {
namespace {

class SequenceDraw {
 public:
  SequenceDraw(const FaultSuiteNetwork& network, std::uint64_t seed)
      : network_(network), random_(seed) {
    sequence_.seed = seed;
  }

  FaultSequence run(int faults) {
    draw_outages();
    for (const probe::SimulatedFault& fault :
         random_faults(network_.graph, network_.coverage, faults, random_))
      add(fault);
    return std::move(sequence_);
  }

 private:
  double draw(double from, double to) {
    return from + (to - from) * std::uniform_real_distribution<double>(0, 1)(random_);
  }
  bool one_in(int count) { return std::uniform_int_distribution<int>(1, count)(random_) == 1; }

  void add(probe::SimulatedFault fault) {
    const double last = sequence_.lasts.value - 6;
    fault.at = Seconds{draw(2.5, last)};
    SequenceFault one{fault, false};
    const bool is_link = fault.culprit.kind == diag::CulpritKind::kLink;
    if (is_link && one_in(3)) {
      one.is_carrier = true;
      one.fault.culprit = diag::both_directions_culprit(fault.culprit.link);
      one.fault.loss = 1;
      one.fault.some_flows = false;
    }
    if (fault.culprit.kind != diag::CulpritKind::kServer) {
      one.fault.until = fault.at + Seconds{draw(0.3, 10)};
      // While the healer is dead.
      const SequenceOutage& kill = sequence_.outages.front();
      if (one_in(4) && kill.from > fault.at)
        one.fault.until = Seconds{draw(kill.from.value, kill.until.value)};
    }
    sequence_.faults.push_back(one);
    const bool breaks_again = one.fault.until.value < last && one_in(3);
    if (!breaks_again) return;
    one.fault.at = one.fault.until + Seconds{draw(0.1, 7)};
    one.fault.until = one.fault.at + Seconds{draw(0.3, 10)};
    sequence_.faults.push_back(one);
  }

  void draw_outages() {
    const auto servers =
        std::ranges::count(network_.graph.nodes, topo::NodeKind::kServer, &topo::Node::kind);
    const Seconds killed{draw(2.5, sequence_.lasts.value)};
    sequence_.outages.push_back({killed, killed + Seconds{draw(0.05, 0.2)}, std::nullopt});
    for (int i = 0; i < 2; ++i) {
      const Seconds from{draw(2.5, sequence_.lasts.value)};
      const NodeId server{static_cast<int>(random_() % static_cast<std::uint64_t>(servers))};
      sequence_.outages.push_back({from, from + Seconds{draw(0.5, 4)}, server});
    }
  }

  const FaultSuiteNetwork& network_;
  std::mt19937_64 random_;
  FaultSequence sequence_;
};

}  // namespace

FaultSequence draw_fault_sequence(const FaultSuiteNetwork& network, std::uint64_t seed,
                                  int faults) {
  return SequenceDraw(network, seed).run(faults);
}

FaultSequence dead_links(const std::vector<LinkId>& links, std::uint64_t seed) {
  FaultSequence sequence{.seed = seed, .lasts = Seconds{12}, .faults = {}, .outages = {}};
  std::mt19937_64 random(seed);
  const Seconds at{2 + 0.1 * std::uniform_real_distribution<double>(0, 1)(random)};
  for (const LinkId link : links)
    sequence.faults.push_back(
        {{.culprit = diag::both_directions_culprit(link), .loss = 1, .at = at}, false});
  return sequence;
}

}  // namespace regatta
