// comm/internal/tuning/setting_search.h: finds the fastest setting for one kind of call by trials.
// A pure state machine: the result depends only on the calls and the times that it receives, so
// ranks with the same times choose the same. It tries first the algorithms, then the connections of
// the best one, then its chunks; each twice, and the faster time counts. Calls that are predicted
// to be short run in rows, whose median counts (without a prediction, as inside a server, there are
// no rows). A later setting must be clearly faster than the one in use. Finally the settings that
// were nearly the fastest run three times more, and their medians decide. Then the choice stands
// and is sampled at growing intervals, by the median again; when it has become clearly slower, all
// settings are tried again.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/collective/candidates.h"
#include "regatta/model/collective/setting.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {

struct MeasuredSetting {
  Setting setting;
  Seconds predicted;  // 0: the model has no prediction
  Seconds observed;   // the fastest time, a finalist's median; 0: not tried in the last search
  long long calls = 0;
};

class SettingSearch {
 public:
  // The next settings to try after a setting has won its stage.
  using Vary = std::function<std::vector<Setting>(const Setting&)>;
  // The first candidate is in use until another one was measured to be faster. With one candidate
  // and no `stages` there are no trials.
  SettingSearch(const std::vector<SettingCandidate>& candidates, std::vector<Vary> stages);

  struct Trial {
    Setting setting;
    int ticket = -1;  // not negative: give() the time of this call
  };
  // The setting of the next call.
  Trial next();
  // The time of the call with that ticket, the same on all ranks.
  void give(int ticket, Seconds took);
  // The time of that call does not count.
  void skip(int ticket);
  // All tickets are issued: without their times the search cannot continue.
  bool waits() const { return handed_ > 0 && handed_ == plan_.size() && missing_ > 0; }
  // There is a choice, and no search under way.
  bool is_settled() const { return !is_searching_; }

  const std::vector<MeasuredSetting>& tried() const { return tried_; }
  std::size_t chosen() const { return chosen_; }
  long long calls() const { return calls_; }

  // Takes over the choice of an earlier run: it stands until it is sampled.
  void start_from(const Setting& setting, Seconds observed);

 private:
  std::size_t index_of(const Setting& setting);
  std::size_t final_stage() const { return stages_.size() + 1; }
  std::vector<std::size_t> finalists() const;
  void plan_trials(const std::vector<std::size_t>& settings, int tries);
  Seconds sum_up(std::size_t index) const;
  void end_stage();
  void end_samples();
  void enter_stage(std::size_t stage);
  void settle();

  std::vector<SettingCandidate> candidates_;
  std::vector<Vary> stages_;
  std::vector<MeasuredSetting> tried_;
  std::size_t chosen_ = 0;
  std::size_t stage_ = 0;  // 0: the candidates, k: stages_[k - 1], after them the finalists
  bool is_searching_ = true;
  std::vector<std::size_t> plan_;  // trials in this order: indices of tried_
  std::vector<Seconds> times_;     // of the plan; negative: not received yet
  std::size_t handed_ = 0;
  std::size_t missing_ = 0;
  int first_ticket_ = 0;
  long long calls_ = 0;
  long long rest_until_ = 0;  // calls: then the choice is sampled
  long long pause_ = 0;
  int row_ = 1;      // calls of a try
  int samples_ = 0;  // since the last search
};

}  // namespace regatta::comm
