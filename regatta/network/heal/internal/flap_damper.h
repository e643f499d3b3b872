// heal/internal/flap_damper.h: the current faults, from sightings over time, and when their places
// may be used again: after a clean period that doubles with every relapse, and sooner where
// something proves the repair of what broke for the first time. Pure: time is an argument.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/heal/internal/decide.h"

namespace regatta::heal {

struct Damping {
  Seconds clean{5.0};  // without a sighting before what broke for the first time is used again
  Seconds clean_max{600.0};  // doubled for each relapse up to this
  Seconds forget{300.0};     // of good behaviour take one relapse back

  // The clean period of what broke for the first time, once something proves that it works: its
  // carrier has come back, or probes have crossed it. While a link is held that works, a fault of
  // another link hits more traffic than without healing; that may last for 0.2 s.
  Seconds proven() const { return clean * 0.02; }
};

// One fault that is held against its place.
struct HeldFault {
  Fault fault;
  std::string why;
  Seconds since;       // the first sighting
  Seconds last_bad;    // the last one
  bool lasts = false;  // bad until good() is said
  Seconds clean;       // how long it has to be clean now
  bool is_relapse = false;
  bool is_probed = false;  // probes meet it, so they can prove its repair
  bool was_lossy = false;  // probes lost packets there, as an earlier healer knew

  friend bool operator==(const HeldFault&, const HeldFault&) = default;
};

// How often a place broke again.
struct RelapseRecord {
  Fault fault;
  int relapses = 0;
  Seconds released;
  bool is_interrupted = false;  // by an early release

  friend bool operator==(const RelapseRecord&, const RelapseRecord&) = default;
};

// All that a damper knows.
struct DamperState {
  std::vector<HeldFault> held;         // oldest first
  std::vector<RelapseRecord> records;  // of places that were released within `forget` x relapses

  friend bool operator==(const DamperState&, const DamperState&) = default;
};

class FlapDamper {
 public:
  explicit FlapDamper(const Damping& damping) : damping_(damping) {}

  // A sighting. `lasts`: until good() is called for this place; otherwise the clean period starts
  // again. True when it is new: the place was not held, or less harm was known of it.
  bool bad(const Fault& fault, const std::string& why, Seconds now, bool lasts);
  // Probes meet the fault that is held there.
  void mark_probed(const Fault& fault);
  // A lasting fault is over: its clean period begins. Does nothing when that place is not held.
  void good(const Fault& fault, Seconds now);
  // Faults whose clean period is over, and which are no longer held.
  std::vector<HeldFault> release(Seconds now);
  // Holds a fault no longer that is proven to work; a sighting afterwards is a relapse.
  void release_proven(const Fault& fault, Seconds now);
  // The same of a fault that may still be there; a sighting afterwards is no relapse.
  void release_early(const Fault& fault, Seconds now);

  // Goes on with what another damper of this machine knew. Nobody saw since when its faults were
  // clean: their clean periods begin anew.
  void restore(const DamperState& before, Seconds now);
  DamperState state() const { return {held_, records_}; }

  const Damping& damping() const { return damping_; }
  // Oldest first.
  const std::vector<HeldFault>& held() const { return held_; }
  std::vector<Fault> faults() const;
  // When release() has something to do; none while all is well or everything lasts.
  std::optional<Seconds> next() const;

 private:
  RelapseRecord& seen(const Fault& fault, Seconds now);
  Seconds clean_period(const RelapseRecord& record) const;
  void end(const Fault& fault, Seconds now, bool is_interrupted);
  HeldFault* find(const Fault& fault);

  Damping damping_;
  std::vector<HeldFault> held_;
  std::vector<RelapseRecord> records_;
};

}  // namespace regatta::heal
