#include "regatta/runtime/comm/tuner.h"

#include <algorithm>
#include <array>
#include <bit>

#include "regatta/base/core/text.h"

namespace regatta::comm {
namespace {

constexpr std::array kReasons = {"forced", "only one", "model", "measured", "loaded"};

int size_class(std::size_t bytes) {
  return static_cast<int>(std::bit_width(bytes));
}

// The same for every call of a class, or ranks of two calls would search different settings.
TunedCall case_of_class(const TunedCall& call) {
  return {call.kind, std::bit_floor(std::max<std::size_t>(call.bytes, 1))};
}

}  // namespace

std::string to_string(ChoiceReason reason) {
  return enum_name(kReasons, reason);
}

std::optional<ChoiceReason> reason_named(const std::string& name) {
  return parse_enum<ChoiceReason>(kReasons, name);
}

SettingSearch Tuner::make_search(const TunedCall& call, TuningChoice& about) const {
  std::vector<SettingCandidate> candidates = setup_.space.algorithms(call);
  if (candidates.empty()) candidates.push_back({});
  if (setup_.measure != Measure::kAll) candidates.resize(1);
  std::vector<SettingSearch::Vary> stages;
  for (const auto& vary : {setup_.space.connections, setup_.space.chunks})
    if (vary && setup_.measure != Measure::kNothing)
      stages.emplace_back([vary, call](const Setting& setting) { return vary(setting, call); });
  SettingSearch search(candidates, std::move(stages));
  if (candidates.size() == 1 && candidates.front().setting.algorithm == setup_.forced &&
      setup_.forced != Algorithm::kAutomatic)
    about.reason = ChoiceReason::kForced;
  else if (setup_.measure == Measure::kAll && search.is_settled())
    about.reason = ChoiceReason::kOnlyOne;
  return search;
}

// Whether the setting is one of those that are searched here: a file may come from servers that lie
// otherwise, and what is forced holds against it.
bool Tuner::can_be(const Setting& setting, const TunedCall& call) const {
  const std::vector<SettingCandidate> candidates = setup_.space.algorithms(call);
  if (candidates.empty()) return setting.algorithm == Algorithm::kAutomatic;
  return std::any_of(candidates.begin(), candidates.end(), [&](const SettingCandidate& candidate) {
    const Setting& other = candidate.setting;
    return other.algorithm == setting.algorithm &&
           (setup_.space.connections || other.connections == setting.connections) &&
           (setup_.space.chunks || other.chunk_bytes == setting.chunk_bytes);
  });
}

Tuner::Entry& Tuner::entry_for(const TunedCall& call) {
  const auto [found, is_new] =
      index_.try_emplace({call.kind, size_class(call.bytes)}, entries_.size());
  if (!is_new) return entries_[found->second];
  const TunedCall typical = case_of_class(call);
  TuningChoice about{.kind = call.kind,
                     .bytes_from = typical.bytes,
                     .ranks = setup_.ranks,
                     .servers = setup_.servers};
  SettingSearch search = make_search(typical, about);
  for (const TuningChoice& choice : loaded_) {
    if (choice.kind != call.kind || choice.bytes_from != typical.bytes) continue;
    const MeasuredSetting& best = choice.tried[choice.chosen];
    if (!can_be(best.setting, typical)) continue;
    search.start_from(best.setting, best.observed);
    about.reason = ChoiceReason::kLoaded;
  }
  entries_.push_back({std::move(about), std::move(search)});
  return entries_.back();
}

Tuner::Next Tuner::next(const TunedCall& call) {
  Entry& entry = entry_for(call);
  const SettingSearch::Trial trial = entry.search.next();
  last_ = static_cast<std::size_t>(&entry - entries_.data());
  return {trial.setting, {last_, trial.ticket}};
}

void Tuner::give(const Ticket& ticket, Seconds took) {
  Entry& entry = entries_[ticket.search];
  entry.search.give(ticket.number, took);
  const bool may_change =
      entry.about.reason == ChoiceReason::kModel || entry.about.reason == ChoiceReason::kLoaded;
  if (may_change && entry.search.tried()[entry.search.chosen()].observed.value > 0 &&
      entry.search.is_settled())
    entry.about.reason = ChoiceReason::kMeasured;
}

void Tuner::skip(const Ticket& ticket) {
  entries_[ticket.search].search.skip(ticket.number);
}

bool Tuner::waits(const TunedCall& call) const {
  const auto found = index_.find({call.kind, size_class(call.bytes)});
  return found != index_.end() && entries_[found->second].search.waits();
}

std::vector<TuningChoice> Tuner::choices() const {
  std::vector<TuningChoice> choices;
  for (const auto& [key, index] : index_) {
    const Entry& entry = entries_[index];
    TuningChoice choice = entry.about;
    choice.is_settled = entry.search.is_settled();
    choice.chosen = entry.search.chosen();
    choice.tried = entry.search.tried();
    choice.calls = entry.search.calls();
    choices.push_back(std::move(choice));
  }
  return choices;
}

void Tuner::load(const std::vector<TuningChoice>& choices) {
  for (const TuningChoice& choice : choices)
    if (choice.ranks == setup_.ranks && choice.servers == setup_.servers &&
        choice.chosen < choice.tried.size())
      loaded_.push_back(choice);
}

void mark_forced(std::vector<TuningChoice>& choices, const Setting& forced) {
  for (TuningChoice& choice : choices) {
    const MeasuredSetting& used = choice.tried[choice.chosen];
    const bool is_requested =
        (forced.chunk_bytes > 0 && used.setting.chunk_bytes == forced.chunk_bytes) ||
        (forced.connections > 0 && used.setting.connections == forced.connections);
    const bool is_only = choice.reason == ChoiceReason::kOnlyOne ||
                         (choice.reason == ChoiceReason::kModel && used.predicted.value == 0);
    if (is_requested && is_only) choice.reason = ChoiceReason::kForced;
  }
}

}  // namespace regatta::comm
