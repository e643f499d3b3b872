// diag/internal/fault_sets.h: sets of faults that explain what was lost, likeliest first.
//
// A beam search: the best few sets grow by the candidates that raise the likelihood most, and each
// of their members is replaced by others, a switch also by several cables. So a set that looks
// worse while it is small is not lost, and what speaks against a culprit are whole other sets, not
// only another one in its place.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "regatta/network/diag/internal/candidates.h"
#include "regatta/network/diag/internal/explain.h"
#include "regatta/network/diag/internal/fault_likelihood.h"

namespace regatta::diag {

struct FaultSet {
  std::vector<FaultMember> members;  // ascending
  double score = 0;                  // FaultLikelihood::score() of them
};

// All arguments must outlive it.
class FaultSetSearch {
 public:
  FaultSetSearch(const FaultCandidates& made, std::span<const PathCounts> paths,
                 const ExplainOptions& options);

  // At least the empty one. Cost: some hundred times the paths with losses times the candidates.
  std::vector<FaultSet> run() const;

  // Shares that the other members let through.
  DeliveryShares passing_without(const FaultSet& set, std::size_t place) const;

 private:
  struct Growth;

  bool has_as_it_was(const FaultSet& set, const Culprit& culprit) const;
  bool fits(const FaultSet& set, std::size_t candidate) const;
  void settle(FaultSet& set) const;
  FaultSet known_set() const;
  void grow(const FaultSet& set, Growth& growth) const;
  void swap_members(const FaultSet& set, Growth& growth) const;
  void split_switches(const FaultSet& set, Growth& growth) const;

  const FaultCandidates& made_;
  const ExplainOptions& options_;
  const FaultLikelihood likelihood_;
};

}  // namespace regatta::diag
