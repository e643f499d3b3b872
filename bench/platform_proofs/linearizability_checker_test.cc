#include "bench/platform_proofs/linearizability_checker.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "bench/platform_proofs/object_models.h"

namespace regatta::platform_proofs {
namespace {

using JobHistory = std::vector<TimedOperation<JobOperation>>;
using IntentHistory = std::vector<TimedOperation<IntentOperation>>;

template <typename Model, typename History>
bool passes(const History& history) {
  return LinearizabilityChecker<Model>(history, {}).check().verdict ==
         HistoryVerdict::kLinearizable;
}

// The definition itself: some order of the operations, which keeps the order of those that do not
// overlap, gives all answers. Tries every order.
template <typename Model, typename History>
class OrderSearch {
 public:
  explicit OrderSearch(const History& history) : history_(history), done_(history.size()) {}
  bool passes(const typename Model::State& state = {}) {
    bool is_complete = true;
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if (done_[i]) continue;
      is_complete &= !history_[i].is_answered;
      if (!may_be_next(i)) continue;
      const auto next = Model::apply(state, history_[i].operation, history_[i].is_answered);
      if (!next) continue;
      done_[i] = true;
      const bool is_found = passes(*next);
      done_[i] = false;
      if (is_found) return true;
    }
    return is_complete;
  }

 private:
  bool may_be_next(std::size_t i) const {
    for (std::size_t j = 0; j < history_.size(); ++j) {
      if (!done_[j] && history_[j].is_answered && history_[j].ended_ns < history_[i].called_ns)
        return false;
      if (done_[j] && history_[i].ended_ns < history_[j].called_ns) return false;
    }
    return true;
  }

  const History& history_;
  std::vector<bool> done_;
};

// A job as the controller keeps it, written apart from the model.
struct TrueJob {
  JobFields fields;
  std::int64_t revisions = 100;

