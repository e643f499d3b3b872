// store/backup.h: copies of a store: a snapshot and the log of later commits; restoring them.
#pragma once

#include <cstdint>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/store/store.h"

namespace regatta::store {

// A shipping folder holds snapshot-REVISION.db and log-REVISION, the commits after that snapshot,
// each with its CRC-32C (docs/formats/store.md).

struct BackupOptions {
  // Another folder, best on another disk: each commit is appended there after it is durable in the
  // store, and synchronized within a second. Empty: no copies.
  std::string shipping_folder;
  Seconds snapshot_every{3600};
  Bytes log_most{256LL << 20};  // then a snapshot is made before its time
  int snapshots_kept = 3;       // at least 1, each with its log
};

struct RestoreReport {
  Revision snapshot = 0;     // of the snapshot that was taken
  Revision revision = 0;     // after the logs
  std::int64_t commits = 0;  // of the logs
  std::int64_t records = 0;  // in the restored store
  bool is_log_cut = false;   // the last commit of the log was incomplete and was left out
};

// Builds the store `folder` (missing or empty) from `source`: a shipping folder, of which it takes
// the newest snapshot and the logs after it, or a file that Store::copy_to() has written.
// kNotFound: no snapshot; kConflict: `folder` is not empty; kInvalidInput names the file and the
// first damaged commit or record; nothing is left then.
Result<RestoreReport> restore(const std::string& source, const std::string& folder);

}  // namespace regatta::store
