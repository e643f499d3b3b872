// store/internal/sqlite_schema.h: the tables of a store's SQLite file, schema version 1
// (docs/formats/store.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/platform/store/sqlite_connection.h"
#include "regatta/platform/store/store.h"

namespace regatta::store {

// Sets what a connection has to know before it reads the file, checks the schema's version, and
// makes the tables in an empty file. A log that grew beyond `log_size_most` bytes is cut to that
// size. `path`: for errors. kConflict when another process has the file open; another program's
// file and one of a newer version are refused with kInvalidInput and stay as they are.
Status prepare_connection(SqliteConnection& connection, const std::string& path,
                          long long log_size_most);

// The records in the tables. The connection outlives it.
class SqliteRecords {
 public:
  static Result<SqliteRecords> open(SqliteConnection& connection, const std::string& path);

  // As Store::load(); compares each record with its checksum.
  Result<Revision> load(const std::function<Status(const Record&)>& visit);
  Result<Revision> last_revision();
  // Within the caller's transaction.
  Status write(std::span<const Change> changes);

 private:
  SqliteRecords(SqliteConnection& connection, std::string path, SqliteStatement put,
                SqliteStatement remove, SqliteStatement set_last);

  SqliteConnection* connection_;
  std::string path_;
  SqliteStatement put_;
  SqliteStatement remove_;
  SqliteStatement set_last_;
};

}  // namespace regatta::store
