#include "regatta/platform/packing/placer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/platform/packing/internal/placement_cost.h"
#include "regatta/platform/packing/internal/pool_prices.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::packing {
namespace {

constexpr int kFirstSteps = 200;          // of the prices of pools, until they are still
constexpr int kChangesPerStep = 32;       // placements and releases after which they are adapted
constexpr std::size_t kChangesKept = 64;  // times the nodes
constexpr double kPriceRate = 0.02;       // in GPUs, the most that a price changes at once

// Costs of one class of pods on every node, as of some change.
struct CostRow {
  std::vector<float> cost;
  std::vector<std::uint32_t> gpus;
  std::size_t changes = 0;  // how many entries of State::changed it has seen
};

Status check_node(const GpuNode& node) {
  const bool is_valid =
      node.cpu_milli >= 0 && node.memory_mib >= 0 && node.gpus >= 0 && node.gpus <= kNodeGpusMax &&
      std::all_of(node.gpu_free_milli.begin(), node.gpu_free_milli.begin() + node.gpus,
                  [](int free) { return free >= 0 && free <= kGpuMilli; });
  if (is_valid) return {};
  return Error{Code::kInvalidInput,
               fmt::format("node {}: a free amount is negative or larger than a node has; give CPU "
                           "and memory of at least 0 and up to {} GPUs with 0 to {} each",
                           printable(node.name, 40), kNodeGpusMax, kGpuMilli)};
}

}  // namespace

struct Placer::State {
  PlacementPolicy policy;
  std::vector<GpuNode> nodes;
  std::vector<NodeState> states;
  std::vector<std::string> models;
  std::vector<PodClass> classes;
  std::map<PodClass, int> class_ids;
  std::vector<CostRow> rows;
  std::vector<int> changed;       // nodes in the order of their changes
  std::vector<std::size_t> seen;  // by node: a mark of the last refresh that visited it
  std::size_t refreshes = 0;
  DemandSummary demand;
  std::vector<NodePool> pools;
  std::vector<std::uint16_t> pool_of;  // by node
  PoolPrices first_prices;             // before any step
  PoolPrices prices;
  std::vector<float> pool_cost;  // of the class that is placed
  int since_step = 0;
  std::uint64_t seed = 0;
  RandomSequence random{0};

  PodClass class_of(const Pod& pod) const {
    PodClass made{pod.cpu_milli, pod.memory_mib, pod.gpus, pod.gpus == 0 ? 0 : pod.gpu_milli, ~0U};
    if (pod.gpu_models.empty() || pod.gpus == 0) return made;
    made.models = 0;
    for (std::size_t i = 0; i < models.size(); ++i)
      if (std::find(pod.gpu_models.begin(), pod.gpu_models.end(), models[i]) !=
          pod.gpu_models.end())
        made.models |= 1U << i;
    return made;
  }

  void refresh(const PodClass& pod, CostRow& row, int node) const {
    const auto at = static_cast<std::size_t>(node);
    const PlacementCost cost = placement_cost(pod, states[at], demand, policy);
    row.cost[at] = static_cast<float>(cost.cost);
    row.gpus[at] = cost.gpus;
  }

  // Bounds the memory of changes; rows are made again when they are needed.
  void forget_rows() {
    changed.clear();
    for (CostRow& row : rows)
      row = {};
  }

  // The row of a class with all changes in it.
  const CostRow& current_row(int pod_class) {
    CostRow& row = rows[static_cast<std::size_t>(pod_class)];
    const PodClass& pod = classes[static_cast<std::size_t>(pod_class)];
    if (row.cost.empty() && !states.empty()) {
      row.cost.resize(states.size());
      row.gpus.resize(states.size());
      row.changes = changed.size();
      for (int node = 0; node < static_cast<int>(states.size()); ++node)
        refresh(pod, row, node);
    }
    ++refreshes;
    for (; row.changes < changed.size(); ++row.changes) {
      const int node = changed[row.changes];
      if (std::exchange(seen[static_cast<std::size_t>(node)], refreshes) != refreshes)
        refresh(pod, row, node);
    }
    return row;
  }

