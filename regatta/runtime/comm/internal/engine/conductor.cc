#include "regatta/runtime/comm/internal/engine/conductor.h"

#include <cmath>
#include <set>
#include <utility>

#include "regatta/base/os/clock.h"
#include "regatta/model/collective/algorithms.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {
namespace {

Case case_of(const Call& call, int ranks) {
  return {call.kind, whole_bytes(call, ranks)};
}

int servers_of(const cost::Sites& sites) {
  return static_cast<int>(std::set<int>(sites.server.begin(), sites.server.end()).size());
}

}  // namespace

Conductor::Conductor(ConductorSetup setup)
    : setup_(std::move(setup)),
      tuner_({.ranks = setup_.place.world_size,
              .servers = servers_of(setup_.sites),
              .ways = network_ways({.ranks = setup_.place.world_size,
                                    .grid = setup_.grid ? &*setup_.grid : nullptr,
                                    .sites = &setup_.sites,
                                    .network = setup_.network},
                                   setup_.forced),
              .forced = setup_.forced.algorithm,
              .measure = setup_.measure}) {}

std::unique_ptr<Operation> Conductor::agreement_before(const Operation& next) {
  {
    const std::lock_guard lock(mutex_);
    if (!next.call || !tuner_.waits(case_of(*next.call, setup_.place.world_size))) return nullptr;
  }
  auto agreement = std::make_unique<Operation>();
  agreement->group = next.group;
  agreement->handle = std::make_shared<Handle::State>();
  agreement->name = "agreement on what is fastest, before " + next.name;
  agreement->is_agreement = true;
  agreement->number = (agreements_++ & (kAgreementNumber - 1)) | kAgreementNumber;
  agreement->before = next.number;
  agreement->code = next.code;
  agreement->bytes = next.bytes;
  auto* const times = reinterpret_cast<std::byte*>(times_s_.data());
  build_schedule(agreement->schedule,
                 {.place = setup_.place, .grid = nullptr, .sites = nullptr, .setting = {}},
                 {.kind = CallKind::kAllReduce,
                  .reduction = {DataType::kF64, ReduceOp::kMin, setup_.place.world_size},
                  .in = times,
                  .out = times,
                  .bytes = times_s_.size() * sizeof(double)});
  return agreement;
}

Plan Conductor::plan(const Setting& setting) const {
  return {.place = setup_.place,
          .grid = setup_.grid ? &*setup_.grid : nullptr,
          .sites = &setup_.sites,
          .setting = setting};
}

void Conductor::begin(Operation& operation) {
  Setting setting;
  {
    const std::lock_guard lock(mutex_);
    const auto [chosen, ticket] = tuner_.next(case_of(*operation.call, setup_.place.world_size));
    setting = chosen;
    under_way_ = ticket;
  }
  operation.connections = setting.connections;
  build_schedule(operation.schedule, plan(setting), *operation.call);
  if (under_way_.is_timed()) began_at_ = os::monotonic_now();
}

void Conductor::end(const Operation& operation) {
  if (operation.is_agreement) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < timed_.size(); ++i)
      tuner_.give(timed_[i].ticket, Seconds{std::abs(times_s_[i])});
    timed_.clear();
    times_s_.clear();
    return;
  }
  if (!operation.call || !under_way_.is_timed()) return;
  // The rank that comes last waits for nobody: its time is that of the operation. The agreement
  // takes the least of what the ranks say, so what the largest decides is said negative.
  const double took = (os::monotonic_now() - began_at_).value;
  const bool rooted = has_root(operation.call->kind);
  timed_.push_back({std::exchange(under_way_, {})});
  times_s_.push_back(rooted ? -took : took);
}

std::vector<Choice> Conductor::choices() const {
  const std::lock_guard lock(mutex_);
  return tuner_.choices();
}

bool Conductor::is_settled() const {
  const std::lock_guard lock(mutex_);
  return tuner_.is_settled();
}

void Conductor::load(const std::vector<Choice>& choices) {
  const std::lock_guard lock(mutex_);
  tuner_.load(choices);
}

}  // namespace regatta::comm
