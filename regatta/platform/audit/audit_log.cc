#include "regatta/platform/audit/audit_log.h"

#include <cstdio>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::audit {
namespace {

constexpr Seconds kRetryAfter{1};

// The file that lines are added to; belongs to one thread.
class AuditWriter {
 public:
  AuditWriter(AuditLogOptions options, AuditHead head, AuditFile file, std::size_t bytes)
      : options_(std::move(options)),
        head_(std::move(head)),
        path_(std::move(file.path)),
        bytes_(bytes) {}

  const AuditHead& head() const { return head_; }

  // All of them are durable, or nothing has changed.
  Status write(const std::vector<AuditRecord>& records) {
    REGATTA_TRY_DO(open_file(records.front().number));
    AuditHead head = head_;
    std::string text;
    for (const AuditRecord& record : records) {
      const AuditLink link = link_record(record, head.hash);
      text += audit_line(link);
      text += '\n';
      head = {record.number, link.hash};
    }
    const Status written = os::write_all_at(file_.get(), text, bytes_, path_);
    if (!written || ::fdatasync(file_.get()) != 0) {
      const Error error = written ? os::errno_error(path_) : written.error();
      static_cast<void>(::ftruncate(file_.get(), static_cast<off_t>(bytes_)));
      return error;
    }
    bytes_ += text.size();
    head_ = std::move(head);
    return {};
  }

 private:
  Status open_file(std::int64_t first) {
    const bool is_full = bytes_ >= options_.file_bytes_max;
    if (file_ && !is_full) return {};
    if (path_.empty() || is_full) {
      file_ = os::UniqueFd();
      path_ = options_.folder + "/" + audit_file_name(first);
      bytes_ = 0;
    }
    file_ = os::UniqueFd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!file_) return os::errno_error(path_);
    // The bytes behind the last whole line: no answer rests on them.
    if (::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0) return os::errno_error(path_);
    const os::UniqueFd folder(::open(options_.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder || ::fsync(folder.get()) != 0) return os::errno_error(options_.folder);
    return {};
  }

  AuditLogOptions options_;
  AuditHead head_;
  std::string path_;
  std::size_t bytes_ = 0;
  os::UniqueFd file_;
};

}  // namespace

struct AuditLog::Impl {
  Impl(http::EventLoop& event_loop, std::string its_folder, AuditWriter its_writer)
      : loop(event_loop), folder(std::move(its_folder)), writer(std::move(its_writer)) {}

  void post(std::function<void()> work) {
    loop.post([work = std::move(work), alive = alive] {
      if (!alive.expired()) work();
    });
  }

  void run() {
    while (true) {
      std::vector<AuditRecord> group;
      std::vector<std::function<void()>> reads_now;
      {
        MutexLock lock(mutex);
        changed.wait(lock, [this]() REGATTA_REQUIRES(mutex) {
          return is_ended || !waiting.empty() || !reads.empty();
        });
        if (is_ended && waiting.empty()) return;
        group = std::exchange(waiting, {});
        reads_now = std::exchange(reads, {});
      }
      if (!group.empty() && !write(group)) return;
      for (const auto& read : reads_now)
        read();
    }
  }

  // False: the log ends, and the records cannot be written.
  bool write(const std::vector<AuditRecord>& group) {
    while (true) {
      const Status status = writer.write(group);
      post([this, status, head = writer.head()] { written(status, head); });
      if (status) return true;
      MutexLock lock(mutex);
      changed.wait_for(lock, kRetryAfter, [this]() REGATTA_REQUIRES(mutex) { return is_ended; });
      if (is_ended) return false;
    }
  }

  void written(const Status& status, const AuditHead& head) {
    is_stuck = !status;
    if (!status) return;
    durable = head;
    while (!answers.empty() && answers.begin()->first <= durable.number) {
      const auto work = std::move(answers.begin()->second);
      answers.erase(answers.begin());
      work();
    }
    if (handler) handler();
  }

  http::EventLoop& loop;
  std::string folder;
  std::string damage;
  std::int64_t last = 0;  // number of the last record that was added
  AuditHead durable;
  bool is_stuck = false;
  std::multimap<std::int64_t, std::function<void()>> answers;
  std::function<void()> handler;
  std::shared_ptr<int> life = std::make_shared<int>(0);
  const std::weak_ptr<int> alive = life;  // for the thread: `life` belongs to the loop's
  AuditWriter writer;                     // the thread's
  Mutex mutex;
  ConditionVariable changed;
  std::vector<AuditRecord> waiting REGATTA_GUARDED_BY(mutex);
  std::vector<std::function<void()>> reads REGATTA_GUARDED_BY(mutex);
  bool is_ended REGATTA_GUARDED_BY(mutex) = false;
  std::thread thread;
};

