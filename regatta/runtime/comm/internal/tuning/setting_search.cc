#include "regatta/runtime/comm/internal/tuning/setting_search.h"

#include <algorithm>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::comm {
namespace {

constexpr int kTries = 2;
// Shorter calls are tried several times in a row, and their median counts: a single call does not
// show how calls affect each other (1 KiB between 4 servers: a full exchange took 48 us alone, 180
// one after the other, and recursive doubling 140 and 87), nor occasional packet loss.
constexpr Seconds kShort{1e-3};
constexpr int kRowOfShort = 8;
constexpr Seconds kMiddling{0.1};
constexpr int kRowOfMiddling = 3;

int row_of(Seconds predicted) {
  if (predicted.value <= 0 || predicted >= kMiddling) return 1;
  return predicted < kShort ? kRowOfShort : kRowOfMiddling;
}

// Those that were nearly as fast as the fastest run once more, and their median counts: of many
// settings that were tried twice, the luckiest comes first.
constexpr std::size_t kFinalistsMax = 3;
constexpr double kNearly = 1.15;
constexpr int kFinalTries = 3;
// So much faster must a setting be to replace the one in use.
constexpr double kClearly = 0.97;
constexpr int kSamples = 3;
constexpr long long kFirstPause = 64;
constexpr long long kLongestPause = 4096;
// The choice has become slower by this: the search begins again.
constexpr double kChanged = 1.3;
// After so many samples all settings are tried again even without a change: another one may win.
constexpr int kSamplesMax = 4;
constexpr Seconds kNotReceived{-1.0};
constexpr Seconds kSkipped{1e30};

}  // namespace

SettingSearch::SettingSearch(const std::vector<SettingCandidate>& candidates,
                             std::vector<Vary> stages)
    : candidates_(candidates), stages_(std::move(stages)) {
  for (const SettingCandidate& candidate : candidates)
    tried_.push_back({.setting = candidate.setting, .predicted = candidate.predicted});
  if (!candidates.empty()) row_ = row_of(candidates.front().predicted);
  pause_ = kFirstPause;
  enter_stage(0);
}

std::size_t SettingSearch::index_of(const Setting& setting) {
  for (std::size_t i = 0; i < tried_.size(); ++i)
    if (tried_[i].setting == setting) return i;
  tried_.push_back({.setting = setting});
  return tried_.size() - 1;
}

void SettingSearch::start_from(const Setting& setting, Seconds observed) {
  chosen_ = index_of(setting);
  tried_[chosen_].observed = observed;
  settle();
}

void SettingSearch::plan_trials(const std::vector<std::size_t>& settings, int tries) {
  plan_.clear();
  // In turns, so that changes over time affect all settings equally.
  for (int t = 0; t < tries; ++t)
    for (const std::size_t setting : settings)
      plan_.insert(plan_.end(), static_cast<std::size_t>(row_), setting);
  times_.assign(plan_.size(), kNotReceived);
  first_ticket_ += static_cast<int>(handed_);
  handed_ = 0;
  missing_ = plan_.size();
}

// The setting in use is one of them: it stays unless another one is clearly faster.
std::vector<std::size_t> SettingSearch::finalists() const {
  std::vector<std::size_t> settings;
  for (std::size_t i = 0; i < tried_.size(); ++i)
    if (i != chosen_ && tried_[i].observed.value > 0) settings.push_back(i);
  const auto is_faster = [&](std::size_t a, std::size_t b) {
    return tried_[a].observed < tried_[b].observed;
  };
  std::stable_sort(settings.begin(), settings.end(), is_faster);
  settings.insert(settings.begin(), chosen_);
  const auto fastest = std::min_element(settings.begin(), settings.end(), is_faster);
  const Seconds nearly = tried_[*fastest].observed * kNearly;
  while (settings.size() > kFinalistsMax || tried_[settings.back()].observed > nearly)
    settings.pop_back();
  return settings;
}

