// history/internal/history_file.h: the SQLite file of a history: docs/formats/history.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/history/change_events.h"
#include "regatta/platform/history/cluster_history.h"
#include "regatta/platform/store/sqlite_connection.h"

namespace regatta::history {

// How far the changes of the truth have been read.
struct ReadPlace {
  store::Revision revision = 0;
  control::JobId job = 0;
};

class HistoryFile {
 public:
  // Makes the file where it is missing. kInvalidInput: it is damaged, another program's or a newer
  // one's.
  static Result<HistoryFile> open(const std::string& path);

  Result<ReadPlace> read_place();
  // In one transaction. An attempt that is there already is replaced.
  Status write(std::span<const ChangeStory> stories, const ReadPlace& place);
  // Removes what is older than `before_ms`, and a tenth of all, the oldest, while the file has more
  // than `size_most`.
  Status trim(std::int64_t before_ms, Bytes size_most);
  Result<std::vector<PastEvent>> find_events(const EventFilter& filter);
  Result<std::vector<PastAttempt>> find_attempts(control::JobId job);

 private:
  explicit HistoryFile(std::unique_ptr<store::SqliteConnection> connection)
      : connection_(std::move(connection)) {}
  Status write_rows(std::span<const ChangeStory> stories, const ReadPlace& place);

  std::unique_ptr<store::SqliteConnection> connection_;
};

}  // namespace regatta::history
