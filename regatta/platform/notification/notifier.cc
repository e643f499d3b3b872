#include "regatta/platform/notification/notifier.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/process.h"
#include "regatta/platform/notification/internal/transfer.h"

namespace regatta::notification {
namespace {

constexpr int kDoublingsMost = 30;
constexpr Seconds kLongWait{3600};

// Counts the receivers that do not have the message yet.
struct Pending {
  Message message;
  std::function<void()> done;
  std::size_t receivers = 0;
};

struct Receiver {
  std::size_t index = 0;  // of the webhooks, then of the mails
  std::deque<std::shared_ptr<Pending>> waiting;
  int failures = 0;
  int tries = 0;  // of the first message
  Seconds due;
};

}  // namespace

Seconds pause_after(int failures, const NotifierOptions& options) {
  const double doubled = std::exp2(std::min(std::max(failures, 1) - 1, kDoublingsMost));
  return std::min(options.first_pause * doubled, options.longest_pause);
}

struct Notifier::Impl {
  explicit Impl(NotifierOptions given) : options(std::move(given)) {
    receivers.resize(options.webhooks.size() + options.mails.size());
    for (std::size_t i = 0; i < receivers.size(); ++i)
      receivers[i].index = i;
    thread = os::signal_masked_thread([this] { run(); });
  }

  Status transfer(std::size_t index, const Message& message) {
    if (index < options.webhooks.size())
      return post(options.webhooks[index], message, options.limit, stops);
    return mail(options.mails[index - options.webhooks.size()], message, options.limit, stops);
  }
  std::string name_of(std::size_t index) const {
    return index < options.webhooks.size() ? options.webhooks[index].url
                                           : options.mails[index - options.webhooks.size()].url;
  }

  void finish(const std::shared_ptr<Pending>& pending) REGATTA_REQUIRES(mutex) {
    if (--pending->receivers == 0) finished.push_back(std::move(pending->done));
  }

  // The receiver whose message is due, or null and how long to wait.
  Receiver* next(Seconds& wait) REGATTA_REQUIRES(mutex) {
    wait = kLongWait;
    for (Receiver& receiver : receivers) {
      if (receiver.waiting.empty()) continue;
      const Seconds left = receiver.due - os::monotonic_now();
      if (left.value <= 0) return &receiver;
      wait = std::min(wait, left);
    }
    return nullptr;
  }

  void note(Receiver& receiver, const Status& status) REGATTA_REQUIRES(mutex) {
    ++receiver.tries;
    if (status) {
      ++stats.sent;
      receiver.failures = 0;
    } else {
      ++stats.failures;
      ++receiver.failures;
      receiver.due = os::monotonic_now() + pause_after(receiver.failures, options);
      os::log_warning(fmt::format("message to {}: {}", printable(name_of(receiver.index), 100),
                                  printable(status.error().message, 200)));
      // A receiver that refuses a message will refuse it again.
      const bool is_refused = status.error().code == Code::kInvalidInput;
      if (receiver.tries < options.tries_max && !is_refused) return;
      ++stats.given_up;
    }
    receiver.tries = 0;
    finish(receiver.waiting.front());
    receiver.waiting.pop_front();
  }

  void run() {
    MutexLock lock(mutex);
    while (!stops.load()) {
      while (!finished.empty()) {
        const auto done = std::move(finished.back());
        finished.pop_back();
        lock.unlock();
        if (done) done();
        lock.lock();
      }
      Seconds wait;
      Receiver* const receiver = next(wait);
      if (receiver == nullptr) {
        changed.wait_for(lock, wait,
                         [this]() REGATTA_REQUIRES(mutex) { return is_new || stops.load(); });
        is_new = false;
        continue;
      }
      const std::shared_ptr<Pending> pending = receiver->waiting.front();
      lock.unlock();
      const Status status = transfer(receiver->index, pending->message);
      lock.lock();
      note(*receiver, status);
    }
  }

  // Constant after construction.
  NotifierOptions options;
  std::atomic<bool> stops = false;
  Mutex mutex;
  ConditionVariable changed;
  bool is_new REGATTA_GUARDED_BY(mutex) = false;
  std::vector<Receiver> receivers REGATTA_GUARDED_BY(mutex);
  std::vector<std::function<void()>> finished REGATTA_GUARDED_BY(mutex);
  NotifierStats stats REGATTA_GUARDED_BY(mutex);
  std::thread thread;
};

Notifier::Notifier(NotifierOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

Notifier::~Notifier() {
  {
    const MutexLock lock(impl_->mutex);
    impl_->stops = true;
    impl_->changed.notify_all();
  }
  impl_->thread.join();
}

void Notifier::send(Message message, std::function<void()> done) {
  const MutexLock lock(impl_->mutex);
  auto pending = std::make_shared<Pending>();
  pending->message = std::move(message);
  pending->done = std::move(done);
  for (Receiver& receiver : impl_->receivers) {
    if (receiver.waiting.size() >= impl_->options.waiting_max) {
      ++impl_->stats.given_up;
      continue;
    }
    ++pending->receivers;
    receiver.waiting.push_back(pending);
  }
  if (pending->receivers == 0) impl_->finished.push_back(std::move(pending->done));
  impl_->is_new = true;
  impl_->changed.notify_all();
}

NotifierStats Notifier::stats() const {
  const MutexLock lock(impl_->mutex);
  return impl_->stats;
}

}  // namespace regatta::notification
