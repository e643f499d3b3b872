// packing/placer.h: places pods one after another on the GPUs of a cluster. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/packing/gpu_node.h"
#include "regatta/platform/packing/placement_policy.h"

namespace regatta::packing {

// Holds a snapshot of the nodes and what each placement changed. Scores are kept per class of equal
// pods, and a placement makes only those of its own node stale. Not thread-safe.
class Placer {
 public:
  // `demand`: pods such as those expected to come; policies weigh the classes of equal pods by
  // their share. `seed` is for kRandom alone. Fails with kInvalidInput where the nodes have more
  // than kGpuModelsMax models, or a value of a node or pod is out of its range.
  static Result<Placer> create(std::vector<GpuNode> nodes, const std::vector<Pod>& demand,
                               const PlacementPolicy& policy, std::uint64_t seed);
  Placer(Placer&&) noexcept;
  Placer& operator=(Placer&&) noexcept;
  ~Placer();

  // The class of pods equal to `pod`, for place(). Pods of one class are interchangeable.
  int pod_class(const Pod& pod);

  // Takes the resources for a pod of the class, or gives nothing where it fits on no node.
  std::optional<PodPlacement> place(int pod_class);

  // Gives back what place() took.
  void release(int pod_class, const PodPlacement& placement);

  // As if it had been created with other free amounts of some nodes: `changed` gives their indices
  // and what they have now; their GPUs and models stay. Fails as create() does. Time: of the nodes
  // that changed, and of the prices of pools.
  struct NodeChange {
    int node = 0;
    GpuNode now;
  };
  Status reset(const std::vector<NodeChange>& changed);

  // The nodes as they are now.
  const std::vector<GpuNode>& nodes() const;

 private:
  struct State;
  explicit Placer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace regatta::packing
