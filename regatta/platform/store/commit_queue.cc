#include "regatta/platform/store/commit_queue.h"

#include <deque>
#include <iterator>
#include <thread>
#include <utility>

#include "regatta/base/core/mutex.h"
#include "regatta/base/os/process.h"

namespace regatta::store {

struct CommitQueue::Impl {
  struct Copy {
    std::string path;
    std::function<void(const Status&)> done;
  };

  Impl(std::unique_ptr<Store> opened, CommitQueueOptions given,
       std::function<void(const CommitReport&)> function)
      : store(std::move(opened)), options(given), report(std::move(function)) {}

  void run() {
    for (;;) {
      std::vector<Change> group = next_group();
      make_copies();
      if (group.empty() && is_stopped()) return;
      const bool goes_on = group.empty() ? maintain() : commit(group);
      if (!goes_on) return end();
    }
  }

  // Waits for transactions; empty when none came in time, or after stop().
  std::vector<Change> next_group() REGATTA_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    added.wait_for(lock, options.maintain_after, [this]() REGATTA_REQUIRES(mutex) {
      return !transactions.empty() || !copies.empty() || stopped;
    });
    std::vector<Change> group;
    while (!transactions.empty()) {
      std::vector<Change>& next = transactions.front();
      if (!group.empty() && group.size() + next.size() > options.changes_max) break;
      if (group.empty())
        group = std::move(next);
      else
        group.insert(group.end(), std::move_iterator(next.begin()), std::move_iterator(next.end()));
      transactions.pop_front();
    }
    return group;
  }

  void make_copies() REGATTA_EXCLUDES(mutex) {
    std::vector<Copy> due;
    {
      MutexLock lock(mutex);
      due.swap(copies);
    }
    for (const Copy& copy : due)
      copy.done(store->copy_to(copy.path));
  }

  // Whether the queue goes on.
  bool commit(const std::vector<Change>& group) {
    for (;;) {
      const Status status = store->commit(group);
      if (status) {
        durable = group.back().revision;
        MutexLock lock(mutex);
        waiting -= group.size();
      }
      report({durable, status});
      if (status) return true;
      if (status.error().code != Code::kExhausted || !wait_for_space()) return false;
    }
  }

  bool maintain() {
    const Status status = store->maintain();
    const bool is_fatal = !status && status.error().code != Code::kExhausted;
    if (is_fatal) report({durable, status});
    return !is_fatal;
  }

  // False once the queue is stopped.
  bool wait_for_space() REGATTA_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    return !added.wait_for(lock, options.retry_after,
                           [this]() REGATTA_REQUIRES(mutex) { return stopped; });
  }

  bool is_stopped() const REGATTA_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    return stopped && transactions.empty();
  }

  void end() REGATTA_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    ended = true;
    transactions.clear();
  }

  // Constant after construction, but for the store, which belongs to the thread.
  const std::unique_ptr<Store> store;
  const CommitQueueOptions options;
  const std::function<void(const CommitReport&)> report;
  Revision durable = 0;  // the thread's
  std::thread thread;

  mutable Mutex mutex;
  ConditionVariable added;
  std::deque<std::vector<Change>> transactions REGATTA_GUARDED_BY(mutex);
  std::vector<Copy> copies REGATTA_GUARDED_BY(mutex);
  std::size_t waiting REGATTA_GUARDED_BY(mutex) = 0;  // with those of the commit under way
  bool stopped REGATTA_GUARDED_BY(mutex) = false;
  bool ended REGATTA_GUARDED_BY(mutex) = false;
};

CommitQueue::CommitQueue(std::unique_ptr<Store> store, CommitQueueOptions options,
                         std::function<void(const CommitReport&)> report)
    : impl_(std::make_unique<Impl>(std::move(store), options, std::move(report))) {
  impl_->thread = os::signal_masked_thread([impl = impl_.get()] { impl->run(); });
}

CommitQueue::~CommitQueue() {
  {
    MutexLock lock(impl_->mutex);
    impl_->stopped = true;
  }
  impl_->added.notify_one();
  impl_->thread.join();
}

void CommitQueue::add(std::vector<Change> transaction) {
  if (transaction.empty()) return;
  {
    MutexLock lock(impl_->mutex);
    if (impl_->ended) return;
    impl_->waiting += transaction.size();
    impl_->transactions.push_back(std::move(transaction));
  }
  impl_->added.notify_one();
}

void CommitQueue::copy_to(std::string path, std::function<void(const Status&)> done) {
  {
    MutexLock lock(impl_->mutex);
    impl_->copies.push_back({std::move(path), std::move(done)});
  }
  impl_->added.notify_one();
}

Seconds CommitQueue::leads_until() const {
  return impl_->store->leads_until();
}

std::size_t CommitQueue::waiting_changes() const {
  MutexLock lock(impl_->mutex);
  return impl_->waiting;
}

}  // namespace regatta::store
