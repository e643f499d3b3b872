#include "regatta/platform/monitoring/device_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"

namespace regatta::monitoring {
namespace {

using node_protocol::kUnknownPercent;

// Unchanged places between two runs that are sent rather than begin another run.
constexpr std::uint32_t kGapMost = 4;

std::uint8_t state_of(const control::ManagedNode& node) {
  unsigned state = 0;
  if (node.intent == control::NodeIntent::kCordoned) state |= kDeviceCordoned;
  if (node.intent == control::NodeIntent::kDraining) state |= kDeviceDraining;
  if (node.is_silent || node.is_fenced || !node.is_connected) state |= kDeviceSilent;
  return static_cast<std::uint8_t>(state);
}

PlaceRuns runs_after(const std::vector<std::uint32_t>& stamps, std::uint32_t sequence) {
  PlaceRuns runs;
  for (std::uint32_t place = 0; place < stamps.size(); ++place) {
    if (stamps[place] <= sequence) continue;
    if (!runs.empty() && place <= runs[runs.size() - 2] + runs.back() + kGapMost) {
      runs.back() = place + 1 - runs[runs.size() - 2];
    } else {
      runs.push_back(place);
      runs.push_back(1);
    }
  }
  return runs;
}

// The values of all devices at their new places.
template <typename T>
void move_values(const std::vector<NodePlaces>& from, const std::vector<NodePlaces>& to,
                 std::size_t count, T empty, std::vector<T>& values) {
  std::vector<T> moved(count, empty);
  for (std::size_t node = 0; node < from.size(); ++node)
    for (std::uint32_t i = 0; i < std::min(from[node].count, to[node].count); ++i)
      if (from[node].first + i < values.size())
        moved[to[node].first + i] = values[from[node].first + i];
  values = std::move(moved);
}

std::uint8_t mean(unsigned sum, unsigned count) {
  return count == 0 ? kUnknownPercent : static_cast<std::uint8_t>((sum + count / 2) / count);
}

}  // namespace

void DeviceTable::update_layout(const control::ClusterTables& tables) {
  bool is_same = nodes_.size() == tables.nodes.size();
  for (std::size_t i = 0; is_same && i < nodes_.size(); ++i)
    is_same = nodes_[i].count == tables.nodes[i].facts.devices;
  if (is_same) return;
  std::vector<NodePlaces> places(tables.nodes.size());
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i < nodes_.size()) places[i] = nodes_[i];
    places[i].first = count;
    places[i].count = static_cast<std::uint8_t>(tables.nodes[i].facts.devices);
    count += places[i].count;
  }
  move_places(places, count);
  ++layout_;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    update_node(tables, static_cast<int>(i));
}

void DeviceTable::move_places(const std::vector<NodePlaces>& to, std::size_t count) {
  for (auto* values : {&use_, &memory_})
    move_values(nodes_, to, count, kUnknownPercent, *values);
  move_values(nodes_, to, count, std::uint8_t{0}, state_);
  move_values(nodes_, to, count, control::JobId{0}, jobs_);
  move_values(nodes_, to, count, Sums(), sums_);
  for (auto* stamps : {&use_stamps_, &state_stamps_})
    move_values(nodes_, to, count, std::uint32_t{0}, *stamps);
  for (Step& step : steps_)
    for (auto* values : {&step.use, &step.memory})
      move_values(nodes_, to, count, kUnknownPercent, *values);
  nodes_ = to;
  shared_.resize(nodes_.size());
}

void DeviceTable::take(int node, const node_protocol::DeviceReadings& readings) {
  NodePlaces& places = at(nodes_, node);
  places.source = readings.source;
  std::size_t next = 0;
  for (std::uint32_t device = 0; device < 32; ++device) {
    if ((readings.devices >> device & 1) == 0) continue;
    const std::size_t index = next++;
    if (device >= places.count || index >= readings.use.size()) continue;
    const std::size_t place = places.first + device;
    if (use_[place] == readings.use[index] && memory_[place] == readings.memory[index]) continue;
    use_[place] = readings.use[index];
    memory_[place] = readings.memory[index];
    use_stamps_[place] = sequence_;
    touch();
  }
  if (readings.has_shared) at(shared_, node) = readings.shared;
}

void DeviceTable::forget(int node) {
  if (node >= static_cast<int>(nodes_.size())) return;
  const NodePlaces places = at(nodes_, node);
  node_protocol::DeviceReadings none;
  none.devices =
      static_cast<std::uint32_t>((std::uint64_t{1} << static_cast<unsigned>(places.count)) - 1);
  none.use.assign(places.count, kUnknownPercent);
  none.memory.assign(places.count, kUnknownPercent);
  none.has_shared = true;
  take(node, none);
}

