// heal/internal/path_losses.h: what probes lose on each link by now, as one client reports it again
// and again. Pure: time is an argument.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/heal/internal/decide.h"
#include "regatta/network/heal/internal/flap_damper.h"

namespace regatta::heal {

// A client reports losses so often, and those of this time where its report does not say which.
inline constexpr Seconds kLossesEvery{0.03};
inline constexpr Seconds kLossSpan{0.09};

// The directed links that packets meet the fault on, and for kHop all from there to the leaf.
std::vector<std::uint32_t> links_of(const FabricPaths& paths, const Fault& fault);

class PathLosses {
 public:
  // `paths` must outlive this.
  explicit PathLosses(const FabricPaths& paths);

  // All links that lose something or are blind; others lose nothing. `span`: the time that
  // LinkLoss::now covers.
  void set(std::span<const diag::LinkLoss> lossy, Seconds now, Seconds span = kLossSpan);

  // Whether any link in use loses something.
  bool is_lossy() const { return is_lossy_; }
  // Share that a link in use loses, 0 to 1: just now or, where fewer than seven losses are missing,
  // in the last half second. A rare loss is not in every report.
  double in_use(std::uint32_t link) const { return links_[link].in_use; }
  // Share that it may lose if it is used: 1 while nobody knows.
  double if_used(std::uint32_t link) const { return links_[link].left; }
  // The same of the worst link that packets meet the fault on.
  double if_used(const Fault& fault) const;

  // Whether probes have lost packets where the fault is, since then.
  bool has_lost_since(const Fault& fault, Seconds since) const;

  // Whether probes cross all links of the fault, and no loss has counted for any of them since
  // then. False where nobody reports any longer.
  bool is_unblamed(const Fault& fault, Seconds since, Seconds now) const;

  // Whether probes have crossed the fault without a loss for at least `least`, and for so long that
  // seven losses are missing, at the rate at which it lost packets in the 10 s before `since` or
  // later. False where they did not see it lose any, or no longer report.
  bool is_proven_clean(const Fault& fault, Seconds since, Seconds least, Seconds now) const;

 private:
  struct LinkState {
    double in_use = 0;
    double left = 0;
    Seconds first_lossy{-1e9};  // of the losses of late
    Seconds last_lossy{-1e9};
    double lossy_s = 0;  // time for which reports said so
    double most = 0;     // share lost of late
  };
  void count_loss(LinkState& link, double share, Seconds now);
  // Between two losses of late.
  Seconds mean_gap(const LinkState& link) const;

  const FabricPaths& paths_;
  std::vector<LinkState> links_;       // per directed link
  std::vector<std::uint32_t> listed_;  // in the last report
  Seconds reported_{-1e9};
  Seconds span_ = kLossSpan;
  bool is_lossy_ = false;
};

}  // namespace regatta::heal
