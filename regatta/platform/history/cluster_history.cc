#include "regatta/platform/history/cluster_history.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/process.h"
#include "regatta/platform/history/internal/history_file.h"

namespace regatta::history {
namespace {

constexpr Seconds kGroupTime{0.2};  // changes of so long are written together
constexpr Seconds kTrimEvery{60};
constexpr int kNice = 10;
constexpr std::size_t kStoriesMax = 20'000;  // of one transaction

std::int64_t unix_now_ms() {
  return static_cast<std::int64_t>(os::system_now().value * 1000);
}

// Changes of one moment.
struct Batch {
  std::vector<store::Change> changes;
  std::int64_t time_ms = 0;
  bool is_old = false;
  std::size_t bytes = 0;
};

std::size_t bytes_of(const std::vector<store::Change>& changes) {
  std::size_t bytes = 0;
  for (const store::Change& change : changes)
    bytes += sizeof(change) + change.key.size() + (change.value ? change.value->size() : 0);
  return bytes;
}

ChangeStory own_event(std::string_view reason, std::string text) {
  ChangeStory story;
  story.events.push_back({.id = 0,
                          .time_ms = unix_now_ms(),
                          .revision = 0,
                          .kind = "history",
                          .object = "",
                          .reason = std::string(reason),
                          .text = std::move(text)});
  return story;
}

}  // namespace

struct ClusterHistory::Impl {
  Impl(HistoryOptions given, HistoryFile opened, ReadPlace read)
      : options(std::move(given)), file(std::move(opened)), place(read), reader(read.job) {}

  void run() {
    // Work that people wait for goes before it.
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
    for (;;) {
      std::deque<Batch> batches;
      std::deque<std::function<void()>> questions;
      bool ends = false;
      long long left_out = 0;
      {
        MutexLock lock(mutex);
        changed.wait_for(lock, kTrimEvery, [this]() REGATTA_REQUIRES(mutex) { return has_work(); });
        // A group forms, but nobody waits for it.
        if (!is_ended && asked.empty())
          changed.wait_for(lock, kGroupTime,
                           [this]() REGATTA_REQUIRES(mutex) { return is_ended || !asked.empty(); });
        batches.swap(waiting);
        questions.swap(asked);
        waiting_bytes = 0;
        left_out = std::exchange(dropped, 0);
        ends = is_ended;
      }
      write(batches, left_out);
      for (const auto& question : questions)
        question();
      if (ends) return;
      trim_when_due();
    }
  }

  bool has_work() const REGATTA_REQUIRES(mutex) {
    return is_ended || !waiting.empty() || !asked.empty();
  }

  void write(const std::deque<Batch>& batches, long long left_out) {
    std::vector<ChangeStory> stories;
    if (left_out > 0)
      stories.push_back(own_event(
          "incomplete", fmt::format("{} changes came faster than the disk took them, and their "
                                    "events are missing",
                                    left_out)));
    for (const Batch& batch : batches) {
      for (const store::Change& change : batch.changes) {
        auto story = reader.read(change, batch.time_ms, batch.is_old);
        if (!story)
          os::log_error(story.error().message);
        else if (!story->events.empty() || story->ended)
          stories.push_back(std::move(*story));
        place.revision = std::max(place.revision, change.revision);
        if (stories.size() >= kStoriesMax) write_stories(stories);
      }
    }
    if (!batches.empty() || !stories.empty()) write_stories(stories);
  }

  // The history may not hold the controller up, so it leaves out events that it cannot write.
  void write_stories(std::vector<ChangeStory>& stories) {
    place.job = reader.last_job();
    const Status status = file.write(stories, place);
    if (!status && std::exchange(last_error, status.error().message) != status.error().message)
      os::log_error("history: not written: " + status.error().message);
    if (status) last_error.clear();
    stories.clear();
  }

  void trim_when_due() {
    const Seconds now = os::monotonic_now();
    if (now - trimmed < kTrimEvery) return;
    trimmed = now;
    const auto kept_ms = static_cast<std::int64_t>(options.kept.value * 1000);
    if (const Status status = file.trim(unix_now_ms() - kept_ms, options.size_most); !status)
      os::log_error("history: old events stay: " + status.error().message);
  }

