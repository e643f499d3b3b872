// sched/internal/water_filling.h: pours shares of a cluster into the leaves of a tree of queues: a
// fluid that flows at piecewise constant rates, from event to event.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "regatta/platform/sched/quota_tree.h"

namespace regatta::sched {

// Shares of the capacity, by resource.
using ResourceShares = std::array<double, kResources>;

class WaterFilling {
 public:
  // `demand` and `limit` by queue; only leaves demand. A limit may be infinite.
  WaterFilling(const QuotaTree& tree, std::vector<ResourceShares> demand,
               std::vector<ResourceShares> limit);

  // Pours into all queues of `height` at once, each up to `bound`, at the same part of it.
  // `bound` by queue; 0: this resource is not bounded. Only leaves that demand a bounded resource
  // get something.
  void fill_up_to(const std::vector<ResourceShares>& bound, int height);
  // Pours into the whole tree until no leaf can take more.
  void fill();

  // The part of its demand that a leaf got.
  double part(int leaf) const { return states_[static_cast<std::size_t>(leaf)].part; }

 private:
  struct QueueState {
    ResourceShares poured{};  // in all rounds
    ResourceShares excess{};  // in this round
    ResourceShares cap{};     // of `poured`, in this round
    ResourceShares scale{};   // excess times this is the share that is levelled
    ResourceShares rate{};    // of `poured`
    double weight = 1;
    double speed = 0;  // factor of `rate` for each unit of the parent's flow
    double part = 0;   // of a leaf's demand
    double part_rate = 0;
    bool is_open = false;
    bool is_in_round = false;
    std::array<bool, kResources> is_capped{};
    bool is_level = false;  // its share does not rise while its rate flows
  };

  QueueState& state(int queue) { return states_[static_cast<std::size_t>(queue)]; }
  void start_round();
  void run(const std::vector<int>& roots);
  void close_full_leaves();
  void close_at_caps(QueueState& full, int begin, int end);
  bool open_parents();
  void combine(QueueState& parent, std::span<const int> children);
  void set_rates(const std::vector<int>& roots);
  double time_to_event() const;
  void advance(double time);

  const QuotaTree* tree_;
  std::vector<ResourceShares> demand_;
  std::vector<ResourceShares> limit_;
  std::vector<double> dominant_;  // of a leaf's demand
  std::vector<QueueState> states_;
  QueueState top_;
};

}  // namespace regatta::sched
