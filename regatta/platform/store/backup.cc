#include "regatta/platform/store/backup.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/os/file.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/platform/store/internal/folder_sync.h"
#include "regatta/platform/store/internal/shipped_log.h"
#include "regatta/platform/store/internal/shipping_folder.h"
#include "regatta/platform/store/sqlite_store.h"

namespace regatta::store {
namespace {

// Commits of the log that become one of the store: each takes a synchronization.
constexpr std::size_t kChangesMost = 50'000;

Status check_target(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return {};
  if (std::filesystem::is_empty(folder, error) && !error) return {};
  return Error{Code::kConflict, folder + ": is not empty; name a new folder"};
}

class Restoration {
 public:
  explicit Restoration(std::string shipping_folder) : shipping_(std::move(shipping_folder)) {}

  Result<RestoreReport> run(const std::string& folder) {
    std::error_code error;
    if (std::filesystem::is_regular_file(shipping_, error)) {
      REGATTA_TRY_DO(open_snapshot(shipping_, folder));
      return finish();
    }
    REGATTA_TRY(files, list_shipped_files(shipping_));
    if (files.snapshots.empty())
      return Error{Code::kNotFound, shipping_ + ": holds no snapshot of a store"};
    report_.snapshot = report_.revision = files.snapshots.back();
    REGATTA_TRY_DO(open_snapshot(snapshot_path(shipping_, report_.snapshot), folder));
    for (const Revision start : files.logs)
      if (start >= report_.snapshot) REGATTA_TRY_DO(apply_log(log_path(shipping_, start)));
    REGATTA_TRY_DO(commit());
    return finish();
  }

 private:
  Result<RestoreReport> finish() {
    REGATTA_TRY(revision, store_->load([&](const Record&) -> Status {
      ++report_.records;
      return {};
    }));
    report_.revision = revision;
    REGATTA_TRY_DO(store_->maintain());
    store_.reset();
    return report_;
  }

  // Every record of the copy is compared with its checksum before the log is added.
  Status open_snapshot(const std::string& path, const std::string& folder) {
    const std::string copy = folder + "/regatta.db";
    std::error_code error;
    std::filesystem::copy_file(path, copy, error);
    if (error) return os::errno_error(path, error.value());
    REGATTA_TRY_DO(synchronize_path(copy));
    Result<std::unique_ptr<Store>> store =
        open_sqlite_store({.folder = folder, .reserve = Bytes{0}});
    Result<Revision> revision = store ? (*store)->load([](const Record&) { return Status(); })
                                      : Result<Revision>(store.error());
    const bool is_named = report_.snapshot > 0;  // by a shipping folder
    if (revision && !is_named) report_.snapshot = *revision;
    if (revision && *revision != report_.snapshot)
      revision = Error{Code::kInvalidInput, fmt::format("it ends at revision {}", *revision)};
    if (!revision && revision.error().code != Code::kInvalidInput) return revision.error();
    if (!revision)
      return Error{Code::kInvalidInput,
                   fmt::format("{}: is damaged ({}); {}", path, revision.error().message,
                               is_named ? "take it away to restore from an older snapshot"
                                        : "restore from another backup")};
    store_ = std::move(*store);
    return {};
  }

  Status apply_log(const std::string& path) {
    REGATTA_TRY(text, os::read_file(path));
    ShippedLogReader reader(text, path);
    for (;;) {
      const std::size_t place = reader.position();
      REGATTA_TRY(commit_read, reader.next());
      if (!commit_read) break;
      if (commit_read->previous != report_.revision)
        return Error{Code::kInvalidInput,
                     fmt::format("{}: the commit at byte {} follows revision {}, and those before "
                                 "end at {}; restore from another copy",
                                 path, place, commit_read->previous, report_.revision)};
      report_.revision = commit_read->changes.back().revision;
      ++report_.commits;
      std::move(commit_read->changes.begin(), commit_read->changes.end(),
                std::back_inserter(changes_));
      if (changes_.size() >= kChangesMost) REGATTA_TRY_DO(commit());
    }
    report_.is_log_cut = reader.is_cut();
    return {};
  }

  Status commit() {
    const Status status = store_->commit(changes_);
    changes_.clear();
    return status;
  }

  std::string shipping_;
  RestoreReport report_;
  std::unique_ptr<Store> store_;
  std::vector<Change> changes_;
};

}  // namespace

Result<RestoreReport> restore(const std::string& source, const std::string& given) {
  const std::string folder = given.substr(0, given.find_last_not_of('/') + 1);
  REGATTA_TRY_DO(check_target(folder));
  // Beside the target, so that it is there as a whole or not at all.
  const std::string unfinished = folder + ".restoring";
  REGATTA_TRY_DO(os::remove_tree(unfinished));
  REGATTA_TRY_DO(os::make_folder(unfinished, 0700));
  const Result<RestoreReport> report = Restoration(source).run(unfinished);
  if (!report) {
    static_cast<void>(os::remove_tree(unfinished).has_value());
    return report.error();
  }
  if (std::rename(unfinished.c_str(), folder.c_str()) != 0) return os::errno_error(folder);
  const std::filesystem::path parent = std::filesystem::absolute(folder).parent_path();
  REGATTA_TRY_DO(synchronize_path(parent.string()));
  return report;
}

}  // namespace regatta::store