  void ask(std::function<void()> question) REGATTA_EXCLUDES(mutex) {
    {
      MutexLock lock(mutex);
      asked.push_back(std::move(question));
    }
    changed.notify_one();
  }

  const HistoryOptions options;
  store::Revision opened_at = 0;
  // These belong to the thread.
  HistoryFile file;
  ReadPlace place;
  ChangeReader reader;
  std::string last_error;
  Seconds trimmed{-kTrimEvery.value};

  Mutex mutex;
  ConditionVariable changed;
  std::deque<Batch> waiting REGATTA_GUARDED_BY(mutex);
  std::size_t waiting_bytes REGATTA_GUARDED_BY(mutex) = 0;
  long long dropped REGATTA_GUARDED_BY(mutex) = 0;  // changes, since the last group
  std::deque<std::function<void()>> asked REGATTA_GUARDED_BY(mutex);
  bool is_ended REGATTA_GUARDED_BY(mutex) = false;
  std::thread thread;
};

Result<std::unique_ptr<ClusterHistory>> ClusterHistory::open(HistoryOptions options) {
  auto file = HistoryFile::open(options.path);
  std::string damage;
  if (!file && file.error().code == Code::kInvalidInput) {
    damage = file.error().message;
    for (const char* end : {"-wal", "-shm"})
      std::remove((options.path + end).c_str());
    std::rename(options.path.c_str(), (options.path + ".damaged").c_str());
    file = HistoryFile::open(options.path);
  }
  if (!file) return file.error();
  REGATTA_TRY(place, file->read_place());
  auto impl = std::make_unique<Impl>(std::move(options), std::move(*file), place);
  impl->opened_at = place.revision;
  if (!damage.empty()) {
    os::log_error(damage + "; the history begins anew");
    const ChangeStory story = own_event("lost", "the earlier history is lost: " + damage);
    REGATTA_TRY_DO(impl->file.write({&story, 1}, place));
  }
  impl->thread = os::signal_masked_thread([self = impl.get()] { self->run(); });
  return std::unique_ptr<ClusterHistory>(new ClusterHistory(std::move(impl)));
}

ClusterHistory::ClusterHistory(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ClusterHistory::~ClusterHistory() {
  {
    MutexLock lock(impl_->mutex);
    impl_->is_ended = true;
  }
  impl_->changed.notify_one();
  impl_->thread.join();
}

store::Revision ClusterHistory::opened_at() const {
  return impl_->opened_at;
}

void ClusterHistory::learn(std::vector<ToldObject> objects) {
  impl_->ask([impl = impl_.get(), objects = std::move(objects)] {
    for (const ToldObject& object : objects)
      impl->reader.learn(object);
  });
}

void ClusterHistory::add(std::vector<store::Change> changes, std::int64_t time_ms, bool is_old) {
  if (changes.empty()) return;
  Batch batch{.changes = std::move(changes), .time_ms = time_ms, .is_old = is_old, .bytes = 0};
  batch.bytes = bytes_of(batch.changes);
  {
    MutexLock lock(impl_->mutex);
    impl_->waiting_bytes += batch.bytes;
    impl_->waiting.push_back(std::move(batch));
    const auto most = static_cast<std::size_t>(impl_->options.waiting_most.value);
    while (impl_->waiting_bytes > most && impl_->waiting.size() > 1) {
      impl_->waiting_bytes -= impl_->waiting.front().bytes;
      impl_->dropped += static_cast<long long>(impl_->waiting.front().changes.size());
      impl_->waiting.pop_front();
    }
  }
  impl_->changed.notify_one();
}

void ClusterHistory::find_events(EventFilter filter,
                                 std::function<void(Result<std::vector<PastEvent>>)> handler) {
  impl_->ask([impl = impl_.get(), filter = std::move(filter), handler = std::move(handler)] {
    handler(impl->file.find_events(filter));
  });
}

void ClusterHistory::find_attempts(control::JobId job,
                                   std::function<void(Result<std::vector<PastAttempt>>)> handler) {
  impl_->ask([impl = impl_.get(), job, handler = std::move(handler)] {
    handler(impl->file.find_attempts(job));
  });
}

}  // namespace regatta::history
