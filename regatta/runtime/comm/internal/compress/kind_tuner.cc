#include "regatta/runtime/comm/internal/compress/kind_tuner.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace regatta::comm::compress {
namespace {

constexpr double kNever = std::numeric_limits<double>::max();

int class_of(std::size_t bytes) {
  return static_cast<int>(std::bit_width(bytes));
}

}  // namespace

KindTuner::KindTuner(const std::vector<Kind>& allowed) : candidates_{Kind::kNone} {
  for (const Kind kind : allowed)
    if (std::find(candidates_.begin(), candidates_.end(), kind) == candidates_.end())
      candidates_.push_back(kind);
}

KindTuner::SizeClass& KindTuner::at(std::size_t bytes) {
  SizeClass& found = classes_[class_of(bytes)];
  if (found.times.empty()) found.times.assign(candidates_.size(), kNever);
  return found;
}

const KindTuner::SizeClass* KindTuner::find(std::size_t bytes) const {
  const auto found = classes_.find(class_of(bytes));
  return found == classes_.end() ? nullptr : &found->second;
}

KindTuner::Turn KindTuner::next(std::size_t bytes) {
  SizeClass& mine = at(bytes);
  if (mine.calls < trial_calls()) {
    const auto index = static_cast<std::size_t>(mine.calls++) % candidates_.size();
    return {.kind = candidates_[index], .is_trial = true};
  }
  Turn turn{.must_settle = !mine.is_settled};
  if (turn.must_settle) return turn;
  turn.kind = candidates_[mine.current];
  if (++mine.calls >= trial_calls() + kSettledCalls) {
    mine.calls = 0;
    mine.is_settled = false;
    mine.times.assign(candidates_.size(), kNever);
  }
  return turn;
}

void KindTuner::record(std::size_t bytes, Kind kind, Seconds time) {
  SizeClass& mine = at(bytes);
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    if (candidates_[i] == kind) mine.times[i] = std::min(mine.times[i], time.value);
}

std::vector<double> KindTuner::times_of(std::size_t bytes) const {
  const SizeClass* mine = find(bytes);
  return mine == nullptr ? std::vector<double>(candidates_.size(), kNever) : mine->times;
}

void KindTuner::settle(std::size_t bytes, const std::vector<double>& agreed) {
  SizeClass& mine = at(bytes);
  const auto best =
      static_cast<std::size_t>(std::min_element(agreed.begin(), agreed.end()) - agreed.begin());
  const double gain = candidates_[mine.current] == Kind::kNone ? kGainOverNone : kGain;
  if (agreed[best] * gain < agreed[mine.current]) mine.current = best;
  mine.is_settled = true;
}

Kind KindTuner::choice(std::size_t bytes) const {
  const SizeClass* mine = find(bytes);
  return mine == nullptr ? Kind::kNone : candidates_[mine->current];
}

}  // namespace regatta::comm::compress
