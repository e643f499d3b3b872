#include "regatta/network/probe/internal/poll_schedule.h"

#include <algorithm>
#include <utility>

namespace regatta::probe {
namespace {

constexpr std::uint64_t kLittle = 16384;  // bytes that nobody looks for
constexpr Seconds kMomentAgo{0.05};
// Connections count what waits in a queue before its interface: where so much moved, and interfaces
// tell of next to nothing, that is the begin of a burst once, and not at one dump after the other.
constexpr std::uint64_t kQueued = 262144;
constexpr int kLatenessMost = 3;

}  // namespace

PollSchedule::PollSchedule(const CounterOptions& options, Seconds now)
    : look_for_new_(options.look_for_new),
      quiet_after_(options.quiet_after),
      quiet_share_(options.quiet_share),
      last_look_(now - options.look_for_new) {}

bool PollSchedule::is_dump_due(Seconds now) const {
  return now - last_look_ >= look_for_new_;
}

std::uint64_t PollSchedule::carried_since(std::uint64_t total) {
  const std::uint64_t before = std::exchange(carried_, total);
  return total >= before ? total - before : kLittle + 1;
}

Poll PollSchedule::next(Seconds now, std::optional<std::uint64_t> carried) {
  unexplained_ += carried.value_or(0);
  if (is_dump_due(now)) {
    last_look_ = now;
    reported_ = std::exchange(unexplained_, 0);
    return Poll::kAllAndDump;
  }
  if (carried && unexplained_ <= kLittle) return Poll::kNothing;
  if (query_cost_ > dump_cost_) {
    unexplained_ = 0;
    return Poll::kDump;
  }
  return carried ? Poll::kMovers : Poll::kAll;
}

std::vector<std::size_t> PollSchedule::choose_all(std::span<const ConnectionCounters> known,
                                                  Seconds now) {
  std::vector<std::size_t> chosen;
  chosen.reserve(known.size());
  ++rounds_;
  for (std::size_t i = 0; i < known.size(); ++i)
    if (!is_quiet(known[i], now) || (i + rounds_) % quiet_share_ == 0) chosen.push_back(i);
  return chosen;
}

std::vector<std::size_t> PollSchedule::choose_movers(std::span<const ConnectionCounters> known,
                                                     Seconds now) const {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const auto last = moved_.find(known[i].cookie);
    if (last != moved_.end() && now - last->second <= kMomentAgo) chosen.push_back(i);
  }
  return chosen;
}

std::vector<std::size_t> PollSchedule::choose_others(std::span<const ConnectionCounters> known,
                                                     Seconds now) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < known.size(); ++i)
    if (known[i].at < now && known[i].cookie != 0) chosen.push_back(i);
  return chosen;
}

bool PollSchedule::has_unexplained_bytes(std::uint64_t found) {
  // Headers, and the acknowledgements of the other side, are no bytes of a connection.
  unexplained_ -= std::min(unexplained_, found + found / 8);
  if (unexplained_ <= kLittle) return false;
  unexplained_ = 0;
  return true;
}

bool PollSchedule::are_interfaces_late(std::uint64_t found) {
  if (found <= kQueued) return false;  // too little to tell
  lateness_ = reported_ <= kLittle ? lateness_ + 1 : 0;
  return lateness_ >= kLatenessMost;
}

void PollSchedule::note_move(std::uint64_t cookie, Seconds now) {
  const auto [last, is_new] = moved_.try_emplace(cookie, now);
  if (now - last->second >= quiet_after_) woken_ = now;
  last->second = now;
}

void PollSchedule::note_dump(std::span<const ConnectionCounters> known,
                             std::span<const ConnectionCounters> fresh) {
  std::unordered_map<std::uint64_t, std::uint64_t> bytes;
  for (const ConnectionCounters& one : known)
    bytes.emplace(one.cookie, one.sent_bytes + one.received_bytes);
  std::unordered_map<std::uint64_t, Seconds> kept;
  for (const ConnectionCounters& one : fresh) {
    const auto before = bytes.find(one.cookie);
    const bool has_moved =
        before == bytes.end() || before->second != one.sent_bytes + one.received_bytes;
    if (has_moved) note_move(one.cookie, one.at);
    kept.emplace(one.cookie, moved_[one.cookie]);
  }
  moved_.swap(kept);
}

bool PollSchedule::is_quiet(const ConnectionCounters& one, Seconds now) const {
  const auto last = moved_.find(one.cookie);
  return last != moved_.end() && now - std::max(last->second, woken_) >= quiet_after_;
}

}  // namespace regatta::probe
