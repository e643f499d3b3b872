// sched/internal/water_filling.h: pours shares of a cluster into the leaves of a tree of queues: a
// fluid that flows at piecewise constant rates, from event to event.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "regatta/platform/sched/quota_tree.h"

namespace regatta::sched {

// Shares of the capacity, by resource.
using ResourceShares = std::array<double, kResources>;

// Cost of a round: O(queues * (levels + log queues)), where each queue reaches as many limits as
// there are resources, and another resource of it becomes dominant as often.
//
// Each queue has a clock: how far its share has risen in this round. The clocks of siblings run at
// the speeds of their weights, so that what happens next in a child is known in its parent's time
// until its own flow changes. Only the queues on the way from an event to the top are touched.
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
  double part(int leaf) const { return states_[static_cast<std::size_t>(leaf) + 1].part; }

 private:
  enum class Event { kNone, kChild, kCap, kDominance };

  struct QueueState {
    ResourceShares poured{};  // in all rounds
    ResourceShares excess{};  // in this round
    ResourceShares cap{};     // of `poured`, in this round
    ResourceShares scale{};   // excess times this is the share that is levelled
    ResourceShares flow{};    // for each unit of the own clock
    ResourceShares pour{};    // for each unit of the children's level
    double weight = 1;        // units of the own clock for each unit of the parent's level
    double part = 0;          // of a leaf's demand
    double clock = 0;         // when this state was brought up to date
    double clock_base = 0;    // at the parent's level_base
    double level_base = 0;
    double level = 0;   // of the children
    double factor = 1;  // units of the children's level for each unit of the clock
    double next = 0;    // time of the next event on the own clock
    Event event = Event::kNone;
    int event_resource = 0;
    int alone = -1;  // the child that takes all
    bool is_open = false;
    bool is_passing = false;  // above the queues that are filled: it only counts
    bool is_level = false;    // its share does not rise while its flow does
    std::array<bool, kResources> is_capped{};
  };

  // A binary tree over the children of a queue; the first entry is the root.
  struct ChildFlows {
    ResourceShares rate{};  // of all, for each unit of the level
    double next = 0;        // level at which the first event of a child is due
    int next_slot = 0;
    int level_slot = 0;  // the first child that is level
  };

  // Queues here count from 1; 0 is above the top.
  QueueState& state(int queue) { return states_[static_cast<std::size_t>(queue)]; }
  const QueueState& state(int queue) const { return states_[static_cast<std::size_t>(queue)]; }
  bool is_leaf(int queue) const { return queue > 0 && tree_->is_leaf(queue - 1); }
  int child(int queue, int slot) const;
  ChildFlows& flows(int queue, int node);
  int subtree_end(int queue) const;

  void start_round();
  void run();
  void close_caps_at_start();
  void start_leaf(int leaf);
  void settle(int queue);
  void settle_child(int queue, int slot);
  void catch_up(int queue);
  void close_leaf(int leaf);
  void close_demanding(int queue, std::size_t resource);
  void update(int queue);
  void find_next_event(int queue);
  void report(int queue);

  const QuotaTree* tree_;
  std::vector<ResourceShares> demand_;
  std::vector<ResourceShares> limit_;
  std::vector<double> dominant_;  // of a leaf's demand
  std::vector<QueueState> states_;
  std::vector<int> slot_;          // of a queue among its parent's children
  std::vector<int> flows_begin_;   // of a queue in flows_
  std::vector<ChildFlows> flows_;  // of all queues
};

}  // namespace regatta::sched
