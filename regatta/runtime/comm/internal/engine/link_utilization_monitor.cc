#include "regatta/runtime/comm/internal/engine/link_utilization_monitor.h"

#include <cstddef>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/log.h"

namespace regatta::comm {
namespace {

// Operations that run longer are sampled, and the peers are queried at this interval: a slow link
// is named within two seconds, of which a meter needs 0.7 (link_utilization.h).
constexpr Seconds kLongTime{0.5};
constexpr Seconds kUtilizationQueryInterval{0.3};
// Larger communicators are not compared: each rank queries all others.
constexpr std::size_t kComparedMax = 64;

}  // namespace

const Operation* LinkUtilizationMonitor::long_operation(Seconds now) const {
  for (const auto& group : setup_.executor.groups())
    for (const auto& operation : group->active)
      if (operation->is_collective && now - operation->begun_at >= kLongTime &&
          group->members.size() <= kComparedMax)
        return operation.get();
  return nullptr;
}

std::optional<LinkUtilization> LinkUtilizationMonitor::busiest() const {
  std::optional<LinkUtilization> busiest;
  for (std::size_t peer = 0; peer < meters_.size(); ++peer) {
    auto utilization = meters_[peer].utilization();
    if (!utilization || (busiest && utilization->busy <= busiest->busy)) continue;
    utilization->from = setup_.rank;
    utilization->to = static_cast<int>(peer);
    busiest = utilization;
  }
  return busiest;
}

void LinkUtilizationMonitor::check(Seconds now, bool can_judge) {
  const Operation* operation = long_operation(now);
  if (operation == nullptr) return reset();
  if (meters_.empty() || operation->begun_at != begun_at_) {
    reset();
    begun_at_ = operation->begun_at;
    queried_at_ = now;
    meters_.resize(setup_.names.size());
  }
  sample(*operation, now);
  if (now - queried_at_ >= kUtilizationQueryInterval) query_peers(*operation, now);
  if (can_judge && !slow_link_) judge(*operation, now);
}

void LinkUtilizationMonitor::reset() {
  if (slow_link_) setup_.watch->show_verdict({});
  slow_link_.reset();
  meters_.clear();
  peers_.clear();
}

void LinkUtilizationMonitor::sample(const Operation& operation, Seconds now) {
  for (const int member : operation.group->members)
    if (!setup_.links.is_shared(member))
      at(meters_, member)
          .sample(now, setup_.traffic.network(member), setup_.links.link(member).is_backlogged());
}

void LinkUtilizationMonitor::query_peers(const Operation& operation, Seconds now) {
  queried_at_ = now;
  const PacketHeader query{.kind = PacketKind::kQuery,
                           .key = {operation.group->id, operation.call_number(), 0}};
  for (const int member : operation.group->members)
    if (member != setup_.rank) setup_.links.post_control(member, query);
}

void LinkUtilizationMonitor::judge(const Operation& operation, Seconds now) {
  std::vector<LinkUtilization> all = peers_;
  if (const auto own = busiest()) all.push_back(*own);
  slow_link_ = find_slow_links(all, setup_.names);
  if (!slow_link_) return;
  const std::string text = at(setup_.names, setup_.rank) + ": " + operation.name + " takes " +
                           format_seconds(now - operation.begun_at) +
                           " so far: " + slow_link_->text;
  setup_.watch->show_verdict(text);
  os::log_warning("coll: " + text);
}

void LinkUtilizationMonitor::receive(int peer, const std::optional<LinkUtilization>& utilization) {
  std::erase_if(peers_, [&](const LinkUtilization& known) { return known.from == peer; });
  if (!utilization || utilization->to < 0 || as_index(utilization->to) >= meters_.size()) return;
  peers_.push_back(*utilization);
  peers_.back().from = peer;
}

}  // namespace regatta::comm
