// comm/internal/tuning/setting_search.h: finds the fastest setting for one kind of call by trying
// settings out. A pure state machine: what comes out depends on the calls and the times that it is
// told alone, so ranks that are told the same choose the same. First the algorithms, then for the
// best of them the connections, then the chunks; each is tried twice, the faster time counts; calls
// that are predicted to be short in rows, and their median (without a prediction, as inside a
// server, there are no rows). A later setting must be clearly faster than the one that is in use.
// At last those that were nearly the fastest run three times more, and their medians decide. Then
// the choice stands and is looked at from time to time, more and more seldom, by the median again;
// when it has become clearly slower, all are tried again.
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
  Seconds predicted;  // 0: the model says nothing of it
  Seconds observed;   // the fastest, of a finalist the median; 0: not tried in the last search
  long long calls = 0;
};

class SettingSearch {
 public:
  // What else to try once a setting has won its stage.
  using Vary = std::function<std::vector<Setting>(const Setting&)>;
  // The first candidate is in use until another one has shown that it is faster. With `stages`
  // empty and one candidate there is nothing to try.
  SettingSearch(const std::vector<SettingCandidate>& candidates, std::vector<Vary> stages);

  struct Trial {
    Setting setting;
    int ticket = -1;  // not negative: tell the time of this call with give()
  };
  // Of the next call.
  Trial next();
  // The time of the call with that ticket, the same on all ranks.
  void give(int ticket, Seconds took);
  // That call tells nothing.
  void skip(int ticket);
  // All tickets are out: without their times the search does not go on.
  bool waits() const { return handed_ > 0 && handed_ == plan_.size() && missing_ > 0; }
  // The choice stands for the time being.
  bool is_settled() const { return !is_searching_; }

  const std::vector<MeasuredSetting>& tried() const { return tried_; }
  std::size_t chosen() const { return chosen_; }
  long long calls() const { return calls_; }

  // Takes over what an earlier run found: the choice stands until it is looked at.
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
  std::vector<std::size_t> plan_;  // what to try, in this order: indices of tried_
  std::vector<Seconds> times_;     // of the plan; negative: not told yet
  std::size_t handed_ = 0;
  std::size_t missing_ = 0;
  int first_ticket_ = 0;
  long long calls_ = 0;
  long long rest_until_ = 0;  // calls: then the choice is looked at
  long long pause_ = 0;
  int row_ = 1;    // calls of a try
  int looks_ = 0;  // since the last search
};

}  // namespace regatta::comm
