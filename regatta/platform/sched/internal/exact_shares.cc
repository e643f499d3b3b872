#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/gang_search.h"
#include "regatta/platform/sched/internal/node_fit.h"

namespace regatta::sched {
namespace {

using Counts = std::vector<int>;  // by role

// Counts so far; then, for each role, the replicas of the subgroups' domain that is being filled,
// less whole subgroups; then, for each role, whether the incomplete subgroup has its domain.
using FillState = std::vector<int>;

struct ReachedState {
  FillState state;
  int before = -1;  // index into the states one node before
  int choice = -1;  // index into the counts that the node can hold
};

class ExactShares {
 public:
  ExactShares(const GangTask& task, int device_type, DomainRef domain, int& states_left)
      : task_(task),
        device_type_(device_type),
        level_(domain.level),
        range_(at(task.free.domains().of(domain.level), domain.index)),
        states_left_(states_left),
        kept_(kept_by_position(task)),
        roles_(static_cast<int>(std::ssize(task.job.roles))) {}

  std::optional<GangShares> find() {
    if (!has_room()) return std::nullopt;
    layers_.assign(1, {{FillState(as_index(3 * roles_)), -1, -1}});
    for (int position = range_.begin; position < range_.end; ++position) {
      choices_.push_back(node_choices(position));
      if (states_left_ < 0 || !add_node(position)) return std::nullopt;
    }
    return trace_back();
  }

 private:
  bool has_subgroups(int role) const {
    const Role& request = at(task_.job.roles, role);
    return request.subgroup_replicas > 1 && request.subgroup_level < level_;
  }

  int kept_at(int role, int position) const {
    return at(kept_, role).empty() ? 0 : at(at(kept_, role), position);
  }

  // Room of each role alone, and from each position on: without it no state can be completed.
  bool has_room() {
    const int nodes = range_.end - range_.begin;
    room_.assign(as_index(roles_), Counts(as_index(nodes)));
    room_after_.assign(as_index(roles_), Counts(as_index(nodes) + 1));
    for (int role = 0; role < roles_; ++role) {
      for (int i = nodes; i-- > 0;) {
        const int position = range_.begin + i;
        at(at(room_, role), i) =
            room_on_node(task_, role, device_type_, at(task_.free.domains().order, position));
        at(at(room_after_, role), i) =
            at(at(room_after_, role), i + 1) + at(at(room_, role), i) + kept_at(role, position);
      }
      if (at(at(room_after_, role), 0) < at(task_.size, role)) return false;
    }
    return true;
  }

  bool is_equal_to_node_before(int position) const {
    const std::vector<int>& order = task_.free.domains().order;
    const ClusterNode& node = task_.free.node(at(order, position));
    const ClusterNode& before = task_.free.node(at(order, position - 1));
    return node.devices == before.devices && node.device_memory_mib == before.device_memory_mib &&
           node.device_type == before.device_type &&
           task_.free.free(at(order, position)) == task_.free.free(at(order, position - 1));
  }

  // The counts of replicas that the node can hold at the same time.
  std::vector<Counts> node_choices(int position) {
    if (position > range_.begin && is_equal_to_node_before(position)) return choices_.back();
    std::vector<Counts> choices;
    Counts counts(as_index(roles_));
    add_choices(position, 0, counts, choices);
    return choices;
  }

  void add_choices(int position, int role, Counts& counts, std::vector<Counts>& choices) {
    const int node = at(task_.free.domains().order, position);
    if (--states_left_ < 0) return;
    if (role == roles_) {
      choices.push_back(counts);
      return;
    }
    for (int count = 0; count <= at(at(room_, role), position - range_.begin); ++count) {
      at(counts, role) = count;
      if (count > 0 &&
          !fit_on_node(task_.free.node(node), task_.free.free(node), task_.job.roles, counts))
        break;
      add_choices(position, role + 1, counts, choices);
    }
    at(counts, role) = 0;
  }

  // The states after one more node, each once.
  bool add_node(int position) {
    const std::vector<ReachedState>& before = layers_.back();
    const std::vector<Counts>& choices = choices_.back();
    std::vector<ReachedState> after;
    std::set<FillState> known;
    for (int i = 0; i < std::ssize(before); ++i)
      for (int choice = 0; choice < std::ssize(choices); ++choice) {
        if (--states_left_ < 0) return false;
        FillState state = at(before, i).state;
        if (!advance(position, at(choices, choice), state)) continue;
        if (known.insert(state).second) after.push_back({std::move(state), i, choice});
      }
    layers_.push_back(std::move(after));
    return !layers_.back().empty();
  }

  bool advance(int position, const Counts& counts, FillState& state) const {
    for (int role = 0; role < roles_; ++role) {
      const int added = at(counts, role) + kept_at(role, position);
      int& sum = at(state, role);
      sum += added;
      if (sum > at(task_.size, role) ||
          sum + at(at(room_after_, role), position + 1 - range_.begin) < at(task_.size, role))
        return false;
      if (has_subgroups(role) && !advance_subgroup(position, role, added, state)) return false;
    }
    return true;
  }

  bool advance_subgroup(int position, int role, int added, FillState& state) const {
    const Role& request = at(task_.job.roles, role);
    const ClusterDomains& domains = task_.free.domains();
    int& begun = at(state, roles_ + role);
    int& has_remainder = at(state, 2 * roles_ + role);
    begun = (begun + added) % request.subgroup_replicas;
    const bool is_last =
        position + 1 == range_.end || domains.domain_at(request.subgroup_level, position) !=
                                          domains.domain_at(request.subgroup_level, position + 1);
    if (!is_last || begun == 0) return true;
    const int remainder = at(task_.size, role) % request.subgroup_replicas;
    if (begun != remainder || has_remainder != 0) return false;
    begun = 0;
    has_remainder = 1;
    return true;
  }

  GangShares trace_back() const {
    GangShares shares(as_index(roles_));
    int state = 0;  // any state after the last node is complete
    for (int position = range_.end; position-- > range_.begin;) {
      const ReachedState& reached = at(at(layers_, position + 1 - range_.begin), state);
      const Counts& counts = at(at(choices_, position - range_.begin), reached.choice);
      for (int role = 0; role < roles_; ++role)
        if (at(counts, role) > 0) at(shares, role).push_back({position, at(counts, role)});
      state = reached.before;
    }
    for (std::vector<NodeShare>& role : shares)
      std::reverse(role.begin(), role.end());
    return shares;
  }

  const GangTask& task_;
  int device_type_;
  TopologyLevel level_;
  NodeRange range_;
  int& states_left_;
  std::vector<std::vector<int>> kept_;
  int roles_;
  std::vector<Counts> room_;        // by role and node of the range
  std::vector<Counts> room_after_;  // with the node and what is kept there
  std::vector<std::vector<Counts>> choices_;
  std::vector<std::vector<ReachedState>> layers_;
};

}  // namespace

std::optional<GangShares> share_out_exactly(const GangTask& task, int device_type, DomainRef domain,
                                            int& states_left) {
  return ExactShares(task, device_type, domain, states_left).find();
}

}  // namespace regatta::sched
