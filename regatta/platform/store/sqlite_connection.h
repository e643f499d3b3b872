// store/sqlite_connection.h: a SQLite file whose errors are ours.
// Source: sqlite.org/c3ref (the C interface), sqlite.org/rescode.html (its error codes).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace regatta::store {

struct StatementDeleter {
  void operator()(sqlite3_stmt* statement) const;
};

// A prepared statement. Positions of values count from 1, columns from 0.
class SqliteStatement {
 public:
  // The bytes must stay until the next bind or clear.
  void bind_text(int position, std::string_view text);
  void bind_blob(int position, std::string_view bytes);
  void bind_number(int position, std::int64_t number);
  // True: a row is there; false: the statement is done.
  Result<bool> step();
  // Ready for the next values.
  void clear();
  // Valid until the next step or clear.
  std::string_view bytes(int column) const;
  std::int64_t number(int column) const;

 private:
  friend class SqliteConnection;
  SqliteStatement(class SqliteConnection* owner, sqlite3_stmt* statement)
      : owner_(owner), statement_(statement) {}

  SqliteConnection* owner_;
  std::unique_ptr<sqlite3_stmt, StatementDeleter> statement_;
};

// Errors: kExhausted: the disk is full; kConflict: another connection holds the file;
// kInvalidInput: the file is damaged or no SQLite file; kUnavailable: all else. Messages name the
// file.
class SqliteConnection {
 public:
  // Makes the file when it is missing and `is_made` is true. One thread at a time.
  static Result<std::unique_ptr<SqliteConnection>> open(const std::string& path, bool is_made);
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;
  ~SqliteConnection();

  Result<SqliteStatement> prepare(const std::string& sql);
  Status execute(const std::string& sql);
  // The first column of the first row.
  Result<std::int64_t> number(const std::string& sql);
  Result<std::string> text(const std::string& sql);

  // Whether a transaction is open.
  bool is_in_transaction() const;
  // Pages in the write-ahead log, after the last commit or move_log().
  int log_pages() const { return log_pages_; }
  // Moves the pages of the log into the file; the log is written from its start again. With
  // `is_cut` the log's space is given back too.
  Status move_log(bool is_cut);
  // Writes the records into a new file; takes the time of reading and writing all.
  Status copy_to(const std::string& path);
  // Closing leaves the log as it is: after an error, the less is written, the better.
  void keep_log_on_close();

  // The error of the last call.
  Error error() const;

 private:
  SqliteConnection(std::string path, sqlite3* handle) : path_(std::move(path)), handle_(handle) {}

  std::string path_;
  sqlite3* handle_;
  int log_pages_ = 0;
};

}  // namespace regatta::store
