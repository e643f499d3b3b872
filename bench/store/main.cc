// bench/store/main.cc: commits a second, rows a second and latencies of the durable log on this
// disk, beside a rollback journal and the disk's own fdatasync().

#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include "bench/bench_program.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/platform/store/commit_queue.h"
#include "regatta/platform/store/sqlite_store.h"

namespace regatta::store {
namespace {

constexpr const char* kUsage =
    "usage: regatta-store-bench FOLDER [--seconds S] [--value BYTES]\n"
    "FOLDER is made on the disk to measure, and removed; each case takes 5 seconds and\n"
    "writes values of 200 bytes by default\n";

struct Case {
  std::string folder;
  double seconds = 0;
  int value = 0;
  int waiting = 1;  // transactions that wait at once
  int batch = 1;    // changes of each
};

struct Figures {
  std::vector<double> latencies;  // seconds, of each transaction
  std::int64_t commits = 0;
  double seconds = 0;
};

void print_row(const std::string& name, int waiting, int batch, Figures figures) {
  std::sort(figures.latencies.begin(), figures.latencies.end());
  const auto at = [&](double share) {
    const auto count = static_cast<double>(figures.latencies.size());
    return 1e3 * figures.latencies[static_cast<std::size_t>(share * (count - 1))];
  };
  const double rows = static_cast<double>(figures.latencies.size()) * batch;
  fmt::print("| {} | {} | {} | {:.0f} | {:.0f} | {:.2f} | {:.2f} | {:.2f} |\n", name, waiting,
             batch, static_cast<double>(figures.commits) / figures.seconds, rows / figures.seconds,
             at(0.5), at(0.99), at(1.0));
  std::fflush(stdout);
}

// The queue's thread sets it, the owner waits for it.
class DurableRevision {
 public:
  void set(const CommitReport& report) REGATTA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    durable_ = report.durable;
    status_ = report.status;
    ++commits_;
    changed_.notify_one();
  }
  Result<Revision> wait_beyond(Revision revision) REGATTA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&]() REGATTA_REQUIRES(mutex_) { return durable_ > revision || !status_; });
    REGATTA_TRY_DO(status_);
    return durable_;
  }
  std::int64_t commits() const REGATTA_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return commits_;
  }

 private:
  mutable Mutex mutex_;
  ConditionVariable changed_;
  Revision durable_ REGATTA_GUARDED_BY(mutex_) = 0;
  Status status_ REGATTA_GUARDED_BY(mutex_);
  std::int64_t commits_ REGATTA_GUARDED_BY(mutex_) = 0;
};

// One owner, as the controller's loop is, with so many transactions that wait: each that is durable
// is followed by a new one. New records at first, then changed ones: of 100,000 in all.
Result<Figures> run_queue(const Case& setup) {
  constexpr Revision kRecords = 100'000;
  REGATTA_TRY(store, open_sqlite_store({.folder = setup.folder + "/queue"}));
  DurableRevision durable;
  Figures figures;
  {
    CommitQueue queue(std::move(store), {},
                      [&](const CommitReport& report) { durable.set(report); });
    struct Waiting {
      Revision last;
      double start;
    };
    std::deque<Waiting> waiting;
    Revision next = 0;
    const std::string value(static_cast<std::size_t>(setup.value), 'x');
    const double start = os::monotonic_now().value;
    double now = start;
    for (Revision done = 0; now < start + setup.seconds;) {
      while (waiting.size() < static_cast<std::size_t>(setup.waiting)) {
        std::vector<Change> changes;
        for (int i = 0; i < setup.batch; ++i) {
          ++next;
          changes.push_back({fmt::format("job/{:012}", next % kRecords), next, value});
        }
        waiting.push_back({next, os::monotonic_now().value});
        queue.add(std::move(changes));
      }
      REGATTA_TRY(reached, durable.wait_beyond(done));
      done = reached;
      now = os::monotonic_now().value;
      for (; !waiting.empty() && waiting.front().last <= done; waiting.pop_front())
        figures.latencies.push_back(now - waiting.front().start);
    }
    figures.seconds = now - start;
    figures.commits = durable.commits();
  }
  REGATTA_TRY_DO(os::remove_tree(setup.folder + "/queue"));
  return figures;
}

// Appends of 4 KiB, each followed by fdatasync(): into a file that grows, or one that has its size.
Result<Figures> run_sync(const Case& setup, bool is_growing) {
  const std::string path = setup.folder + "/sync";
  const os::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return os::errno_error(path);
  const std::string block(4096, 'x');
  constexpr std::uint64_t kBlocks = 1024;
  for (std::uint64_t i = 0; !is_growing && i < kBlocks; ++i)
    REGATTA_TRY_DO(os::write_all_at(file.get(), block, i * block.size(), path));
  ::fsync(file.get());
  Figures figures;
  const double start = os::monotonic_now().value;
  for (double now = start; now < start + setup.seconds;) {
    const std::uint64_t index =
        is_growing ? figures.latencies.size() : figures.latencies.size() % kBlocks;
    REGATTA_TRY_DO(os::write_all_at(file.get(), block, index * block.size(), path));
    if (::fdatasync(file.get()) != 0) return os::errno_error(path);
    const double end = os::monotonic_now().value;
    figures.latencies.push_back(end - now);
    now = end;
    figures.seconds = now - start;
  }
  figures.commits = std::ssize(figures.latencies);
  return figures;
}

