#include "regatta/platform/store/commit_queue.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/core/mutex.h"
#include "regatta/platform/store/test_records.h"

namespace regatta::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Records what the store's thread does, and decides what happens to it.
class StoreControl {
 public:
  // Answers of the next commits, in order; a commit without one succeeds.
  void answer(std::vector<Status> answers) REGATTA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    answers_ = std::move(answers);
  }
  void hold() REGATTA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    is_held_ = true;
  }
  void release() REGATTA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    is_held_ = false;
    changed_.notify_all();
  }
  void wait_for_commits(std::size_t count) REGATTA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&]() REGATTA_REQUIRES(mutex_) { return groups_.size() >= count; });
  }
  void wait_for_reports(std::size_t count) REGATTA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&]() REGATTA_REQUIRES(mutex_) { return reports_.size() >= count; });
  }
  void wait_for_maintenance() REGATTA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&]() REGATTA_REQUIRES(mutex_) { return maintained_ > 0; });
  }
  // The number of changes of each commit, also of those that failed.
  std::vector<std::size_t> groups() REGATTA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return groups_;
  }
  // The durable revision of each report, and "full" or "failed" where there was an error.
  std::vector<std::string> reports() REGATTA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return reports_;
  }

  Status commit(std::span<const Change> changes) REGATTA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    groups_.push_back(changes.size());
    changed_.notify_all();
    changed_.wait(lock, [&]() REGATTA_REQUIRES(mutex_) { return !is_held_; });
    if (answers_.empty()) return {};
    const Status next = answers_.front();
    answers_.erase(answers_.begin());
    return next;
  }
  void report(const CommitReport& report) REGATTA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::string text = std::to_string(report.durable);
    if (!report.status)
      text += report.status.error().code == Code::kExhausted ? " full" : " failed";
    reports_.push_back(text);
    changed_.notify_all();
  }
  void maintain() REGATTA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ++maintained_;
    changed_.notify_all();
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Status> answers_ REGATTA_GUARDED_BY(mutex_);
  bool is_held_ REGATTA_GUARDED_BY(mutex_) = false;
  std::vector<std::size_t> groups_ REGATTA_GUARDED_BY(mutex_);
  std::vector<std::string> reports_ REGATTA_GUARDED_BY(mutex_);
  int maintained_ REGATTA_GUARDED_BY(mutex_) = 0;
};

class ControlledStore final : public Store {
 public:
  explicit ControlledStore(StoreControl& control) : control_(control) {}
  Result<Revision> load(const std::function<Status(const Record&)>&) override { return 0; }
  Status commit(std::span<const Change> changes) override { return control_.commit(changes); }
  Status maintain() override {
    control_.maintain();
    return {};
  }
  Status backup_status() const override { return {}; }

 private:
  StoreControl& control_;
};

class CommitQueueTest : public testing::Test {
 protected:
  std::unique_ptr<CommitQueue> start(CommitQueueOptions options = {}) {
    return std::make_unique<CommitQueue>(
        std::make_unique<ControlledStore>(control_), options,
        [this](const CommitReport& report) { control_.report(report); });
  }

  StoreControl control_;
};

std::vector<Change> changes(Revision first, int count) {
  std::vector<Change> list;
  for (int i = 0; i < count; ++i)
    list.push_back(put("job/1", first + i, "a"));
  return list;
}

const Status kFull = Error{Code::kExhausted, "full"};
const Status kFailed = Error{Code::kUnavailable, "failed"};

TEST_F(CommitQueueTest, GroupsWhatArrivesDuringACommit) {
  control_.hold();
  auto queue = start({.changes_max = 5});
  queue->add(changes(1, 1));
  control_.wait_for_commits(1);
  queue->add(changes(2, 2));
  queue->add({});
  queue->add(changes(4, 3));
  queue->add(changes(7, 1));
  EXPECT_EQ(queue->waiting_changes(), 7U);
  control_.release();
  control_.wait_for_reports(3);
  EXPECT_EQ(queue->waiting_changes(), 0U);
  EXPECT_THAT(control_.groups(), ElementsAre(1, 5, 1));
  EXPECT_THAT(control_.reports(), ElementsAre("1", "6", "7"));
}

TEST_F(CommitQueueTest, KeepsATransactionOfAnySizeTogether) {
  auto queue = start({.changes_max = 5});
  queue->add(changes(1, 9));
  control_.wait_for_reports(1);
  EXPECT_THAT(control_.groups(), ElementsAre(9));
}

TEST_F(CommitQueueTest, CommitsWhatWaitsBeforeItEnds) {
  control_.hold();
  auto queue = start();
  queue->add(changes(1, 1));
  control_.wait_for_commits(1);
  queue->add(changes(2, 1));
  std::thread ender([&] { queue.reset(); });
  control_.release();
  ender.join();
  EXPECT_THAT(control_.reports(), ElementsAre("1", "2"));
}

TEST_F(CommitQueueTest, TriesAgainUntilTheDiskHasSpace) {
  control_.answer({kFull, kFull, {}});
  auto queue = start({.retry_after = Seconds{0.001}});
  queue->add(changes(1, 2));
  control_.wait_for_reports(3);
  EXPECT_THAT(control_.reports(), ElementsAre("0 full", "0 full", "2"));
  EXPECT_THAT(control_.groups(), ElementsAre(2, 2, 2));
  EXPECT_EQ(queue->waiting_changes(), 0U);
}

TEST_F(CommitQueueTest, EndsWhileTheDiskIsFull) {
  control_.answer({kFull, kFull, kFull, kFull});
  auto queue = start({.retry_after = Seconds{60}});
  queue->add(changes(1, 2));
  control_.wait_for_reports(1);
  queue.reset();
  EXPECT_THAT(control_.reports(), ElementsAre("0 full"));
}

TEST_F(CommitQueueTest, CommitsNothingAfterAFailedCommit) {
  control_.answer({{}, kFailed});
  auto queue = start();
  queue->add(changes(1, 1));
  control_.wait_for_reports(1);
  queue->add(changes(2, 1));
  control_.wait_for_reports(2);
  queue->add(changes(3, 1));
  queue.reset();
  EXPECT_THAT(control_.reports(), ElementsAre("1", "1 failed"));
  EXPECT_THAT(control_.groups(), ElementsAre(1, 1));
}

TEST_F(CommitQueueTest, MaintainsTheStoreWhenNothingWaits) {
  auto queue = start({.maintain_after = Seconds{0.001}});
  control_.wait_for_maintenance();
  EXPECT_THAT(control_.groups(), IsEmpty());
}

TEST_F(CommitQueueTest, CommitsAllThatManyThreadsAdd) {
  Mutex mutex;
  Revision revision = 0;
  auto queue = start();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        MutexLock lock(mutex);
        queue->add({put("job/1", ++revision, "a")});
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  queue.reset();
  EXPECT_EQ(control_.reports().back(), "2000");
  std::size_t sum = 0;
  for (const std::size_t count : control_.groups())
    sum += count;
  EXPECT_EQ(sum, 2000U);
}

}  // namespace
}  // namespace regatta::store
