#include "regatta/runtime/comm/internal/shm/shm_world.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/runtime/comm/internal/engine/operation.h"

namespace regatta::comm {
namespace {

ShmGroup::Progress more_eager(ShmGroup::Progress a, ShmGroup::Progress b) {
  if (a == ShmGroup::Progress::kMoved || b == ShmGroup::Progress::kMoved)
    return ShmGroup::Progress::kMoved;
  return a == ShmGroup::Progress::kBlocked ? a : b;
}

Status run_call(ShmGroup& group, const Call& call) {
  const auto state = group.submit(call);
  group.wait(*state);
  if (state->error) return *state->error;
  return {};
}

// Measures cached and non-temporal stores into the stages, in turns, and chooses non-temporal ones
// where they are clearly faster for the slowest rank: it depends on which caches the cores share,
// and on where the host of a virtual machine put them. A wrong choice makes every call take four
// times as long.
Status choose_stage_stores(ShmGroup& group) {
  constexpr std::size_t kProbeBytes = std::size_t{256} << 10;
  constexpr int kRuns = 8;
  constexpr double kClearly = 0.75;
  constexpr std::array kStores = {StoreMode::kCached, StoreMode::kNonTemporal};
  std::vector<std::byte> data(kProbeBytes);
  const Call probe{.kind = CallKind::kAllReduce,
                   .reduction = {DataType::kF32, ReduceOp::kMax, 1},
                   .in = data.data(),
                   .out = data.data(),
                   .bytes = data.size()};
  std::array<double, kStores.size()> best{};
  best.fill(std::numeric_limits<double>::max());
  for (int run = 0; run < kRuns; ++run)
    for (std::size_t i = 0; i < kStores.size(); ++i) {
      group.set_stage_stores(kStores[i]);
      const Seconds start = os::monotonic_now();
      REGATTA_TRY_DO(run_call(group, probe));
      best[i] = std::min(best[i], (os::monotonic_now() - start).value);
    }
  auto* times = reinterpret_cast<std::byte*>(best.data());
  REGATTA_TRY_DO(run_call(group, {.kind = CallKind::kAllReduce,
                                  .reduction = {DataType::kF64, ReduceOp::kMax, 1},
                                  .in = times,
                                  .out = times,
                                  .bytes = sizeof best}));
  group.set_stage_stores(kStores[best[1] < kClearly * best[0] ? 1 : 0]);
  return {};
}

}  // namespace

Result<std::unique_ptr<ShmWorld>> ShmWorld::start(ShmWorldSetup setup) {
  std::unique_ptr<ShmWorld> world(new ShmWorld(std::move(setup)));
  int on_server = 1;
  for (const SharedSegment& shared_segment : world->setup_.shared_segments)
    on_server += shared_segment.is_open() ? 1 : 0;
  // Callers that are limited to a share of a core share the cores with more than these ranks.
  if (world->setup_.drives_in_wait)
    world->spin_policy_ = spin_policy_for(on_server, os::usable_cores());
  ShmWorld* self = world.get();
  const auto round = [self] {
    auto did = ShmGroup::Progress::kIdle;
    for (const auto& group : self->groups())
      did = more_eager(did, group->make_progress());
    return did;
  };
  const auto is_ready = [self] {
    const auto groups = self->groups();
    return std::any_of(groups.begin(), groups.end(),
                       [](const auto& group) { return group->is_ready(); });
  };
  REGATTA_TRY_DO(
      world->helper_thread_.start(world->own().header(), world->spin_policy_, round, is_ready));
  return world;
}

const SharedSegment& ShmWorld::shared_segment_of(int world_rank) const {
  return world_rank == setup_.rank ? own() : at(setup_.shared_segments, world_rank);
}

bool ShmWorld::reaches(const std::vector<int>& members) const {
  if (members.size() > kPeersMax) return false;
  return std::all_of(members.begin(), members.end(), [&](int member) {
    return member == setup_.rank || at(setup_.shared_segments, member).is_open();
  });
}

std::uint64_t ShmWorld::free_regions() {
  const MutexLock lock(mutex_);
  std::erase_if(retired_, [&](const Retired& retired) REGATTA_REQUIRES(mutex_) {
    const bool all_ended =
        std::all_of(retired.members.begin(), retired.members.end(), [&](int member) {
          const SegmentRegion& region = shared_segment_of(member).region(retired.region);
          return region.ended.rounds.load(std::memory_order_acquire) >= retired.sequence;
        });
    if (all_ended) used_regions_ &= ~(std::uint64_t{1} << retired.region);
    return all_ended;
  });
  return ~used_regions_;
}

GroupStart ShmWorld::start_of(int region) const {
  const SegmentRegion& candidate = own().region(region);
  return {last_entered(candidate),
          std::max(candidate.filled.rounds.load(std::memory_order_relaxed),
                   candidate.combined.rounds.load(std::memory_order_relaxed))};
}

Result<std::shared_ptr<ShmGroup>> ShmWorld::make_group(const CommunicatorState& communicator,
                                                       int region, const GroupStart& start) {
  const std::vector<int>& members = communicator.members;
  ShmGroupSetup setup{.peers = {.rank = communicator.rank},
                      .shared_segment = &own(),
                      .start = start,
                      .id = communicator.id,
                      .spin_policy = spin_policy_,
                      .drives_in_wait = setup_.drives_in_wait};
  for (const int member : members) {
    const SharedSegment& shared_segment = shared_segment_of(member);
    setup.peers.regions.push_back(&shared_segment.region(region));
    setup.peers.buffers.push_back(shared_segment.buffers());
    if (member != setup_.rank) setup.peers.others.push_back(&shared_segment.header());
    setup.peers.names.push_back(at(setup_.names, member));
  }
  std::shared_ptr<ShmGroup> group(new ShmGroup(std::move(setup), helper_thread_),
                                  [this, region, members](ShmGroup* ended) {
                                    retire(std::unique_ptr<ShmGroup>(ended), region, members);
                                  });
  {
    const MutexLock lock(mutex_);
    used_regions_ |= std::uint64_t{1} << region;
    entries_.push_back({.group = group,
                        .members = members,
                        .log = communicator.log,
                        .since = os::monotonic_now()});
    if (error_) group->fail(*error_);
  }
  REGATTA_TRY_DO(choose_stage_stores(*group));
  group->set_log(communicator.log);
  return group;
}

void ShmWorld::retire(std::unique_ptr<ShmGroup> group, int region,
                      const std::vector<int>& members) {
  // The helper may not know the group any more, so this thread drives its last operations.
  group->finish(setup_.close_timeout);
  const std::uint64_t sequence = group->reached().sequence;
  own().region(region).ended.rounds.store(sequence, std::memory_order_release);
  const MutexLock lock(mutex_);
  if (!retired_error_) retired_error_ = group->error();
  std::erase_if(entries_, [](const Entry& entry) { return entry.group.expired(); });
  retired_.push_back({region, members, sequence});
}

std::vector<std::shared_ptr<ShmGroup>> ShmWorld::groups() {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<ShmGroup>> groups;
  for (const Entry& entry : entries_)
    if (auto group = entry.group.lock()) groups.push_back(std::move(group));
  return groups;
}

void ShmWorld::fail(const Error& error) {
  {
    const MutexLock lock(mutex_);
    error_ = error;
  }
  for (const auto& group : groups())
    group->fail(error);
}

void ShmWorld::settle() {
  for (const auto& group : groups())
    group->finish(Seconds{0});
}

std::optional<Error> ShmWorld::error() {
  for (const auto& group : groups())
    if (auto error = group->error()) return error;
  const MutexLock lock(mutex_);
  return retired_error_;
}

std::optional<std::string> ShmWorld::operation_waiting_for(int world_rank) {
  std::vector<std::shared_ptr<ShmGroup>> alive;  // released after the lock: retire() takes it
  const MutexLock lock(mutex_);
  for (const Entry& entry : entries_) {
    const auto group = alive.emplace_back(entry.group.lock());
    if (group == nullptr || group->progress().is_idle()) continue;
    for (const int rank : group->progress().waited_for())
      if (at(entry.members, rank) == world_rank) return group->progress().describe_blocked();
  }
  return std::nullopt;
}

std::vector<StalledCall> ShmWorld::find_stalled(Seconds now, Seconds still) {
  std::vector<std::shared_ptr<ShmGroup>> alive;  // released after the lock: retire() takes it
  std::vector<StalledCall> stalled;
  const MutexLock lock(mutex_);
  for (Entry& entry : entries_) {
    const auto group = alive.emplace_back(entry.group.lock());
    if (group == nullptr) continue;
    const ShmGroupProgress& progress = group->progress();
    if (progress.is_idle() || progress.steps() != entry.steps) {
      entry.steps = progress.steps();
      entry.since = now;
      if (entry.log && !progress.is_idle()) entry.log->progress(Lane::kCollective, now);
      continue;
    }
    if (now - entry.since < still) continue;
    StalledCall call = progress.stalled_call();
    // The report holds only if the operation made no step meanwhile.
    if (progress.steps() != entry.steps || call.sequence == 0) continue;
    call.since = entry.since;
    const auto to_world = [&](int& rank) { rank = at(entry.members, rank); };
    std::for_each(call.waited_for.begin(), call.waited_for.end(), to_world);
    call.call = call_in_world(call.call, entry.members);
    for (MemberReport& report : call.seen) {
      to_world(report.rank);
      report.call = call_in_world(report.call, entry.members);
    }
    stalled.push_back(std::move(call));
  }
  return stalled;
}

std::optional<MemberReport> ShmWorld::member_report(std::uint64_t communicator,
                                                    std::uint32_t sequence) {
  std::vector<std::shared_ptr<ShmGroup>> alive;  // released after the lock: retire() takes it
  const MutexLock lock(mutex_);
  for (const Entry& entry : entries_) {
    const auto group = alive.emplace_back(entry.group.lock());
    if (group == nullptr || group->progress().communicator() != communicator) continue;
    MemberReport report = group->progress().member_report(sequence);
    report.call = call_in_world(report.call, entry.members);
    return report;
  }
  return std::nullopt;
}

bool ShmWorld::report_running(MemberReport& report) {
  std::vector<std::shared_ptr<ShmGroup>> alive;  // released after the lock: retire() takes it
  const MutexLock lock(mutex_);
  for (const Entry& entry : entries_) {
    const auto group = alive.emplace_back(entry.group.lock());
    if (group == nullptr || group->progress().is_idle()) continue;
    const ShmGroupProgress& progress = group->progress();
    const MemberReport own = progress.member_report(progress.entered());
    if (own.state != MemberState::kEntered || !own.knows_call) continue;
    report.is_elsewhere = true;
    report.other_call = call_in_world(own.call, entry.members);
    report.other_bytes = own.bytes;
    return true;
  }
  return false;
}

}  // namespace regatta::comm
