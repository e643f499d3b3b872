// history/cluster_history.h: the past of the cluster for people: events and ended attempts in a
// SQLite file of its own, which a thread of its own writes. Nothing is decided by it: when it is
// lost, the cluster goes on, and the history begins anew with what the truth still holds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/history/change_events.h"
#include "regatta/platform/store/store.h"

namespace regatta::history {

struct HistoryOptions {
  std::string path = {};     // of the file
  Seconds kept{30 * 86400};  // older events and attempts are removed
  Bytes size_most{1LL << 30};
  Bytes waiting_most{64LL << 20};  // of changes that are not read yet; the oldest are left out then
};

// Events of which all that is given holds, the newest first.
struct EventFilter {
  std::string kind;
  std::string object;
  std::int64_t since_ms = 0;
  std::int64_t before_id = 0;  // 0: from the newest on
  int limit = 100;
};

// Any thread, one at a time. Handlers run in the history's thread, after all that was added before
// is written.
class ClusterHistory {
 public:
  // A damaged file is put aside as PATH.damaged, and an event says so. kUnavailable: the folder
  // cannot be written.
  static Result<std::unique_ptr<ClusterHistory>> open(HistoryOptions options);
  // Writes what waits.
  ~ClusterHistory();
  ClusterHistory(const ClusterHistory&) = delete;
  ClusterHistory& operator=(const ClusterHistory&) = delete;

  // The last change that was read when the file was opened; 0: none.
  store::Revision opened_at() const;
  // Objects that were there at the start and have not changed since opened_at(): so their next
  // change is told as one.
  void learn(std::vector<ToldObject> objects);
  // Changes that are durable, in their order. Never waits for the disk. `is_old`: records as they
  // were found at the start, whose own times count.
  void add(std::vector<store::Change> changes, std::int64_t time_ms, bool is_old);
  void find_events(EventFilter filter, std::function<void(Result<std::vector<PastEvent>>)> handler);
  // By rising number; empty where none is known.
  void find_attempts(control::JobId job,
                     std::function<void(Result<std::vector<PastAttempt>>)> handler);

 private:
  struct Impl;
  explicit ClusterHistory(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::history
