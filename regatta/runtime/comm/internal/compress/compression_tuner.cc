#include "regatta/runtime/comm/internal/compress/compression_tuner.h"

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

CompressionTuner::CompressionTuner(const std::vector<CompressionKind>& allowed)
    : candidates_{CompressionKind::kNone} {
  for (const CompressionKind kind : allowed)
    if (std::find(candidates_.begin(), candidates_.end(), kind) == candidates_.end())
      candidates_.push_back(kind);
}

CompressionTuner::SizeClass& CompressionTuner::at(std::size_t bytes) {
  SizeClass& found = classes_[class_of(bytes)];
  if (found.times.empty()) found.times.assign(candidates_.size(), kNever);
  return found;
}

const CompressionTuner::SizeClass* CompressionTuner::find(std::size_t bytes) const {
  const auto found = classes_.find(class_of(bytes));
  return found == classes_.end() ? nullptr : &found->second;
}

CompressionTuner::Turn CompressionTuner::next(std::size_t bytes) {
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

void CompressionTuner::record(std::size_t bytes, CompressionKind kind, Seconds time) {
  SizeClass& mine = at(bytes);
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    if (candidates_[i] == kind) mine.times[i] = std::min(mine.times[i], time.value);
}

std::vector<double> CompressionTuner::times_of(std::size_t bytes) const {
  const SizeClass* mine = find(bytes);
  return mine == nullptr ? std::vector<double>(candidates_.size(), kNever) : mine->times;
}

void CompressionTuner::settle(std::size_t bytes, const std::vector<double>& agreed) {
  SizeClass& mine = at(bytes);
  const auto best =
      static_cast<std::size_t>(std::min_element(agreed.begin(), agreed.end()) - agreed.begin());
  const double gain = candidates_[mine.current] == CompressionKind::kNone ? kGainOverNone : kGain;
  if (agreed[best] * gain < agreed[mine.current]) mine.current = best;
  mine.is_settled = true;
}

CompressionKind CompressionTuner::choice(std::size_t bytes) const {
  const SizeClass* mine = find(bytes);
  return mine == nullptr ? CompressionKind::kNone : candidates_[mine->current];
}

}  // namespace regatta::comm::compress
