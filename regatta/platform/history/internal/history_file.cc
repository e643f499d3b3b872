#include "regatta/platform/history/internal/history_file.h"

#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"

namespace regatta::history {
namespace {

constexpr std::int64_t kApplicationId = 0x52474148;  // "RGAH"
constexpr std::int64_t kSchemaVersion = 1;
constexpr std::size_t kReplicaFields = 8;
constexpr int kTrimmedMost = 100'000;  // events that one call looks at, as no index has their times
// Ids rise with times, but for records of before the start, which are read late.
constexpr std::int64_t kLateMost = 3'600'000;

Status make_tables(store::SqliteConnection& connection) {
  return connection.execute(fmt::format(
      "BEGIN IMMEDIATE;"
      "CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, time_ms INTEGER NOT NULL,"
      " revision INTEGER NOT NULL, kind TEXT NOT NULL, object TEXT NOT NULL,"
      " reason TEXT NOT NULL, text TEXT NOT NULL);"
      "CREATE INDEX events_of_object ON events (object, id);"
      "CREATE TABLE attempts (job INTEGER NOT NULL, number INTEGER NOT NULL,"
      " stop INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,"
      " replicas TEXT NOT NULL, PRIMARY KEY (job, number)) WITHOUT ROWID;"
      "CREATE INDEX attempts_by_end ON attempts (ended_ms);"
      "CREATE TABLE place (id INTEGER PRIMARY KEY, revision INTEGER NOT NULL,"
      " job INTEGER NOT NULL);"
      "INSERT INTO place VALUES (1, 0, 0);"
      "PRAGMA application_id={}; PRAGMA user_version={};"
      "COMMIT",
      kApplicationId, kSchemaVersion));
}

// A line each: role, devices, phase, exit status, signal, started, ended, node.
std::string replicas_text(const PastAttempt& attempt) {
  std::string text;
  for (const PastReplica& past : attempt.replicas) {
    const control::Replica& replica = past.replica;
    text += fmt::format("{} {} {} {} {} {} {} {}\n", replica.role, replica.devices,
                        static_cast<int>(replica.phase), replica.exit_status, replica.signal,
                        replica.started_ms, replica.ended_ms, past.node);
  }
  return text;
}

std::vector<PastReplica> parse_replicas(std::string_view text) {
  std::vector<PastReplica> replicas;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> fields = split(line, ' ');
    if (fields.size() != kReplicaFields) continue;
    PastReplica& past = replicas.emplace_back();
    past.replica.role = parse_number<int>(fields[0]).value_or(0);
    past.replica.devices = parse_number<std::uint32_t>(fields[1]).value_or(0);
    past.replica.phase =
        static_cast<control::ReplicaPhase>(parse_number<int>(fields[2]).value_or(0));
    past.replica.exit_status = parse_number<int>(fields[3]).value_or(0);
    past.replica.signal = parse_number<int>(fields[4]).value_or(0);
    past.replica.started_ms = parse_number<std::int64_t>(fields[5]).value_or(0);
    past.replica.ended_ms = parse_number<std::int64_t>(fields[6]).value_or(0);
    past.node = fields[7];
  }
  return replicas;
}

Status run(store::SqliteStatement& statement) {
  const Result<bool> done = statement.step();
  statement.clear();
  if (!done) return done.error();
  return {};
}

std::string text_of(const store::SqliteStatement& row, int column) {
  return std::string(row.bytes(column));
}

}  // namespace

