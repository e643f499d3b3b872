// Operations that move, but slowly: which link holds them up? While a collective over the network
// is under way for long, every rank samples what its links send, and the ranks tell each other the
// busiest of theirs in the answers to queries.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/log.h"
#include "regatta/base/core/units_text.h"
#include "regatta/runtime/comm/internal/engine/world.h"

namespace regatta::comm {
namespace {

// Operations that take longer are sampled, and the others are asked so often: a slow link is named
// within two seconds, of which a meter needs 0.7 (link_pace.h).
constexpr Seconds kLongTime{0.5};
constexpr Seconds kAskEvery{0.3};
// More than that is no one's business to compare.
constexpr std::size_t kComparedMost = 64;

}  // namespace

const Operation* World::long_operation(Seconds now) const {
  for (const auto& group : runner_.groups())
    for (const auto& operation : group->active)
      if (operation->is_collective && now - operation->begun_at >= kLongTime &&
          group->members.size() <= kComparedMost)
        return operation.get();
  return nullptr;
}

// The own link that was busy most; nothing while no operation takes long.
std::optional<LinkPace> World::busiest_link() const {
  std::optional<LinkPace> busiest;
  for (std::size_t peer = 0; peer < meters_.size(); ++peer) {
    auto pace = meters_[peer].pace();
    if (!pace || (busiest && pace->busy <= busiest->busy)) continue;
    pace->from = rank_;
    pace->to = static_cast<int>(peer);
    busiest = pace;
  }
  return busiest;
}

void World::check_pace(Seconds now) {
  const Operation* operation = failed_ ? nullptr : long_operation(now);
  if (operation == nullptr || operation->begun_at != paced_since_) {
    if (slow_link_) watch_->show_verdict({});
    meters_.clear();
    paces_.clear();
    slow_link_.reset();
    pace_asked_at_ = now;
    if (operation == nullptr) return;
    paced_since_ = operation->begun_at;
    meters_.resize(names_.size());
  }
  for (const int member : operation->group->members) {
    const auto index = static_cast<std::size_t>(member);
    if (!is_shared_[index])
      meters_[index].sample(now, network_bytes_[index].bytes.load(std::memory_order_relaxed),
                            links_[index]->is_backlogged());
  }
  if (now - pace_asked_at_ >= kAskEvery) {
    pace_asked_at_ = now;
    const PacketHeader query{.kind = PacketKind::kQuery,
                             .key = {operation->group->id, operation->call_number(), 0}};
    for (const int member : operation->group->members)
      if (member != rank_) links_[static_cast<std::size_t>(member)]->post_control(query, {});
  }
  if (slow_link_ || !inquiries_.empty()) return;
  std::vector<LinkPace> all = paces_;
  if (const auto own = busiest_link()) all.push_back(*own);
  slow_link_ = find_slow_links(all, names_);
  if (!slow_link_) return;
  const std::string text = name(rank_) + ": " + operation->name + " takes " +
                           format_seconds(now - operation->begun_at) +
                           " so far: " + slow_link_->text;
  watch_->show_verdict(text);
  log_warning("coll: " + text);
}

void World::note_pace(int peer, const std::optional<LinkPace>& pace) {
  std::erase_if(paces_, [&](const LinkPace& known) { return known.from == peer; });
  if (!pace || meters_.empty() || pace->to < 0 || pace->to >= size()) return;
  paces_.push_back(*pace);
  paces_.back().from = peer;
}

}  // namespace regatta::comm
