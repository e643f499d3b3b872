// diag/internal/fault_likelihood.h: how well faults explain what was lost: the likeliest loss rate
// and onset of one beside others, and the likelihood of them all together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "regatta/network/diag/internal/candidates.h"
#include "regatta/network/diag/internal/explain.h"

namespace regatta::diag {

inline constexpr double kBlackHoleLoss = 0.9;  // loss rate from which it is a black hole

struct FaultMember {
  std::size_t candidate = 0;
  double rate = 0;        // of loss, likeliest given the rest of the set
  std::size_t onset = 0;  // the window since which it is broken
  std::size_t early = 0;  // and from which on something may be lost on it that was sent before
  double gain = 0;        // of the logarithm of the likelihood when it joined, prior included
};

// The share of packets that a set lets through on each lossy path, span by span of windows.
struct DeliveryShares {
  struct Span {
    std::size_t from = 0;  // a window; until that of the next one
    double share = 1;
  };
  std::vector<std::uint32_t> first;  // by lossy path, and the end
  std::vector<Span> spans;

  // In the end.
  double last(std::uint32_t lossy) const { return spans[first[lossy + 1] - 1].share; }
};

// Packets that arrived over `one` after the window of its onset; arrivals in that window before the
// break cannot be told from the rest.
double arrived_since(const FaultCandidate& one, std::size_t onset);

// All arguments must outlive it.
class FaultLikelihood {
 public:
  FaultLikelihood(const FaultCandidates& made, std::span<const PathCounts> paths,
                  const ExplainOptions& options);

  // Shares that the members let through.
  DeliveryShares passing_of(const std::vector<FaultMember>& members) const;
  // The likeliest rate and onset of a candidate beside others.
  FaultMember weigh(std::size_t candidate, const DeliveryShares& passing) const;
  // The logarithm of the likelihood of the members against none, priors included.
  double score(const std::vector<FaultMember>& members) const;

 private:
  template <typename Visit>
  void visit_losses(std::uint32_t at, std::size_t first, std::size_t last,
                    const DeliveryShares& passing, Visit&& visit) const;
  void weigh_from(std::size_t onset, const DeliveryShares& passing, FaultMember& best) const;

  const FaultCandidates& made_;
  const ExplainOptions& options_;
  std::size_t windows_;
  std::vector<std::vector<double>> lost_from_;  // by lossy path: in each window and all later ones
  std::vector<double> background_;              // the same: share that is lost without a fault
};

}  // namespace regatta::diag
