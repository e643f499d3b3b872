#include "regatta/platform/store/internal/shipping_folder.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/platform/store/internal/folder_sync.h"
#include "regatta/platform/store/internal/shipped_log.h"

namespace regatta::store {
namespace {

constexpr std::string_view kSnapshotStart = "snapshot-";
constexpr std::string_view kSnapshotEnd = ".db";
constexpr std::string_view kLogStart = "log-";
constexpr Seconds kSyncEvery{1.0};
constexpr Seconds kSnapshotAgainAfter{10.0};  // of a snapshot that failed

std::optional<Revision> revision_in(std::string_view name, std::string_view start,
                                    std::string_view end) {
  if (!name.starts_with(start) || !name.ends_with(end)) return std::nullopt;
  name.remove_prefix(start.size());
  name.remove_suffix(end.size());
  return parse_number<Revision>(name);
}

struct LogEnd {
  Revision revision = 0;
  std::size_t size = 0;  // without a commit that was cut off
};

// A missing log is one without commits.
Result<LogEnd> find_log_end(const std::string& path, Revision start) {
  LogEnd end{start, 0};
  const Result<std::string> text = os::read_file(path);
  if (!text && text.error().code == Code::kNotFound) return end;
  if (!text) return text.error();
  ShippedLogReader reader(*text, path);
  for (;;) {
    REGATTA_TRY(commit, reader.next());
    if (!commit) return end;
    end = {commit->changes.back().revision, reader.position()};
  }
}

}  // namespace

Result<ShippedFiles> list_shipped_files(const std::string& folder) {
  ShippedFiles files;
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (const auto revision = revision_in(name, kSnapshotStart, kSnapshotEnd))
      files.snapshots.push_back(*revision);
    else if (const auto start = revision_in(name, kLogStart, ""))
      files.logs.push_back(*start);
  }
  if (error) return os::errno_error(folder, error.value());
  std::sort(files.snapshots.begin(), files.snapshots.end());
  std::sort(files.logs.begin(), files.logs.end());
  return files;
}

std::string snapshot_path(const std::string& folder, Revision revision) {
  return fmt::format("{}/{}{:019}{}", folder, kSnapshotStart, revision, kSnapshotEnd);
}

std::string log_path(const std::string& folder, Revision revision) {
  return fmt::format("{}/{}{:019}", folder, kLogStart, revision);
}

Result<std::unique_ptr<ShippingFolder>> ShippingFolder::open(const BackupOptions& options,
                                                             Revision revision, Snapshot snapshot) {
  const std::string& folder = options.shipping_folder;
  if (const Status made = os::make_folder(folder, 0700); !made)
    return Error{Code::kUnavailable, made.error().message};
  const std::string lock_path = folder + "/lock";
  os::UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return os::errno_error(lock_path);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return Error{Code::kConflict, folder + ": another store ships there; name another folder"};
  std::unique_ptr<ShippingFolder> shipping(
      new ShippingFolder(options, std::move(lock), std::move(snapshot)));
  REGATTA_TRY_DO(shipping->go_on(revision));
  return shipping;
}

ShippingFolder::~ShippingFolder() {
  if (status_) static_cast<void>(synchronize().has_value());
}

Status ShippingFolder::go_on(Revision revision) {
  revision_ = revision;
  REGATTA_TRY(files, list_shipped_files(options_.shipping_folder));
  if (files.snapshots.empty()) return begin();
  const Revision start = files.snapshots.back();
  const std::string path = log_path(options_.shipping_folder, start);
  const Result<LogEnd> end = find_log_end(path, start);
  // A damaged log is of no use, but the store is whole: a new snapshot takes its place.
  if (!end) return begin();
  if (end->revision > revision)
    return Error{Code::kConflict,
                 fmt::format("{}: its copies end at revision {}, and the store at {}; restore the "
                             "store from them, or name another folder",
                             options_.shipping_folder, end->revision, revision)};
  if (end->revision < revision) return begin();
  os::UniqueFd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!log || ::ftruncate(log.get(), static_cast<off_t>(end->size)) != 0)
    return os::errno_error(path);
  log_ = std::move(log);
  log_size_ = end->size;
  log_start_ = start;
  snapshot_time_ = os::monotonic_now();
  return {};
}

Status ShippingFolder::begin() {
  status_ = make_snapshot();
  return {};
}

Status ShippingFolder::make_snapshot() {
  snapshot_time_ = os::monotonic_now();
  const std::string path = snapshot_path(options_.shipping_folder, revision_);
  const std::string unfinished = path + ".part";
  REGATTA_TRY_DO(os::remove_tree(unfinished));
  REGATTA_TRY_DO(snapshot_(unfinished));
  REGATTA_TRY_DO(synchronize_path(unfinished));
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) return os::errno_error(path);
  const std::string name = log_path(options_.shipping_folder, revision_);
  os::UniqueFd log(::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!log) return os::errno_error(name);
  REGATTA_TRY_DO(synchronize_path(options_.shipping_folder));
  log_ = std::move(log);
  log_size_ = 0;
  log_start_ = revision_;
  return remove_old_files();
}

Status ShippingFolder::remove_old_files() {
  const std::string& folder = options_.shipping_folder;
  REGATTA_TRY(files, list_shipped_files(folder));
  const auto kept = static_cast<std::size_t>(std::max(options_.snapshots_kept, 1));
  if (files.snapshots.size() <= kept) return {};
  const Revision oldest = files.snapshots[files.snapshots.size() - kept];
  for (const Revision revision : files.snapshots)
    if (revision < oldest) REGATTA_TRY_DO(os::remove_tree(snapshot_path(folder, revision)));
  for (const Revision revision : files.logs)
    if (revision < oldest) REGATTA_TRY_DO(os::remove_tree(log_path(folder, revision)));
  return {};
}

void ShippingFolder::append(Revision previous, std::span<const Change> changes) {
  revision_ = changes.back().revision;
  if (!status_) return;  // the log has a gap until the next snapshot
  status_ = write(encode_commit(previous, changes));
  if (status_ && os::monotonic_now() - sync_time_ > kSyncEvery) status_ = synchronize();
}

Status ShippingFolder::write(const std::string& bytes) {
  const std::string name = log_path(options_.shipping_folder, log_start_);
  REGATTA_TRY_DO(os::write_all_at(log_.get(), bytes, log_size_, name));
  log_size_ += bytes.size();
  is_synchronized_ = false;
  return {};
}

Status ShippingFolder::synchronize() {
  sync_time_ = os::monotonic_now();
  if (is_synchronized_) return {};
  is_synchronized_ = true;
  if (::fdatasync(log_.get()) != 0)
    return os::errno_error(log_path(options_.shipping_folder, log_start_));
  return {};
}

void ShippingFolder::maintain() {
  if (status_) status_ = synchronize();
  const Seconds age = os::monotonic_now() - snapshot_time_;
  const bool is_old = revision_ != log_start_ && age > options_.snapshot_every;
  const bool is_long = log_size_ > static_cast<std::uint64_t>(options_.log_most.value);
  const bool is_retry = !status_ && age > kSnapshotAgainAfter;
  if (is_old || is_long || is_retry) status_ = make_snapshot();
}

}  // namespace regatta::store
