// store/internal/shipping_folder.h: the folder with the snapshots and logs of a store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/platform/store/backup.h"
#include "regatta/platform/store/store.h"

namespace regatta::store {

// Their revisions, rising.
struct ShippedFiles {
  std::vector<Revision> snapshots;
  std::vector<Revision> logs;
};
Result<ShippedFiles> list_shipped_files(const std::string& folder);
std::string snapshot_path(const std::string& folder, Revision revision);
std::string log_path(const std::string& folder, Revision revision);

// The writing side. Its errors never stop the store: they are kept until a new snapshot succeeds.
class ShippingFolder {
 public:
  // Writes the whole store into a new file.
  using Snapshot = std::function<Status(const std::string& path)>;

  // Goes on with the newest log when it ends at `revision`, the store's; else makes a snapshot.
  // kConflict when another process writes there, or when the folder is ahead of the store.
  static Result<std::unique_ptr<ShippingFolder>> open(const BackupOptions& options,
                                                      Revision revision, Snapshot snapshot);

  ShippingFolder(const ShippingFolder&) = delete;
  ShippingFolder& operator=(const ShippingFolder&) = delete;
  ~ShippingFolder();  // synchronizes the log

  // A commit that is durable in the store.
  void append(Revision previous, std::span<const Change> changes);
  // Synchronizes the log; makes a snapshot when that is due, or after an error.
  void maintain();
  const Status& status() const { return status_; }

 private:
  ShippingFolder(const BackupOptions& options, os::UniqueFd lock, Snapshot snapshot)
      : options_(options), lock_(std::move(lock)), snapshot_(std::move(snapshot)) {}

  Status go_on(Revision revision);
  Status begin();  // by a snapshot; its error is kept
  Status make_snapshot();
  Status write(const std::string& bytes);
  Status synchronize();
  Status remove_old_files();

  const BackupOptions options_;
  const os::UniqueFd lock_;
  const Snapshot snapshot_;
  os::UniqueFd log_;
  std::uint64_t log_size_ = 0;
  Revision log_start_ = 0;
  Revision revision_ = 0;  // the store's
  Seconds snapshot_time_{0};
  Seconds sync_time_{0};
  bool is_synchronized_ = true;
  Status status_;
};

}  // namespace regatta::store
