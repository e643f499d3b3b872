// heal/internal/switches.h: the switches of a fabric as the healer reaches them: an interface with
// one implementation for kernels in reach (linux_switches.h) and one for all others
// (command_switches.h).
#pragma once

#include <span>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/network/heal/internal/tables.h"

namespace regatta::heal {

// One end of a link as its switch sees it.
struct CarrierChange {
  NodeId node;
  LinkId link;
  bool up = false;
};

// What a switch has for what goes to a leaf; no parts: no route, or several that differ.
struct Installed {
  NodeId node;
  NodeId leaf;
  std::vector<Part> parts;
};

class Switches {
 public:
  virtual ~Switches() = default;

  // Routes that are not all equal parts of all hops, at the least.
  virtual Result<std::vector<Installed>> installed() = 0;
  // Makes the routes so, all switches at the same time; tries all, and tells the first failure.
  virtual Status apply(std::span<const RouteChange> changes) = 0;
  // What came since the last call; the first one tells all that are down. Does not wait.
  virtual Result<std::vector<CarrierChange>> carriers() = 0;
  // Readable when carriers() has something to tell; -1: never.
  virtual int fd() const = 0;
};

}  // namespace regatta::heal