namespace {

// A file that ended with its first line under way has none that an answer rests on.
Result<std::vector<AuditFile>> files_with_records(const std::string& folder) {
  std::vector<AuditFile> files = list_audit_files(folder);
  while (!files.empty()) {
    REGATTA_TRY(text, os::read_file(files.back().path));
    if (text.find('\n') != std::string::npos) break;
    REGATTA_TRY_DO(os::remove_tree(files.back().path));
    files.pop_back();
  }
  return files;
}

}  // namespace

Result<std::unique_ptr<AuditLog>> AuditLog::open(http::EventLoop& loop, AuditLogOptions options,
                                                 const AuditHead& known) {
  REGATTA_TRY_DO(os::make_folder(options.folder, 0700));
  AuditHead head = known;
  AuditFile last;
  std::size_t bytes = 0;
  std::string damage;
  REGATTA_TRY(files, files_with_records(options.folder));
  if (!files.empty()) {
    const auto check = check_audit_files({files.back()}, {.number = -1, .hash = {}});
    if (!check) {
      damage = check.error().message;
      // It is kept for those who look into it; the chain goes on in another file.
      const std::string& path = files.back().path;
      if (std::rename(path.c_str(), (path + ".damaged").c_str()) != 0) return os::errno_error(path);
    } else if (check->head.number < known.number) {
      damage = fmt::format("the records {} to {} are missing at the end", check->head.number + 1,
                           known.number);
    } else {
      head = check->head;
      last = files.back();
      bytes = check->last_bytes;
    }
  } else if (known.number > 0) {
    damage = fmt::format("the records 1 to {} are missing", known.number);
  }
  std::string folder = options.folder;
  auto impl = std::make_unique<Impl>(loop, std::move(folder),
                                     AuditWriter(std::move(options), head, std::move(last), bytes));
  impl->durable = head;
  impl->last = head.number;
  impl->damage = damage;
  impl->thread = os::signal_masked_thread([self = impl.get()] { self->run(); });
  auto log = std::unique_ptr<AuditLog>(new AuditLog(std::move(impl)));
  if (!damage.empty())
    log->add({.user = {}, .token = {}, .address = {}, .action = "audit damaged", .object = damage});
  return log;
}

AuditLog::AuditLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

AuditLog::~AuditLog() {
  impl_->life.reset();
  {
    MutexLock lock(impl_->mutex);
    impl_->is_ended = true;
  }
  impl_->changed.notify_one();
  impl_->thread.join();
}

std::int64_t AuditLog::add(AuditRecord record) {
  record.number = ++impl_->last;
  record.time_ms = static_cast<std::int64_t>(os::system_now().value * 1000);
  for (std::string* text :
       {&record.user, &record.token, &record.address, &record.action, &record.object})
    *text = audit_text(*text);
  {
    MutexLock lock(impl_->mutex);
    impl_->waiting.push_back(std::move(record));
  }
  impl_->changed.notify_one();
  return impl_->last;
}

void AuditLog::when_durable(std::int64_t number, std::function<void()> work) {
  if (number <= impl_->durable.number)
    work();
  else
    impl_->answers.emplace(number, std::move(work));
}

const AuditHead& AuditLog::head() const {
  return impl_->durable;
}

void AuditLog::on_durable(std::function<void()> handler) {
  impl_->handler = std::move(handler);
}

bool AuditLog::is_stuck() const {
  return impl_->is_stuck;
}

void AuditLog::read(std::int64_t before, std::size_t limit, std::string user,
                    std::function<void(Result<AuditPage>)> done) {
  {
    MutexLock lock(impl_->mutex);
    impl_->reads.emplace_back([impl = impl_.get(), before, limit, user = std::move(user),
                               done = std::move(done)] {
      impl->post([done, page = read_audit_page(impl->folder, before, limit, user)] { done(page); });
    });
  }
  impl_->changed.notify_one();
}

const std::string& AuditLog::damage() const {
  return impl_->damage;
}

}  // namespace regatta::audit