  void change() { fields.revision = ++revisions; }
  void answer(JobOperation& operation) {
    const JobAction action = operation.action;
    operation.answer = JobAnswer::kDone;
    if (action == JobAction::kCreate && fields.id == 0) {
      fields = {.id = 7, .priority = operation.priority, .is_held = true};
      change();
    } else if (action == JobAction::kSetPriority && operation.expected != fields.revision) {
      operation.answer = JobAnswer::kStale;
    } else if (fields.is_cancelled && action != JobAction::kCreate && action != JobAction::kRead &&
               action != JobAction::kCancel) {
      operation.answer = JobAnswer::kConflict;
    } else if (action == JobAction::kSetPriority) {
      fields.priority = operation.priority;
      change();
    } else if (action == JobAction::kHold || action == JobAction::kRelease) {
      if (fields.is_held == (action == JobAction::kRelease)) {
        fields.is_held = action == JobAction::kHold;
        change();
      }
    } else if (action == JobAction::kCancel && !fields.is_cancelled) {
      fields.is_cancelled = true;
      change();
    }
    if (operation.answer == JobAnswer::kDone) operation.seen = fields;
  }
};

// Up to eight operations around moments at which they take effect, one of six without an answer.
JobHistory random_history(std::mt19937& random) {
  JobHistory history;
  TrueJob job;
  const auto below = [&random](int bound) { return static_cast<int>(random() % bound); };
  const int length = 3 + below(6);
  for (int i = 0; i < length; ++i) {
    TimedOperation<JobOperation> timed;
    const std::int64_t moment = 10 * (i + 1);
    timed.called_ns = moment - below(25);
    timed.ended_ns = moment + below(25);
    timed.is_answered = i == 0 || below(6) != 0;
    JobOperation& operation = timed.operation;
    operation.action = i == 0 ? JobAction::kCreate : static_cast<JobAction>(below(6));
    operation.priority = below(3);
    operation.expected = job.fields.revision - (below(4) == 0 ? 1 : 0);
    if (timed.is_answered || below(2) == 0) job.answer(operation);
    if (!timed.is_answered) operation.answer = JobAnswer::kDone, operation.seen = {};
    history.push_back(timed);
  }
  return history;
}

void spoil(JobHistory& history, std::mt19937& random) {
  const auto pick = [&]() -> TimedOperation<JobOperation>& {
    return history[random() % history.size()];
  };
  JobOperation& operation = pick().operation;
  switch (random() % 7) {
    case 0:
      operation.seen = pick().operation.seen;
      break;
    case 1:
      operation.answer = static_cast<JobAnswer>(random() % 3);
      break;
    case 2:
      operation.seen.id = 8;
      break;
    case 3:
      std::swap(operation.seen.revision, pick().operation.seen.revision);
      break;
    case 4:
      operation.seen.priority = static_cast<int>(random() % 3);
      break;
    case 5:
      operation.seen.is_cancelled = !operation.seen.is_cancelled;
      break;
    default:
      std::swap(operation, pick().operation);
  }
}

TEST(LinearizabilityChecker, AgreesWithTheSearchOfAllOrders) {
  const unsigned seed = 20250725;
  std::mt19937 random(seed);
  int anomalies = 0;
  for (int round = 0; round < 6000; ++round) {
    JobHistory history = random_history(random);
    ASSERT_TRUE(passes<JobModel>(history)) << "seed " << seed << " round " << round;
    for (auto i = random() % 3; i > 0; --i)
      spoil(history, random);
    const bool is_expected = OrderSearch<JobModel, JobHistory>(history).passes();
    ASSERT_EQ(passes<JobModel>(history), is_expected) << "seed " << seed << " round " << round;
    anomalies += is_expected ? 0 : 1;
  }
  EXPECT_GT(anomalies, 1500);
  EXPECT_LT(anomalies, 4500);
}

TEST(LinearizabilityChecker, AgreesWithTheSearchOfAllOrdersForIntents) {
  const unsigned seed = 7;
  std::mt19937 random(seed);
  int anomalies = 0;
  for (int round = 0; round < 4000; ++round) {
    IntentHistory history(3 + random() % 5);
    for (auto& timed : history) {
      timed.called_ns = static_cast<std::int64_t>(random() % 60);
      timed.ended_ns = timed.called_ns + static_cast<std::int64_t>(random() % 30);
      timed.is_answered = random() % 6 != 0;
      timed.operation.action = static_cast<IntentOperation::Action>(random() % 3);
      timed.operation.node = static_cast<std::uint8_t>(random() % 2);
      timed.operation.intents = {static_cast<std::uint8_t>(random() % 2),
                                 static_cast<std::uint8_t>(random() % 2)};
    }
    const bool is_expected = OrderSearch<IntentModel, IntentHistory>(history).passes();
    ASSERT_EQ(passes<IntentModel>(history), is_expected) << "seed " << seed << " round " << round;
    anomalies += is_expected ? 0 : 1;
  }
  EXPECT_GT(anomalies, 400);
  EXPECT_LT(anomalies, 3600);
}

// A history of operations one after the other, but for those that a test moves.
class PlantedAnomaly : public ::testing::Test {
 protected:
  PlantedAnomaly() {
    add({.action = JobAction::kCreate, .seen = at_revision(101, 0)});
    add({.action = JobAction::kSetPriority,
         .priority = 1,
         .expected = 101,
         .seen = at_revision(102, 1)});
    add({.action = JobAction::kRead, .seen = at_revision(102, 1)});
  }
  static JobFields at_revision(std::int64_t revision, int priority) {
    return {.id = 7, .revision = revision, .priority = priority, .is_held = true};
  }
  void add(const JobOperation& operation) {
    const auto moment = static_cast<std::int64_t>(10 * history_.size());
    history_.push_back({moment, moment + 5, true, operation});
  }
  bool passes() const { return platform_proofs::passes<JobModel>(history_); }
  JobHistory history_;
};

TEST_F(PlantedAnomaly, IsNotSeenWhereThereIsNone) {
  EXPECT_TRUE(passes());
}

TEST_F(PlantedAnomaly, OfALostUpdateIsSeen) {
  add({.action = JobAction::kSetPriority,
       .priority = 2,
       .expected = 101,
       .seen = at_revision(103, 2)});
  EXPECT_FALSE(passes());
}

TEST_F(PlantedAnomaly, OfAStaleReadIsSeen) {
  add({.action = JobAction::kRead, .seen = at_revision(101, 0)});
  EXPECT_FALSE(passes());
  history_.back().called_ns = 8;  // beside the update it is none
  EXPECT_TRUE(passes());
}

TEST_F(PlantedAnomaly, OfADirtyReadIsSeen) {
  add({.action = JobAction::kSetPriority,
       .answer = JobAnswer::kStale,
       .priority = 9,
       .expected = 101});
  EXPECT_TRUE(passes());
  add({.action = JobAction::kRead, .seen = at_revision(103, 9)});
  EXPECT_FALSE(passes());
}

TEST_F(PlantedAnomaly, OfADuplicatedCreateIsSeen) {
  add({.action = JobAction::kCreate, .seen = at_revision(102, 1)});
  EXPECT_TRUE(passes());
  history_.back().operation.seen.id = 8;
  EXPECT_FALSE(passes());
}

TEST_F(PlantedAnomaly, OfReorderedWritesIsSeen) {
  add({.action = JobAction::kRelease,
       .seen = {.id = 7, .revision = 103, .priority = 1, .is_held = false}});
  add({.action = JobAction::kHold, .seen = at_revision(104, 1)});
  EXPECT_TRUE(passes());
  std::swap(history_[3].operation, history_[4].operation);
  EXPECT_FALSE(passes());
}

TEST_F(PlantedAnomaly, OfAReadOfTheFutureIsSeen) {
  add({.action = JobAction::kRead, .seen = at_revision(103, 2)});
  add({.action = JobAction::kSetPriority,
       .priority = 2,
       .expected = 102,
       .seen = at_revision(103, 2)});
  EXPECT_FALSE(passes());
  history_[4].called_ns = 34;
  EXPECT_TRUE(passes());
}

TEST_F(PlantedAnomaly, OfALostAcknowledgedWriteIsSeen) {
  add({.action = JobAction::kCancel,
       .seen = {.id = 7, .revision = 103, .priority = 1, .is_held = true, .is_cancelled = true}});
  add({.action = JobAction::kRead, .seen = at_revision(102, 1)});
  EXPECT_FALSE(passes());
  history_[3].is_answered = false;  // without its answer it may never have taken effect
  EXPECT_TRUE(passes());
}

TEST_F(PlantedAnomaly, OfAWriteAfterItsProcessEndedIsSeen) {
  add({.action = JobAction::kSetPriority, .priority = 5, .expected = 102});
  history_.back().is_answered = false;
  add({.action = JobAction::kRead, .seen = at_revision(102, 1)});
  add({.action = JobAction::kRead, .seen = at_revision(103, 5)});
  EXPECT_FALSE(passes());
  history_[3].ended_ns = 52;
  EXPECT_TRUE(passes());
}

TEST(LinearizabilityChecker, SeesAListThatIsNoMomentOfTwoNodes) {
  using Action = IntentOperation::Action;
  IntentHistory history = {{0, 5, true, {Action::kSet, 0, {1, 0}}},
                           {10, 15, true, {Action::kSet, 1, {1, 0}}},
                           {1, 20, true, {Action::kReadAll, 0, {0, 1}}}};
  EXPECT_FALSE(passes<IntentModel>(history));
  history[2].operation.intents = {1, 0};
  EXPECT_TRUE(passes<IntentModel>(history));
}

}  // namespace
}  // namespace regatta::platform_proofs