Result<HistoryFile> HistoryFile::open(const std::string& path) {
  REGATTA_TRY(connection, store::SqliteConnection::open(path, true));
  REGATTA_TRY_DO(connection->execute("PRAGMA locking_mode=EXCLUSIVE; PRAGMA mmap_size=0"));
  REGATTA_TRY(application, connection->number("PRAGMA application_id"));
  REGATTA_TRY(version, connection->number("PRAGMA user_version"));
  REGATTA_TRY(tables, connection->number("SELECT count(*) FROM sqlite_master"));
  const bool is_empty = application == 0 && version == 0 && tables == 0;
  if (!is_empty && (application != kApplicationId || version != kSchemaVersion))
    return Error{Code::kInvalidInput, path + ": is no history of this program's version"};
  // The last moments before a power failure are read again from the truth, so nothing waits for
  // the disk.
  REGATTA_TRY_DO(connection->execute(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-4096"));
  if (is_empty) REGATTA_TRY_DO(make_tables(*connection));
  return HistoryFile(std::move(connection));
}

Result<ReadPlace> HistoryFile::read_place() {
  REGATTA_TRY(revision, connection_->number("SELECT revision FROM place"));
  REGATTA_TRY(job, connection_->number("SELECT job FROM place"));
  return ReadPlace{revision, job};
}

Status HistoryFile::write(std::span<const ChangeStory> stories, const ReadPlace& place) {
  REGATTA_TRY_DO(connection_->execute("BEGIN IMMEDIATE"));
  Status status = write_rows(stories, place);
  if (status) status = connection_->execute("COMMIT");
  if (!status && connection_->is_in_transaction())
    static_cast<void>(connection_->execute("ROLLBACK").has_value());
  constexpr int kLogPagesMax = 1000;
  if (status && connection_->log_pages() > kLogPagesMax) return connection_->move_log(false);
  return status;
}

Status HistoryFile::write_rows(std::span<const ChangeStory> stories, const ReadPlace& place) {
  REGATTA_TRY(event_row, connection_->prepare(
                             "INSERT INTO events (time_ms, revision, kind, object, reason, text)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6)"));
  REGATTA_TRY(attempt_row,
              connection_->prepare("INSERT OR REPLACE INTO attempts VALUES (?1,?2,?3,?4,?5,?6)"));
  for (const ChangeStory& story : stories) {
    for (const PastEvent& event : story.events) {
      event_row.bind_number(1, event.time_ms);
      event_row.bind_number(2, event.revision);
      event_row.bind_text(3, event.kind);
      event_row.bind_text(4, event.object);
      event_row.bind_text(5, event.reason);
      event_row.bind_text(6, event.text);
      REGATTA_TRY_DO(run(event_row));
    }
    if (!story.ended) continue;
    const std::string replicas = replicas_text(*story.ended);
    attempt_row.bind_number(1, story.ended->job);
    attempt_row.bind_number(2, story.ended->number);
    attempt_row.bind_number(3, static_cast<int>(story.ended->stop));
    attempt_row.bind_number(4, story.ended->started_ms);
    attempt_row.bind_number(5, story.ended->ended_ms);
    attempt_row.bind_text(6, replicas);
    REGATTA_TRY_DO(run(attempt_row));
  }
  return connection_->execute(
      fmt::format("UPDATE place SET revision={}, job={}", place.revision, place.job));
}

Status HistoryFile::trim(std::int64_t before_ms, Bytes size_most) {
  REGATTA_TRY_DO(
      connection_->execute(fmt::format("DELETE FROM events WHERE time_ms < {0} AND id <"
                                       " (SELECT min(id) + {1} FROM events);"
                                       "DELETE FROM attempts WHERE ended_ms < {0}",
                                       before_ms, kTrimmedMost)));
  REGATTA_TRY(pages, connection_->number("PRAGMA page_count"));
  REGATTA_TRY(free_pages, connection_->number("PRAGMA freelist_count"));
  REGATTA_TRY(page_size, connection_->number("PRAGMA page_size"));
  if ((pages - free_pages) * page_size <= size_most.value) return {};
  return connection_->execute(
      "DELETE FROM events WHERE id < (SELECT min(id) + (max(id) - min(id)) / 10 FROM events);"
      "DELETE FROM attempts WHERE (job, number) IN (SELECT job, number FROM attempts"
      " ORDER BY ended_ms LIMIT (SELECT count(*) / 10 FROM attempts))");
}

Result<std::vector<PastEvent>> HistoryFile::find_events(const EventFilter& filter) {
  std::string sql = "SELECT id, time_ms, revision, kind, object, reason, text FROM events WHERE 1";
  if (!filter.kind.empty()) sql += " AND kind=?1";
  if (!filter.object.empty()) sql += " AND object=?2";
  if (filter.before_id > 0) sql += fmt::format(" AND id<{}", filter.before_id);
  REGATTA_TRY(rows, connection_->prepare(sql + " ORDER BY id DESC"));
  if (!filter.kind.empty()) rows.bind_text(1, filter.kind);
  if (!filter.object.empty()) rows.bind_text(2, filter.object);
  std::vector<PastEvent> events;
  while (static_cast<int>(events.size()) < filter.limit) {
    REGATTA_TRY(has_row, rows.step());
    if (!has_row || rows.number(1) < filter.since_ms - kLateMost) break;
    if (rows.number(1) < filter.since_ms) continue;
    events.push_back({.id = rows.number(0),
                      .time_ms = rows.number(1),
                      .revision = rows.number(2),
                      .kind = text_of(rows, 3),
                      .object = text_of(rows, 4),
                      .reason = text_of(rows, 5),
                      .text = text_of(rows, 6)});
  }
  return events;
}

Result<std::vector<PastAttempt>> HistoryFile::find_attempts(control::JobId job) {
  REGATTA_TRY(rows, connection_->prepare("SELECT number, stop, started_ms, ended_ms, replicas FROM"
                                         " attempts WHERE job=?1 ORDER BY number"));
  rows.bind_number(1, job);
  std::vector<PastAttempt> attempts;
  for (;;) {
    REGATTA_TRY(has_row, rows.step());
    if (!has_row) return attempts;
    attempts.push_back({.job = job,
                        .number = static_cast<int>(rows.number(0)),
                        .stop = static_cast<control::StopCause>(rows.number(1)),
                        .started_ms = rows.number(2),
                        .ended_ms = rows.number(3),
                        .replicas = parse_replicas(rows.bytes(4))});
  }
}

}  // namespace regatta::history
