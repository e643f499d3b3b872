// Operations that move, but slowly: which link holds them up? While a collective over the network
// is under way for long, every rank samples what its links send, and the ranks tell each other the
// busiest of theirs in the answers to queries.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/base/os/log.h"
#include "regatta/runtime/comm/internal/engine/world.h"

namespace regatta::comm {
namespace {

// Operations that take longer are sampled, and the others are asked so often: a slow link is named
// within two seconds, of which a meter needs 0.7 (link_utilization.h).
constexpr Seconds kLongTime{0.5};
constexpr Seconds kAskEvery{0.3};
// More than that is no one's business to compare.
constexpr std::size_t kComparedMost = 64;

}  // namespace

const Operation* World::long_operation(Seconds now) const {
  for (const auto& group : executor_.groups())
    for (const auto& operation : group->active)
      if (operation->is_collective && now - operation->begun_at >= kLongTime &&
          group->members.size() <= kComparedMost)
        return operation.get();
  return nullptr;
}

// The own link that was busy most; nothing while no operation takes long.
std::optional<LinkUtilization> World::busiest_link() const {
  std::optional<LinkUtilization> busiest;
  for (std::size_t peer = 0; peer < meters_.size(); ++peer) {
    auto utilization = meters_[peer].utilization();
    if (!utilization || (busiest && utilization->busy <= busiest->busy)) continue;
    utilization->from = rank_;
    utilization->to = static_cast<int>(peer);
    busiest = utilization;
  }
  return busiest;
}

void World::check_link_utilization(Seconds now) {
  const Operation* operation = failed_ ? nullptr : long_operation(now);
  if (operation == nullptr || operation->begun_at != utilization_measured_since_) {
    if (slow_link_) watch_->show_verdict({});
    meters_.clear();
    link_utilizations_.clear();
    slow_link_.reset();
    utilization_asked_at_ = now;
    if (operation == nullptr) return;
    utilization_measured_since_ = operation->begun_at;
    meters_.resize(names_.size());
  }
  for (const int member : operation->group->members) {
    const auto index = static_cast<std::size_t>(member);
    if (!is_shared_[index])
      meters_[index].sample(now, network_bytes_[index].bytes.load(std::memory_order_relaxed),
                            links_[index]->is_backlogged());
  }
  if (now - utilization_asked_at_ >= kAskEvery) {
    utilization_asked_at_ = now;
    const PacketHeader query{.kind = PacketKind::kQuery,
                             .key = {operation->group->id, operation->call_number(), 0}};
    for (const int member : operation->group->members)
      if (member != rank_) links_[static_cast<std::size_t>(member)]->post_control(query, {});
  }
  if (slow_link_ || !stall_diagnoses_.empty()) return;
  std::vector<LinkUtilization> all = link_utilizations_;
  if (const auto own = busiest_link()) all.push_back(*own);
  slow_link_ = find_slow_links(all, names_);
  if (!slow_link_) return;
  const std::string text = name(rank_) + ": " + operation->name + " takes " +
                           format_seconds(now - operation->begun_at) +
                           " so far: " + slow_link_->text;
  watch_->show_verdict(text);
  os::log_warning("coll: " + text);
}

void World::note_link_utilization(int peer, const std::optional<LinkUtilization>& utilization) {
  std::erase_if(link_utilizations_,
                [&](const LinkUtilization& known) { return known.from == peer; });
  if (!utilization || meters_.empty() || utilization->to < 0 || utilization->to >= size()) return;
  link_utilizations_.push_back(*utilization);
  link_utilizations_.back().from = peer;
}

}  // namespace regatta::comm