// SQLite with a rollback journal, one row a commit, as a peer.
Result<Figures> run_rollback_journal(const Case& setup) {
  const std::string path = setup.folder + "/rollback.db";
  sqlite3* handle = nullptr;
  const auto run_sql = [&](const char* sql) -> Status {
    if (sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
    return Error{Code::kUnavailable, path + ": " + sqlite3_errmsg(handle)};
  };
  if (sqlite3_open(path.c_str(), &handle) != SQLITE_OK)
    return Error{Code::kUnavailable, path + ": cannot be opened"};
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> closer(handle, sqlite3_close);
  REGATTA_TRY_DO(
      run_sql("PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=FULL;"
              "CREATE TABLE records (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID"));
  Figures figures;
  const double start = os::monotonic_now().value;
  for (double now = start; now < start + setup.seconds;) {
    const std::string sql = fmt::format("INSERT INTO records VALUES ('job/{:012}', zeroblob({}))",
                                        figures.latencies.size(), setup.value);
    REGATTA_TRY_DO(run_sql(sql.c_str()));
    const double end = os::monotonic_now().value;
    figures.latencies.push_back(end - now);
    now = end;
    figures.seconds = now - start;
  }
  figures.commits = std::ssize(figures.latencies);
  return figures;
}

// Opening a store of 100,000 records and reading them, as a controller that starts again does.
Status print_load(const Case& setup) {
  constexpr Revision kRecords = 100'000;
  const SqliteStoreOptions options{.folder = setup.folder + "/load"};
  {
    REGATTA_TRY(store, open_sqlite_store(options));
    std::vector<Change> changes;
    for (Revision i = 1; i <= kRecords; ++i)
      changes.push_back({fmt::format("job/{:012}", i), i,
                         std::string(static_cast<std::size_t>(setup.value), 'x')});
    REGATTA_TRY_DO(store->commit(changes));
  }
  const double start = os::monotonic_now().value;
  REGATTA_TRY(store, open_sqlite_store(options));
  std::size_t bytes = 0;
  REGATTA_TRY(last, store->load([&](const Record& record) -> Status {
    bytes += record.key.size() + record.value.size();
    return {};
  }));
  fmt::print("\n{} records, {:.1f} MB, opened and read in {:.3f} s\n", last,
             static_cast<double>(bytes) * 1e-6, os::monotonic_now().value - start);
  return {};
}

Status run_cases(Case setup) {
  fmt::print(
      "| case | waiting | changes each | commits/s | rows/s | p50 ms | p99 ms | max ms |\n"
      "|---|---|---|---|---|---|---|---|\n");
  REGATTA_TRY(growing, run_sync(setup, true));
  print_row("fdatasync, growing file", 1, 1, growing);
  REGATTA_TRY(fixed, run_sync(setup, false));
  print_row("fdatasync, file of fixed size", 1, 1, fixed);
  REGATTA_TRY(rollback, run_rollback_journal(setup));
  print_row("SQLite, rollback journal, FULL", 1, 1, rollback);
  for (const auto& [waiting, batch] :
       {std::pair{1, 1}, {16, 1}, {64, 1}, {256, 1}, {1000, 1}, {1, 100}, {8, 100}, {64, 100}}) {
    setup.waiting = waiting;
    setup.batch = batch;
    REGATTA_TRY(figures, run_queue(setup));
    print_row("regatta, commit queue", waiting, batch, figures);
  }
  return print_load(setup);
}

Status run(bench_program::Arguments arguments) {
  REGATTA_TRY(seconds, bench_program::take_number(arguments, "--seconds", 5, {1, 3600}));
  REGATTA_TRY(value, bench_program::take_number(arguments, "--value", 200, {0, 1 << 20}));
  REGATTA_TRY_DO(bench_program::check_rest(arguments, 1));
  const std::string& folder = arguments[0];
  // It is removed at the end, so it must be nobody's.
  if (std::filesystem::exists(folder))
    return Error{Code::kInvalidInput, folder + ": is there already; name a new folder"};
  REGATTA_TRY_DO(os::make_folder(folder));
  const Status status =
      run_cases({.folder = folder, .seconds = static_cast<double>(seconds), .value = value});
  REGATTA_TRY_DO(os::remove_tree(folder));
  return status;
}

}  // namespace
}  // namespace regatta::store

int main(int argc, char** argv) {
  return regatta::bench_program::run_program(argc, argv, regatta::store::kUsage, 1,
                                             regatta::store::run);
}
