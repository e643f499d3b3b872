#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "bench/platform_proofs/recorded_history.h"

namespace regatta::platform_proofs {
namespace {

constexpr std::size_t kSentencesMax = 10;

// The revisions that clients have seen, by the moment at which they were answered or asked for.
class RevisionTimes {
 public:
  void answered(std::int64_t ended_ns, std::int64_t revision) {
    answered_.emplace_back(ended_ns, revision);
  }
  void changed(std::int64_t called_ns, std::int64_t revision) {
    changed_.emplace_back(called_ns, revision);
  }
  void finish() {
    std::sort(answered_.begin(), answered_.end());
    for (std::size_t i = 1; i < answered_.size(); ++i)
      answered_[i].second = std::max(answered_[i].second, answered_[i - 1].second);
    std::sort(changed_.begin(), changed_.end());
    for (std::size_t i = changed_.size(); i-- > 1;)
      changed_[i - 1].second = std::min(changed_[i - 1].second, changed_[i].second);
  }
  // The highest that was answered before the moment.
  std::int64_t least_at(std::int64_t moment_ns) const {
    const auto after =
        std::lower_bound(answered_.begin(), answered_.end(), std::pair{moment_ns, std::int64_t{0}});
    return after == answered_.begin() ? 0 : std::prev(after)->second;
  }
  // The lowest of a change that was asked for after the moment.
  std::int64_t bound_at(std::int64_t moment_ns) const {
    const auto first =
        std::upper_bound(changed_.begin(), changed_.end(),
                         std::pair{moment_ns, std::numeric_limits<std::int64_t>::max()});
    return first == changed_.end() ? std::numeric_limits<std::int64_t>::max() : first->second;
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> answered_;
  std::vector<std::pair<std::int64_t, std::int64_t>> changed_;
};

class ListCheck {
 public:
  explicit ListCheck(const RecordedHistory& history) : history_(history) {
    for (const RecordedJobOperation& each : history.jobs)
      if (each.timed.is_answered && each.timed.operation.answer == JobAnswer::kDone) learn(each);
    for (const RecordedList& list : history.lists) {
      times_.answered(list.ended_ns, list.revision);
      for (const RecordedList::Item& item : list.items)
        see(item.job, item.fields);
    }
    times_.finish();
  }

  std::vector<std::string> check() {
    for (const RecordedList& list : history_.lists)
      check(list);
    return std::move(sentences_);
  }

 private:
  void complain(std::string sentence) {
    if (sentences_.size() < kSentencesMax) sentences_.push_back(std::move(sentence));
  }

  void learn(const RecordedJobOperation& each) {
    const JobOperation& operation = each.timed.operation;
    see(each.job, operation.seen);
    times_.answered(each.timed.ended_ns, operation.seen.revision);
    // This request and no other made the revision that it was answered with.
    if (operation.action == JobAction::kSetPriority)
      times_.changed(each.timed.called_ns, operation.seen.revision);
  }

  void see(std::uint32_t job, const JobFields& fields) {
    const auto [known, is_new] = seen_[job].emplace(fields.revision, fields);
    if (!is_new && known->second != fields)
      complain(
          fmt::format("job j{}: revision {} was seen with different fields", job, fields.revision));
    const auto [first, is_first] = ids_.emplace(fields.id, job);
    if (!is_first && first->second != job)
      complain(fmt::format("job {} has two names, j{} and j{}", fields.id, first->second, job));
  }

  void check(const RecordedList& list) {
    const std::int64_t revision = list.revision;
    if (revision < times_.least_at(list.called_ns))
      complain(fmt::format("the list of revision {} is older than what was answered before it",
                           revision));
    if (revision >= times_.bound_at(list.ended_ns))
      complain(fmt::format("the list of revision {} has changes that were asked for after it",
                           revision));
    std::int64_t last = std::numeric_limits<std::int64_t>::max();
    std::map<std::uint32_t, int> jobs;
    for (const RecordedList::Item& item : list.items) {
      if (item.fields.id >= last)
        complain(fmt::format("the list of revision {} is not in order", revision));
      last = item.fields.id;
      if (++jobs[item.job] > 1)
        complain(fmt::format("the list of revision {} has j{} twice", revision, item.job));
      check_item(revision, item);
    }
    check_complete(list, jobs);
  }

  void check_item(std::int64_t revision, const RecordedList::Item& item) {
    const auto& versions = seen_.at(item.job);
    const auto later = versions.upper_bound(item.fields.revision);
    if (item.fields.revision > revision)
      complain(fmt::format("the list of revision {} has j{} of revision {}", revision, item.job,
                           item.fields.revision));
    if (later != versions.end() && later->first <= revision)
      complain(fmt::format("the list of revision {} has j{} of revision {}, not of {}", revision,
                           item.job, item.fields.revision, later->first));
  }

  // All jobs that were known to exist at the list's revision, and belong on its page.
  void check_complete(const RecordedList& list, const std::map<std::uint32_t, int>& jobs) {
    for (auto known = ids_.lower_bound(std::max<std::int64_t>(list.next, 1)); known != ids_.end();
         ++known) {
      const auto first = seen_.at(known->second).begin();
      if (first->first <= list.revision && !jobs.contains(known->second))
        complain(
            fmt::format("the list of revision {} lacks job j{}", list.revision, known->second));
      // Jobs are made one after the other: later ones are of higher revisions.
      if (first->first > list.revision && known->first > newest_of(list) + kIdsAhead) break;
    }
  }
  static std::int64_t newest_of(const RecordedList& list) {
    return list.items.empty() ? 0 : list.items.front().fields.id;
  }

  static constexpr std::int64_t kIdsAhead = 100;

  const RecordedHistory& history_;
  std::map<std::uint32_t, std::map<std::int64_t, JobFields>> seen_;
  std::map<std::int64_t, std::uint32_t> ids_;
  RevisionTimes times_;
  std::vector<std::string> sentences_;
};

}  // namespace

std::vector<std::string> list_anomalies(const RecordedHistory& history) {
  return ListCheck(history).check();
}

}  // namespace regatta::platform_proofs
