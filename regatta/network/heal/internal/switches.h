// heal/internal/switches.h: the switches of a fabric as the healer reaches them: an interface with
// one implementation for kernels in reach (linux_switches.h) and one for all others
// (command_switches.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
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

// Route of a switch to a leaf; no parts: no route, or several that differ.
struct Installed {
  NodeId node;
  NodeId leaf;
  std::vector<Part> parts;
  std::vector<std::uint32_t> off;  // hops of the switch that no route can use now
  std::uint8_t protocol = 0;       // RTPROT_* of the program that installed it; 0: some is missing
};

class Switches {
 public:
  virtual ~Switches() = default;

  // `call` is called at least each second while a method waits for answers of switches.
  void while_waiting(std::function<void()> call) { while_waiting_ = std::move(call); }

  // Routes that are not all equal parts of all hops, at the least.
  virtual Result<std::vector<Installed>> installed() = 0;
  // Whether installed() reads the switches.
  virtual bool reads_installed() const { return false; }
  // Whether carriers() heard since the last call that another program changed a route.
  virtual bool consume_foreign_change() { return false; }
  // Installs the routes on all switches at the same time; tries all. Returns the result of each
  // change, in their order.
  virtual std::vector<Status> apply(std::span<const RouteChange> changes) = 0;
  // Changes since the last call; the first call reports all carriers that are down. Does not wait
  // for changes.
  virtual Result<std::vector<CarrierChange>> carriers() = 0;
  // Readable when carriers() has changes to report; -1: never.
  virtual int fd() const = 0;

 protected:
  void waits() const {
    if (while_waiting_) while_waiting_();
  }

 private:
  std::function<void()> while_waiting_;
};

// The first failure, if there is one.
inline Status first_failure(std::span<const Status> all) {
  const auto failed = std::ranges::find_if(all, [](const Status& one) { return !one; });
  return failed == all.end() ? Status() : *failed;
}

}  // namespace regatta::heal
