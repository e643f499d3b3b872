// store/sqlite_store.h: the store as one SQLite file: write-ahead log, full synchronisation, one
// exclusive connection, a reserve for the day on which the disk is full.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/store/backup.h"
#include "regatta/platform/store/store.h"

namespace regatta::store {

struct SqliteStoreOptions {
  std::string folder;  // the store is FOLDER/regatta.db; made (mode 0700) when missing
  // Size of the file FOLDER/reserve, which is given up on a full disk; 0: none. It has to hold the
  // largest log twice, for that must move into its place before its own space is free.
  Bytes reserve{128LL << 20};
  int log_pages_max = 8192;  // of 4 KiB: then a commit moves the log into its place
  BackupOptions backup;
};

// kConflict: another process has the store open. kInvalidInput: damaged, or of a newer version. The
// file has schema version 1 (docs/formats/store.md). It opens on a full disk, too.
Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteStoreOptions& options);

// Free space of the store's file system, and whether new writes should be refused: below twice the
// reserve, or the reserve was given up and is not back (Store::maintain() makes it, when three
// times its size is free). The store itself does not refuse: commits that are under way go through.
struct DiskState {
  Bytes free;
  bool is_low = false;
};
Result<DiskState> disk_state(const SqliteStoreOptions& options);

}  // namespace regatta::store
