// history/change_events.h: what the changes of the controller's store tell people: events in one
// sentence each, and attempts that have ended. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/control/job.h"
#include "regatta/platform/store/store.h"

namespace regatta::history {

// Something that happened to a job, a node or the queues.
struct PastEvent {
  std::int64_t id = 0;       // rises with time; given by the history
  std::int64_t time_ms = 0;  // Unix
  store::Revision revision = 0;
  std::string kind;    // job, node, queues, history
  std::string object;  // a job's handle, a node's name, or ""
  std::string reason;  // one word for programs: submitted, running, held, silent, ...
  std::string text;    // one sentence
};

// A replica of an attempt that has ended; `node` is its name.
struct PastReplica {
  std::string node;
  control::Replica replica;  // its `node` is 0
};

struct PastAttempt {
  control::JobId job = 0;
  int number = 0;
  control::StopCause stop = control::StopCause::kNone;
  std::int64_t started_ms = 0;  // Unix
  std::int64_t ended_ms = 0;
  std::vector<PastReplica> replicas;
};

struct ChangeStory {
  std::vector<PastEvent> events;
  std::optional<PastAttempt> ended;
};

// A job or a node of which earlier events have told.
struct ToldObject {
  control::JobId job = 0;  // 0: it is a node
  std::string node;
  int phase = 0;  // of the job, or the intent of the node
  bool is_held = false;
};

// Compares each change with what it knows of the object from earlier ones. Jobs that are over are
// forgotten, so it holds some 50 bytes for each other job.
class ChangeReader {
 public:
  // `last_job`: jobs up to this number have been told of.
  explicit ChangeReader(control::JobId last_job) : last_job_(last_job) {}

  void learn(const ToldObject& object);
  control::JobId last_job() const { return last_job_; }
  // `time_ms`: when the change was made. `is_old`: it is read long after, and the times in its
  // record count. kInvalidInput where the record cannot be read.
  Result<ChangeStory> read(const store::Change& change, std::int64_t time_ms, bool is_old);

 private:
  struct KnownJob {
    control::JobPhase phase = control::JobPhase::kPending;
    bool is_held = false;
    int attempt = 0;  // the latest that has ended
  };
  struct KnownNode {
    int intent = 0;
    int state = 0;
  };
  Result<ChangeStory> read_job(const store::Change& change, std::int64_t time_ms, bool is_old);
  Result<ChangeStory> read_node(const store::Change& change, std::int64_t time_ms, bool is_old);

  control::JobId last_job_;
  std::unordered_map<control::JobId, KnownJob> jobs_;
  std::unordered_map<std::string, KnownNode> nodes_;
};

}  // namespace regatta::history
