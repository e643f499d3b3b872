// os/carrier_watch.h: tells when a network interface of the calling thread's network namespace
// loses or gains its carrier.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::os {

struct CarrierEvent {
  std::string interface;  // "nic0"
  bool up = false;        // the interface is on and its cable has a live peer
};

// Not thread safe: one thread waits. The loopback interface is left out.
class CarrierWatch {
 public:
  // Subscribes in the network namespace that the calling thread is in.
  static Result<CarrierWatch> open();
  ~CarrierWatch();
  CarrierWatch(CarrierWatch&&) noexcept;
  CarrierWatch& operator=(CarrierWatch&&) noexcept;

  // Interfaces as they are now, by name.
  std::vector<CarrierEvent> state() const;

  // The next change of an interface, or nothing after `limit`. An interface that is removed counts
  // as down.
  Result<std::optional<CarrierEvent>> next(Seconds limit);

  // Readable when next() has something to look at: for callers with a poll loop of their own.
  int fd() const;

 private:
  struct Impl;
  explicit CarrierWatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::os