  std::optional<PodPlacement> cheapest(int pod_class) {
    const CostRow& row = current_row(pod_class);
    float least = std::numeric_limits<float>::infinity();
    std::size_t at = 0;
    const PodClass& pod = classes[static_cast<std::size_t>(pod_class)];
    for (std::size_t i = 0; i < pools.size(); ++i)
      pool_cost[i] = static_cast<float>(policy.weights.pool_price * prices.cost(pod, i));
    for (std::size_t node = 0; node < row.cost.size(); ++node) {
      const float cost = row.cost[node] + pool_cost[pool_of[node]];
      if (cost < least) {
        least = cost;
        at = node;
      }
    }
    if (least == std::numeric_limits<float>::infinity()) return std::nullopt;
    return PodPlacement{static_cast<int>(at), row.gpus[at]};
  }

  std::optional<PodPlacement> any(int pod_class) {
    const PodClass& pod = classes[static_cast<std::size_t>(pod_class)];
    std::vector<int> fitting;
    for (std::size_t node = 0; node < states.size(); ++node)
      if (fits(pod, states[node])) fitting.push_back(static_cast<int>(node));
    if (fitting.empty()) return std::nullopt;
    PodPlacement chosen{fitting[random.below(fitting.size())], 0};
    const NodeState& node = states[static_cast<std::size_t>(chosen.node)];
    std::vector<int> gpus;
    for (int gpu = 0; gpu < node.gpus; ++gpu)
      if (node.gpu_free[static_cast<std::size_t>(gpu)] >= pod.gpu_milli) gpus.push_back(gpu);
    for (int taken = 0; taken < pod.gpus; ++taken) {
      const std::size_t i = random.below(gpus.size());
      chosen.gpus |= 1U << gpus[i];
      gpus.erase(gpus.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return chosen;
  }

  void apply(int pod_class, const PodPlacement& placement, int sign) {
    const auto at = static_cast<std::size_t>(placement.node);
    NodeState& state = states[at];
    const PodClass& pod = classes[static_cast<std::size_t>(pod_class)];
    NodePool& pool = pools[pool_of[at]];
    pool.gpu_free_milli += sign * pod.gpus * pod.gpu_milli;
    pool.cpu_free_milli += sign * pod.cpu_milli;
    if (policy.weights.pool_price > 0 && ++since_step >= kChangesPerStep) {
      since_step = 0;
      prices.step(pools, kPriceRate);
    }
    change(state, classes[static_cast<std::size_t>(pod_class)], placement.gpus, sign);
    nodes[at].cpu_milli = state.cpu_milli;
    nodes[at].memory_mib = state.memory_mib;
    nodes[at].gpu_free_milli = state.gpu_free;
    changed.push_back(placement.node);
    if (changed.size() > kChangesKept * nodes.size()) forget_rows();
  }

  Status add_nodes(std::vector<GpuNode> given);
  void summarize(const std::vector<Pod>& pods);
  void count_pools();
  void find_prices();
};

// Sums what the nodes of each pool have free.
void Placer::State::count_pools() {
  for (NodePool& pool : pools)
    pool.gpu_free_milli = pool.cpu_free_milli = 0;
  for (std::size_t node = 0; node < states.size(); ++node) {
    NodePool& pool = pools[pool_of[node]];
    for (int gpu = 0; gpu < states[node].gpus; ++gpu)
      pool.gpu_free_milli += states[node].gpu_free[static_cast<std::size_t>(gpu)];
    pool.cpu_free_milli += states[node].cpu_milli;
  }
}

void Placer::State::find_prices() {
  prices = first_prices;
  since_step = 0;
  if (policy.weights.pool_price > 0)
    for (int i = 0; i < kFirstSteps; ++i)
      prices.step(pools, 0.2 / (1 + 0.1 * i));
}

Status Placer::State::add_nodes(std::vector<GpuNode> given) {
  nodes = std::move(given);
  for (const GpuNode& node : nodes) {
    REGATTA_TRY_DO(check_node(node));
    auto model = std::find(models.begin(), models.end(), node.gpu_model);
    if (model == models.end()) model = models.insert(models.end(), node.gpu_model);
    states.push_back({node.cpu_milli, node.memory_mib, static_cast<int>(model - models.begin()),
                      node.gpus, node.gpu_free_milli});
  }
  for (const NodeState& state : states) {
    auto pool = std::find_if(pools.begin(), pools.end(), [&state](const NodePool& p) {
      return p.model == state.model && p.gpus == state.gpus;
    });
    if (pool == pools.end()) pool = pools.insert(pools.end(), {state.model, state.gpus});
    pool_of.push_back(static_cast<std::uint16_t>(pool - pools.begin()));
  }
  count_pools();
  pool_cost.resize(pools.size());
  seen.resize(nodes.size());
  if (models.size() <= static_cast<std::size_t>(kGpuModelsMax)) return {};
  return Error{
      Code::kInvalidInput,
      fmt::format("the nodes have {} GPU models, {} is the most; give one name to models that "
                  "pods do not tell apart",
                  models.size(), kGpuModelsMax)};
}

void Placer::State::summarize(const std::vector<Pod>& pods) {
  std::vector<PodClass> given;
  double cpu = 0;
  double gpu = 0;
  for (const Pod& pod : pods) {
    given.push_back(class_of(pod));
    cpu += pod.cpu_milli;
    gpu += pod.gpu_request_milli();
  }
  demand.cpu_per_gpu = gpu > 0 && cpu > 0 ? cpu / gpu : 1;
  const int count = std::max<int>(1, static_cast<int>(models.size()));
  first_prices = PoolPrices(typical_pods(given, 1), pools.size());
  find_prices();
  demand.tables =
      DemandTables(typical_pods(given, policy.typical_share), count, policy.arrivals_ahead);
}

Placer::Placer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Placer::Placer(Placer&&) noexcept = default;
Placer& Placer::operator=(Placer&&) noexcept = default;
Placer::~Placer() = default;

Result<Placer> Placer::create(std::vector<GpuNode> nodes, const std::vector<Pod>& demand,
                              const PlacementPolicy& policy, std::uint64_t seed) {
  auto state = std::make_unique<State>();
  state->policy = policy;
  state->seed = seed;
  state->random = RandomSequence(seed);
  REGATTA_TRY_DO(state->add_nodes(std::move(nodes)));
  for (const Pod& pod : demand) {
    if (pod.cpu_milli >= 0 && pod.memory_mib >= 0 && pod.gpus >= 0 &&
        (pod.gpus == 0 || (pod.gpu_milli > 0 && pod.gpu_milli <= kGpuMilli)))
      continue;
    return Error{
        Code::kInvalidInput,
        fmt::format("a pod requests {} CPU, {} MiB, {} GPUs of {}; give amounts of at least 0 "
                    "and 1 to {} of each GPU",
                    pod.cpu_milli, pod.memory_mib, pod.gpus, pod.gpu_milli, kGpuMilli)};
  }
  state->summarize(demand);
  return Placer(std::move(state));
}

int Placer::pod_class(const Pod& pod) {
  const PodClass made = state_->class_of(pod);
  const auto [entry, is_new] =
      state_->class_ids.try_emplace(made, static_cast<int>(state_->classes.size()));
  if (is_new) {
    state_->classes.push_back(made);
    state_->rows.emplace_back();
  }
  return entry->second;
}

std::optional<PodPlacement> Placer::place(int pod_class) {
  const auto placement = state_->policy.rule == PlacementRule::kRandom
                             ? state_->any(pod_class)
                             : state_->cheapest(pod_class);
  if (placement) state_->apply(pod_class, *placement, -1);
  return placement;
}

void Placer::release(int pod_class, const PodPlacement& placement) {
  state_->apply(pod_class, placement, 1);
}

Status Placer::reset(const std::vector<NodeChange>& changed) {
  for (const NodeChange& change : changed) {
    REGATTA_TRY_DO(check_node(change.now));
    const auto at = static_cast<std::size_t>(change.node);
    GpuNode& node = state_->nodes[at];
    NodeState& now = state_->states[at];
    node.cpu_milli = now.cpu_milli = change.now.cpu_milli;
    node.memory_mib = now.memory_mib = change.now.memory_mib;
    node.gpu_free_milli = now.gpu_free = change.now.gpu_free_milli;
    state_->changed.push_back(change.node);
  }
  if (state_->changed.size() > kChangesKept * state_->nodes.size()) state_->forget_rows();
  state_->count_pools();
  state_->find_prices();
  state_->random = RandomSequence(state_->seed);
  return {};
}

const std::vector<GpuNode>& Placer::nodes() const {
  return state_->nodes;
}

}  // namespace regatta::packing
