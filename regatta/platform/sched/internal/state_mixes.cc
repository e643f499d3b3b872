#include "regatta/platform/sched/internal/state_mixes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

const Choices<mixing::MixMode>& mix_modes() {
  static const Choices<mixing::MixMode> choices = [] {
    Choices<mixing::MixMode> made;
    for (const mixing::MixMode mode : {mixing::MixMode::kShared, mixing::MixMode::kPreemptive,
                                       mixing::MixMode::kTimeSlice, mixing::MixMode::kTidal})
      made.emplace_back(name_of(mode), mode);
    return made;
  }();
  return choices;
}

}  // namespace

std::vector<DeviceMix> read_mixes(const YamlMap& root, const std::vector<ClusterNode>& nodes,
                                  const NodeIndex& index) {
  std::vector<DeviceMix> mixes;
  std::set<std::pair<int, int>> devices;
  for (const YamlMap& map : root.maps("mixes")) {
    map.allow({"node", "device", "mode"});
    DeviceMix mix;
    mix.device = map.integer("device", {0, kNodeDevicesMax - 1});
    mix.mode = map.choice("mode", mix_modes());
    const std::string name = map.text("node");
    const auto node = index.find(name);
    if (node == index.end()) {
      map.fail("node",
               fmt::format("no node is called '{}'; name one of nodes", printable(name, 64)));
      continue;
    }
    mix.node = node->second;
    if (const int count = at(nodes, mix.node).devices; mix.device >= count)
      map.fail("device", fmt::format("node {} has {}, numbered from 0; correct the number", name,
                                     pluralized(as_index(count), "device")));
    if (!devices.emplace(mix.node, mix.device).second)
      map.fail("device", fmt::format("device {} of node {} is listed twice; leave one out",
                                     mix.device, name));
    mixes.push_back(mix);
  }
  std::stable_sort(mixes.begin(), mixes.end(), [](const DeviceMix& a, const DeviceMix& b) {
    return std::pair{a.node, a.device} < std::pair{b.node, b.device};
  });
  return mixes;
}

void check_mixed_jobs(const YamlMap& root, const NodeIndex& index,
                      const std::vector<RunningJob>& running) {
  // By device with a job: one of its jobs that cannot be mixed, if there is one.
  std::map<std::pair<int, int>, const std::string*> unmixable;
  for (const RunningJob& job : running) {
    for (const ReplicaPlacement& replica : job.replicas) {
      for (int device = 0; device < kNodeDevicesMax; ++device) {
        if ((replica.devices >> static_cast<unsigned>(device) & 1U) == 0) continue;
        const std::string*& there = unmixable[{replica.node, device}];
        if (!at(job.request.roles, replica.role).is_mixable()) there = &job.request.name;
      }
    }
  }
  for (const YamlMap& map : root.maps("mixes")) {
    const std::string node = map.text("node");
    const int device = map.integer("device", {0, kNodeDevicesMax - 1});
    const auto there = unmixable.find({index.at(node), device});
    if (there == unmixable.end())
      map.fail("device", fmt::format("no job runs on device {} of node {}; leave the mix out, or "
                                     "list the device in replicas of its jobs",
                                     device, node));
    else if (there->second != nullptr)
      map.fail("device",
               fmt::format("job {} on device {} of node {} cannot be mixed; give its role duty and "
                           "device_memory, or leave the mix out",
                           *there->second, device, node));
  }
}

}  // namespace regatta::sched