void DeviceTable::update_node(const control::ClusterTables& tables, int index) {
  if (index >= static_cast<int>(nodes_.size())) return;
  const control::ManagedNode& node = at(tables.nodes, index);
  const NodePlaces places = at(nodes_, index);
  const std::uint8_t base = state_of(node);
  control::JobId jobs[sched::kNodeDevicesMax] = {};
  for (const control::PlacedReplica& placed : node.replicas) {
    const control::ManagedJob* job = tables.find_job(placed.job);
    if (job == nullptr || job->attempt == nullptr) continue;
    const control::Replica& replica = at(job->attempt->replicas, placed.replica);
    // A replica that waits has no device yet: another one stops there.
    if (replica.phase == control::ReplicaPhase::kWaiting || replica.is_gone()) continue;
    for (int device = 0; device < places.count; ++device)
      if ((replica.devices >> static_cast<unsigned>(device) & 1) != 0) jobs[device] = placed.job;
  }
  for (unsigned device = 0; device < places.count; ++device) {
    unsigned state = base;
    if (jobs[device] != 0) state |= kDeviceHasJob;
    if ((node.facts.failed_devices >> device & 1) != 0) state |= kDeviceFailed;
    const std::size_t place = places.first + device;
    if (state_[place] == state && jobs_[place] == jobs[device]) continue;
    state_[place] = static_cast<std::uint8_t>(state);
    jobs_[place] = jobs[device];
    state_stamps_[place] = sequence_;
    touch();
  }
}

void DeviceTable::end_second(const std::function<void(const JobSecond&)>& sink) {
  JobSecond second;
  for (std::size_t place = 0; place < use_.size(); ++place) {
    Sums& sums = sums_[place];
    const std::uint8_t use = use_[place];
    const std::uint8_t memory = memory_[place];
    if (use != kUnknownPercent && sums.uses < 200) {
      sums.use = static_cast<std::uint16_t>(sums.use + use);
      ++sums.uses;
    }
    if (memory != kUnknownPercent && sums.memories < 200) {
      sums.memory = static_cast<std::uint16_t>(sums.memory + memory);
      ++sums.memories;
    }
    if (jobs_[place] != second.job) {
      if (second.job != 0) sink(second);
      second = {.job = jobs_[place]};
    }
    if (use == kUnknownPercent) continue;
    ++second.measured;
    second.used += use / 100.0;
    if (memory != kUnknownPercent) second.memory += memory / 100.0;
  }
  if (second.job != 0) sink(second);
}

void DeviceTable::end_step(std::int64_t end_ms) {
  Step step;
  if (steps_.size() >= kStepsKept) {  // the oldest one's memory serves again
    step = std::move(steps_.front());
    steps_.pop_front();
  }
  step.end_ms = end_ms;
  step.use.resize(use_.size());
  step.memory.resize(use_.size());
  for (std::size_t place = 0; place < use_.size(); ++place) {
    step.use[place] = mean(sums_[place].use, sums_[place].uses);
    step.memory[place] = mean(sums_[place].memory, sums_[place].memories);
  }
  sums_.assign(use_.size(), {});
  steps_.push_back(std::move(step));
}

const std::vector<node_protocol::SharedTenant>& DeviceTable::shared(int node) const {
  static const std::vector<node_protocol::SharedTenant> kNone;
  return node < static_cast<int>(shared_.size()) ? at(shared_, node) : kNone;
}

std::vector<std::uint8_t> DeviceTable::use_history(std::uint32_t place) const {
  std::vector<std::uint8_t> values;
  for (const Step& step : steps_)
    values.push_back(place < step.use.size() ? step.use[place] : kUnknownPercent);
  return values;
}

std::vector<std::uint8_t> DeviceTable::memory_history(std::uint32_t place) const {
  std::vector<std::uint8_t> values;
  for (const Step& step : steps_)
    values.push_back(place < step.memory.size() ? step.memory[place] : kUnknownPercent);
  return values;
}

std::string DeviceTable::cursor() {
  if (std::exchange(is_dirty_, false)) ++sequence_;
  return fmt::format("{}.{}.{}", epoch_, layout_, sequence_ - 1);
}

DeviceChanges DeviceTable::changes_since(std::string_view cursor) {
  DeviceChanges changes{.cursor = this->cursor()};
  const std::string prefix = fmt::format("{}.{}.", epoch_, layout_);
  const auto sequence = cursor.starts_with(prefix)
                            ? parse_number<std::uint32_t>(cursor.substr(prefix.size()))
                            : std::nullopt;
  if (!sequence) {
    changes.is_reset = true;
    return changes;
  }
  if (*sequence + 1 >= sequence_) return changes;
  changes.use = runs_after(use_stamps_, *sequence);
  changes.state = runs_after(state_stamps_, *sequence);
  return changes;
}

}  // namespace regatta::monitoring