void SettingSearch::enter_stage(std::size_t stage) {
  is_searching_ = true;
  // The times of earlier searches may be outdated.
  if (stage == 0)
    for (MeasuredSetting& one : tried_)
      one.observed = {};
  for (stage_ = stage; stage_ <= final_stage(); ++stage_) {
    std::vector<std::size_t> settings;
    if (stage_ == final_stage()) {
      settings = finalists();
    } else if (stage_ == 0) {
      for (const SettingCandidate& candidate : candidates_)
        settings.push_back(index_of(candidate.setting));
    } else {
      settings.push_back(chosen_);
      for (const Setting& setting : stages_[stage_ - 1](tried_[chosen_].setting))
        settings.push_back(index_of(setting));
    }
    if (settings.size() < 2) continue;
    return plan_trials(settings, stage_ == final_stage() ? kFinalTries : kTries);
  }
  settle();
}

void SettingSearch::settle() {
  is_searching_ = false;
  plan_.clear();
  times_.clear();
  first_ticket_ += static_cast<int>(handed_);
  handed_ = missing_ = 0;
  rest_until_ = calls_ + pause_;
}

SettingSearch::Trial SettingSearch::next() {
  const bool can_change = tried_.size() > 1;
  if (!is_searching_ && can_change && plan_.empty() && calls_ >= rest_until_)
    plan_trials({chosen_}, kSamples);
  ++calls_;
  if (handed_ < plan_.size()) {
    const std::size_t index = plan_[handed_];
    ++tried_[index].calls;
    return {tried_[index].setting, first_ticket_ + static_cast<int>(handed_++)};
  }
  ++tried_[chosen_].calls;
  return {tried_[chosen_].setting, -1};
}

void SettingSearch::give(int ticket, Seconds took) {
  const int place = ticket - first_ticket_;
  if (place < 0 || place >= static_cast<int>(handed_)) return;
  Seconds& time = at(times_, place);
  if (time.value >= 0) return;
  time = took;
  if (--missing_ > 0) return;
  if (is_searching_)
    end_stage();
  else
    end_samples();
}

void SettingSearch::skip(int ticket) {
  give(ticket, kSkipped);
}

// The time of a setting by its trials; 0: none.
Seconds SettingSearch::sum_up(std::size_t index) const {
  std::vector<Seconds> told;
  for (std::size_t i = 0; i < plan_.size(); ++i)
    if (plan_[i] == index && times_[i] != kSkipped) told.push_back(times_[i]);
  if (told.empty()) return {};
  std::sort(told.begin(), told.end());
  // The setting in use was last judged by a median, and so are its samples.
  const bool counts_median = row_ > 1 || !is_searching_ || stage_ == final_stage();
  return counts_median ? told[told.size() / 2] : told.front();
}

void SettingSearch::end_stage() {
  for (const std::size_t index : plan_)
    tried_[index].observed = sum_up(index);
  std::size_t best = plan_.front();
  if (std::find(plan_.begin(), plan_.end(), chosen_) != plan_.end()) best = chosen_;
  const Seconds in_use = tried_[best].observed;
  for (const std::size_t index : plan_) {
    const Seconds observed = tried_[index].observed;
    if (observed.value > 0 && observed < in_use * kClearly && observed < tried_[best].observed)
      best = index;
  }
  chosen_ = best;
  enter_stage(stage_ + 1);
}

void SettingSearch::end_samples() {
  const Seconds took = sum_up(chosen_);
  if (took.value == 0) return settle();
  const bool is_slower = took > tried_[chosen_].observed * kChanged;
  tried_[chosen_].observed = took;
  if (is_slower || ++samples_ >= kSamplesMax) {
    samples_ = 0;
    if (is_slower) pause_ = kFirstPause;
    return enter_stage(0);
  }
  pause_ = std::min(2 * pause_, kLongestPause);
  settle();
}

}  // namespace regatta::comm
