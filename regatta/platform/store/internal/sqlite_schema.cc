#include "regatta/platform/store/internal/sqlite_schema.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/platform/store/internal/crc32c.h"

namespace regatta::store {
namespace {

constexpr std::int64_t kApplicationId = 0x52474154;  // "RGAT"
constexpr std::int64_t kSchemaVersion = 1;

std::uint32_t record_checksum(std::string_view key, Revision revision, std::string_view value) {
  std::array<char, sizeof(Revision)> number{};
  std::memcpy(number.data(), &revision, sizeof(revision));
  const std::uint32_t head = crc32c({number.data(), number.size()}, crc32c(key));
  return crc32c(value, head);
}

// Whether the file is empty.
Result<bool> check_schema(SqliteConnection& connection, const std::string& path) {
  REGATTA_TRY(version, connection.number("PRAGMA user_version"));
  REGATTA_TRY(application, connection.number("PRAGMA application_id"));
  REGATTA_TRY(tables, connection.number("SELECT count(*) FROM sqlite_master"));
  if (application == kApplicationId && version == kSchemaVersion) return false;
  if (application == 0 && version == 0 && tables == 0) return true;
  connection.keep_log_on_close();
  if (application == kApplicationId && version > kSchemaVersion)
    return Error{
        Code::kInvalidInput,
        fmt::format("{}: has schema version {}, and this program knows {}; start the newer "
                    "program, or restore a backup of the older one",
                    path, version, kSchemaVersion)};
  return Error{Code::kInvalidInput, path + ": is another program's file; name another folder"};
}

Status make_tables(SqliteConnection& connection) {
  return connection.execute(
      fmt::format("BEGIN IMMEDIATE;"
                  "CREATE TABLE records (key TEXT PRIMARY KEY NOT NULL, revision INTEGER NOT NULL,"
                  " value BLOB NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;"
                  "CREATE TABLE counters (name TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL)"
                  " WITHOUT ROWID;"
                  "INSERT INTO counters VALUES ('revision', 0);"
                  "PRAGMA application_id={}; PRAGMA user_version={};"
                  "COMMIT",
                  kApplicationId, kSchemaVersion));
}

}  // namespace

Status prepare_connection(SqliteConnection& connection, const std::string& path,
                          long long log_size_most) {
  // Exclusive before the log is touched: its index is then in this process's memory, not in a
  // mapped file (which ends the process on a full disk), and nobody else writes the file.
  REGATTA_TRY_DO(connection.execute("PRAGMA locking_mode=EXCLUSIVE"));
  REGATTA_TRY_DO(connection.execute("PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY"));
  REGATTA_TRY(is_empty, check_schema(connection, path));
  REGATTA_TRY(mode, connection.text("PRAGMA journal_mode=WAL"));
  if (mode != "wal")
    return Error{Code::kUnsupported, path + ": this file system allows no write-ahead log"};
  REGATTA_TRY_DO(connection.execute("PRAGMA synchronous=FULL; PRAGMA cache_size=-8192"));
  REGATTA_TRY_DO(connection.execute(fmt::format("PRAGMA journal_size_limit={}", log_size_most)));
  if (is_empty) REGATTA_TRY_DO(make_tables(connection));
  return {};
}

SqliteRecords::SqliteRecords(SqliteConnection& connection, std::string path, SqliteStatement put,
                             SqliteStatement remove, SqliteStatement set_last)
    : connection_(&connection),
      path_(std::move(path)),
      put_(std::move(put)),
      remove_(std::move(remove)),
      set_last_(std::move(set_last)) {}

Result<SqliteRecords> SqliteRecords::open(SqliteConnection& connection, const std::string& path) {
  REGATTA_TRY(put,
              connection.prepare("INSERT INTO records VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key)"
                                 " DO UPDATE SET revision=?2, value=?3, checksum=?4"));
  REGATTA_TRY(remove, connection.prepare("DELETE FROM records WHERE key=?1"));
  REGATTA_TRY(set_last, connection.prepare("UPDATE counters SET value=?1 WHERE name='revision'"));
  return SqliteRecords(connection, path, std::move(put), std::move(remove), std::move(set_last));
}

Result<Revision> SqliteRecords::last_revision() {
  return connection_->number("SELECT value FROM counters WHERE name='revision'");
}

Result<Revision> SqliteRecords::load(const std::function<Status(const Record&)>& visit) {
  REGATTA_TRY(last, last_revision());
  REGATTA_TRY(rows, connection_->prepare(
                        "SELECT key, revision, value, checksum FROM records ORDER BY key"));
  for (;;) {
    REGATTA_TRY(has_row, rows.step());
    if (!has_row) return last;
    const Record record{rows.bytes(0), rows.number(1), rows.bytes(2)};
    const auto checksum = static_cast<std::uint32_t>(rows.number(3));
    if (record.revision > last ||
        record_checksum(record.key, record.revision, record.value) != checksum)
      return Error{Code::kInvalidInput,
                   fmt::format("{}: the record '{}' is damaged; restore the store from a backup",
                               path_, printable(record.key, 80))};
    REGATTA_TRY_DO(visit(record));
  }
}

Status SqliteRecords::write(std::span<const Change> changes) {
  for (const Change& change : changes) {
    SqliteStatement& statement = change.value ? put_ : remove_;
    statement.bind_text(1, change.key);
    if (change.value) {
      statement.bind_number(2, change.revision);
      statement.bind_blob(3, *change.value);
      statement.bind_number(4, record_checksum(change.key, change.revision, *change.value));
    }
    const Result<bool> done = statement.step();
    statement.clear();
    if (!done) return done.error();
  }
  set_last_.bind_number(1, changes.back().revision);
  const Result<bool> done = set_last_.step();
  set_last_.clear();
  if (!done) return done.error();
  return {};
}

}  // namespace regatta::store
