#include "regatta/platform/store/sqlite_connection.h"

#include <cerrno>

#include <fmt/format.h>
#include <sqlite3.h>

#include "regatta/base/os/unique_fd.h"

namespace regatta::store {
namespace {

// The errno of the last failed call on the log or on the file, 0: none. The library's own
// sqlite3_system_errno() is 0 when a transaction was rolled back in between.
int last_errno(sqlite3* handle) {
  int number = 0;
  sqlite3_file* log = nullptr;
  sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (log != nullptr && log->pMethods != nullptr)
    log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &number);
  if (number == 0) sqlite3_file_control(handle, "main", SQLITE_FCNTL_LAST_ERRNO, &number);
  return number != 0 ? number : sqlite3_system_errno(handle);
}

}  // namespace

void StatementDeleter::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void SqliteStatement::bind_text(int position, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), position, text.data(), text.size(), SQLITE_STATIC,
                      SQLITE_UTF8);
}

void SqliteStatement::bind_blob(int position, std::string_view bytes) {
  // A null pointer would bind NULL.
  const char* data = bytes.empty() ? "" : bytes.data();
  sqlite3_bind_blob64(statement_.get(), position, data, bytes.size(), SQLITE_STATIC);
}

void SqliteStatement::bind_number(int position, std::int64_t number) {
  sqlite3_bind_int64(statement_.get(), position, number);
}

Result<bool> SqliteStatement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return owner_->error();
}

void SqliteStatement::clear() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

std::string_view SqliteStatement::bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return data == nullptr ? std::string_view()
                         : std::string_view(static_cast<const char*>(data), size);
}

std::int64_t SqliteStatement::number(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

Result<std::unique_ptr<SqliteConnection>> SqliteConnection::open(const std::string& path,
                                                                 bool is_made) {
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (is_made ? SQLITE_OPEN_CREATE : 0);
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  if (handle == nullptr) return Error{Code::kUnavailable, path + ": no memory to open it"};
  std::unique_ptr<SqliteConnection> connection(new SqliteConnection(path, handle));
  if (code != SQLITE_OK) return connection->error();
  // Without the right to write SQLite opens it for reading, and the first commit fails.
  if (sqlite3_db_readonly(handle, "main") == 1)
    return Error{Code::kUnavailable,
                 path +
                     ": cannot be written; check its rights and whether its file system is "
                     "mounted read-only"};
  // Takes the place of the automatic checkpoint.
  sqlite3_wal_hook(
      handle,
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      &connection->log_pages_);
  return connection;
}

SqliteConnection::~SqliteConnection() {
  sqlite3_close_v2(handle_);
}

Result<SqliteStatement> SqliteConnection::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(handle_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
    return error();
  return SqliteStatement(this, statement);
}

Status SqliteConnection::execute(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return error();
  return {};
}

Result<std::int64_t> SqliteConnection::number(const std::string& sql) {
  REGATTA_TRY(statement, prepare(sql));
  REGATTA_TRY(has_row, statement.step());
  return has_row ? statement.number(0) : 0;
}

Result<std::string> SqliteConnection::text(const std::string& sql) {
  REGATTA_TRY(statement, prepare(sql));
  REGATTA_TRY(has_row, statement.step());
  return has_row ? std::string(statement.bytes(0)) : std::string();
}

bool SqliteConnection::is_in_transaction() const {
  return sqlite3_get_autocommit(handle_) == 0;
}

Status SqliteConnection::move_log(bool is_cut) {
  const int mode = is_cut ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
  if (sqlite3_wal_checkpoint_v2(handle_, "main", mode, nullptr, nullptr) != SQLITE_OK)
    return error();
  log_pages_ = 0;
  return {};
}

Status SqliteConnection::copy_to(const std::string& path) {
  REGATTA_TRY(statement, prepare("VACUUM INTO ?1"));
  statement.bind_text(1, path);
  const Result<bool> done = statement.step();
  if (done) return {};
  return Error{done.error().code,
               fmt::format("{}: the copy failed ({})", path, done.error().message)};
}

void SqliteConnection::keep_log_on_close() {
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

Error SqliteConnection::error() const {
  const int extended = sqlite3_extended_errcode(handle_);
  const std::string text = sqlite3_errmsg(handle_);  // the next call may change it
  const bool is_system = (extended & 0xff) == SQLITE_IOERR || (extended & 0xff) == SQLITE_CANTOPEN;
  const int number = is_system ? last_errno(handle_) : 0;
  const bool is_write = extended == SQLITE_IOERR_WRITE;
  // SQLite knows a full disk, but not a quota that is used up.
  if ((extended & 0xff) == SQLITE_FULL || (is_write && (number == ENOSPC || number == EDQUOT)))
    return {Code::kExhausted, path_ + ": the disk is full; free space on it"};
  switch (extended & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {Code::kConflict, path_ + ": another process has it open; end that process first"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {Code::kInvalidInput, fmt::format("{}: is damaged ({}); restore it from a backup",
                                               path_, sqlite3_errstr(extended & 0xff))};
    default:
      break;
  }
  return {Code::kUnavailable,
          fmt::format("{}: {}{}", path_, text,
                      number != 0 ? " (" + os::errno_text(number) + ")" : std::string())};
}

}  // namespace regatta::store
