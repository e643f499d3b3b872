// fabric/internal/incremental_max_min.h: max-min fair rates of flows that come and go; a change
// recomputes only the flows that it affects.
//
// Rates are max-min fair exactly when each flow has a bottleneck: a full link on which no flow is
// faster (Bertsekas and Gallager, "Data Networks", 1992, section 6.5.2). So after a change the
// flows whose bottleneck it touched get new rates beside all others. A flow that loses its
// bottleneck by that joins them, until all flows have one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {

class IncrementalMaxMin {
 public:
  // Both must outlive it; `paths` may grow meanwhile. `notes_moves`: moved_links() is needed.
  IncrementalMaxMin(const Links& links, const Paths& paths, bool notes_moves = false);

  // Adds a flow over `path`, which has links. Returns its number, valid until it is removed. Its
  // rate is 0 until settle().
  std::uint32_t add(std::uint32_t path);
  void remove(std::uint32_t flow);
  // Moves the flow to another path; its rate is 0 until settle().
  void move(std::uint32_t flow, std::uint32_t path);
  // In bytes per second; >= 0.
  void set_capacity(std::uint32_t link, double capacity);

  // Applies all changes. Returns the flows whose rate changed, valid until the next call.
  std::span<const std::uint32_t> settle();

  // Links whose load may have changed in settle(); valid until the next change.
  std::span<const std::uint32_t> moved_links() const { return moved_; }
  double load(std::uint32_t link) const { return links_[link].load; }

  double rate(std::uint32_t flow) const { return flows_[flow].rate; }
  std::uint32_t path(std::uint32_t flow) const { return flows_[flow].path; }

 private:
  static constexpr std::uint32_t kNone = ~0U;
  struct Flow {
    double rate = 0;
    std::uint32_t path = kNone;        // none: its number is free
    std::uint32_t bottleneck = kNone;  // a link, once it has been settled
    std::uint32_t held_place = 0;      // among those that this one holds back
    std::uint32_t mark = 0;            // the last settle() that gave it a new rate
  };
  // A link and its flows.
  struct Link {
    double capacity = 0;
    double load = 0;
    std::vector<std::uint32_t> flows;
    std::vector<std::uint32_t> hops;  // which of its links this is to each of them
    std::vector<std::uint32_t> held;  // of them, those whose bottleneck it is
    std::uint32_t mark = 0;           // the last problem that it was part of
    std::uint32_t number = 0;         // there
    bool is_moved = false;
  };
  // A link in the problem in flight.
  struct Part {
    std::uint32_t link = 0;
    double beside = 0;  // taken by flows that keep their rates
    double load = 0;    // with the new rates
    double top = 0;     // the fastest of those with new rates
    double held = -1;   // the fastest of those that it holds back
    bool is_full = false;
  };

  void set_load(std::uint32_t link, double load);
  void set_bottleneck(std::uint32_t flow, std::uint32_t link);
  void enter(std::uint32_t flow);
  void leave(std::uint32_t flow);
  void find_affected();
  void affect(std::uint32_t flow);
  bool give_if_alone(std::uint32_t flow);
  void set_rate(std::uint32_t flow, double rate);
  void solve();
  void find_bottlenecks();
  bool grow();
  void affect_all_around();
  void commit();

  const Paths& paths_;
  std::vector<Flow> flows_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> free_;
  std::size_t most_hops_ = 0;
  std::vector<std::uint32_t> places_;   // per flow and hop: where it stands in the link's list
  std::vector<std::uint32_t> fresh_;    // flows that came or moved
  std::vector<std::uint32_t> touched_;  // links that flows left, or whose capacity is another
  std::vector<std::uint32_t> changed_;
  std::vector<std::uint32_t> moved_;
  const bool notes_moves_;
  bool is_settled_ = false;  // since the last change
  std::uint32_t mark_ = 0;
  std::uint32_t problem_ = 0;
  std::vector<std::uint32_t> affected_;
  std::vector<std::uint32_t> around_;       // flows on a link that is looked at
  std::vector<std::uint32_t> bottlenecks_;  // of them, as parts
  std::vector<Part> parts_;
  MaxMinProblem max_min_problem_;
  std::vector<double> rates_;
};

}  // namespace regatta::fabric
