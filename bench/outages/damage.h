// outages/damage.h: faults that a bench injects into a lab, below its routing program.
#pragma once

#include <string>

#include "lab_net.h"

namespace regatta::outages {

enum class Damage {
  kUpstream,    // a leaf's own end of an uplink is switched off
  kFarEnd,      // the spine's end of an uplink, as the leaf sees it: its carrier goes
  kDownstream,  // a switch's end of its link to one below it is switched off
  kSilent,      // what a leaf sends to a spine is lost, no carrier goes
  kBlackHole,   // a switch above the leaves forwards nothing; its control plane goes on
};

// Where: a directed link (from the switch that loses it), and the switch above the leaves.
struct Target {
  std::uint32_t link = 0;
  NodeId node;
};

// When the kernel was asked, and how long it took.
struct Blow {
  Seconds at;
  Seconds took;
};

Result<Blow> inflict(const LabNet& net, Damage damage, const Target& target);
Result<Blow> undo(const LabNet& net, Damage damage, const Target& target);

// How a flow on this way meets the damage: not at all, or over the broken link from the other end
// only, which another switch has to notice.
enum class Meets { kNot, kAgainst, kYes };
Meets meets(const LabNet& net, Damage damage, const Target& target,
            const std::vector<std::uint32_t>& way);

}  // namespace regatta::outages
