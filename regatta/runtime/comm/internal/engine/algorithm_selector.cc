#include "regatta/runtime/comm/internal/engine/algorithm_selector.h"

#include <cmath>
#include <set>
#include <utility>

#include "regatta/base/os/clock.h"
#include "regatta/model/collective/algorithms.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {
namespace {

TunedCall case_of(const Call& call, int ranks) {
  return {call.kind, whole_bytes(call, ranks)};
}

int servers_of(const cost::RankLocations& sites) {
  return static_cast<int>(std::set<int>(sites.server.begin(), sites.server.end()).size());
}

}  // namespace

AlgorithmSelector::AlgorithmSelector(AlgorithmSelectorSetup setup)
    : setup_(std::move(setup)),
      tuner_({.ranks = setup_.self.world_size,
              .servers = servers_of(setup_.sites),
              .space = network_tuning_space({.ranks = setup_.self.world_size,
                                             .grid = setup_.grid ? &*setup_.grid : nullptr,
                                             .sites = &setup_.sites,
                                             .network = setup_.network},
                                            setup_.forced),
              .forced = setup_.forced.algorithm,
              .measure = setup_.measure}) {}

std::unique_ptr<Operation> AlgorithmSelector::timing_exchange_before(const Operation& next) {
  {
    const MutexLock lock(mutex_);
    if (!next.call || !tuner_.waits(case_of(*next.call, setup_.self.world_size))) return nullptr;
  }
  auto timing_exchange = std::make_unique<Operation>();
  timing_exchange->group = next.group;
  timing_exchange->handle = std::make_shared<Handle::State>();
  timing_exchange->name = "timing exchange before " + next.name;
  timing_exchange->is_timing_exchange = true;
  timing_exchange->number =
      (timing_exchanges_++ & (kTimingExchangeNumber - 1)) | kTimingExchangeNumber;
  timing_exchange->before = next.number;
  timing_exchange->code = next.code;
  timing_exchange->bytes = next.bytes;
  auto* const times = reinterpret_cast<std::byte*>(times_s_.data());
  build_schedule(timing_exchange->schedule,
                 {.self = setup_.self, .grid = nullptr, .sites = nullptr, .setting = {}},
                 {.kind = CallKind::kAllReduce,
                  .reduction = {DataType::kF64, ReduceOp::kMin, setup_.self.world_size},
                  .in = times,
                  .out = times,
                  .bytes = times_s_.size() * sizeof(double)});
  return timing_exchange;
}

CollectivePlan AlgorithmSelector::plan(const Setting& setting) const {
  return {.self = setup_.self,
          .grid = setup_.grid ? &*setup_.grid : nullptr,
          .sites = &setup_.sites,
          .setting = setting};
}

void AlgorithmSelector::begin(Operation& operation) {
  Setting setting;
  {
    const MutexLock lock(mutex_);
    const auto [chosen, ticket] = tuner_.next(case_of(*operation.call, setup_.self.world_size));
    setting = chosen;
    current_ = ticket;
  }
  operation.connections = setting.connections;
  build_schedule(operation.schedule, plan(setting), *operation.call);
  if (current_.is_timed()) began_at_ = os::monotonic_now();
}

void AlgorithmSelector::end(const Operation& operation) {
  if (operation.is_timing_exchange) {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < timed_.size(); ++i)
      tuner_.give(timed_[i], Seconds{std::abs(times_s_[i])});
    timed_.clear();
    times_s_.clear();
    return;
  }
  if (!operation.call || !current_.is_timed()) return;
  // The rank that enters last waits for no other, so the shortest time is that of the operation. A
  // rooted call takes as long as its last rank: there the negative times make the minimum pick the
  // longest.
  const double took = (os::monotonic_now() - began_at_).value;
  const bool is_rooted = has_root(operation.call->kind);
  timed_.push_back(std::exchange(current_, {}));
  times_s_.push_back(is_rooted ? -took : took);
}

std::vector<TuningChoice> AlgorithmSelector::choices() const {
  const MutexLock lock(mutex_);
  return tuner_.choices();
}

bool AlgorithmSelector::is_settled() const {
  const MutexLock lock(mutex_);
  return tuner_.is_settled();
}

void AlgorithmSelector::load(const std::vector<TuningChoice>& choices) {
  const MutexLock lock(mutex_);
  tuner_.load(choices);
}

}  // namespace regatta::comm
