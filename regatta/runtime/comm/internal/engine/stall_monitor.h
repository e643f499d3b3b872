// comm/internal/engine/stall_monitor.h: finds operations of this rank that stand still and the
// ranks that they wait for. A rank queries its peers; their progress threads reply even when their
// callers hang. Inside a server the shared segments and the states of the processes show the same
// without a reply. diagnose_stall() (internal/watch/verdict.h) gives the verdict. Progress thread
// only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/engine/link_set.h"
#include "regatta/runtime/comm/internal/engine/message_matcher.h"
#include "regatta/runtime/comm/internal/engine/operation_executor.h"
#include "regatta/runtime/comm/internal/engine/stall_diagnosis.h"
#include "regatta/runtime/comm/internal/engine/stopped_processes.h"
#include "regatta/runtime/comm/internal/shm/shm_world.h"
#include "regatta/runtime/comm/internal/watch/progress_reply.h"
#include "regatta/runtime/comm/internal/watch/wait_history.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {

// All references and pointers outlive the monitor.
struct StallMonitorSetup {
  int rank = 0;
  const std::vector<std::string>& names;  // by world rank
  Seconds progress_timeout;               // 0: none
  std::shared_ptr<WatchFile> watch;       // null: verdicts are not shown
  LinkSet& links;
  const OperationExecutor& executor;
  const MessageMatcher& matcher;
  ShmWorld* shm = nullptr;  // null: the rank shares no memory
  StoppedProcesses& stopped;
};

class StallMonitor {
 public:
  explicit StallMonitor(StallMonitorSetup setup) : setup_(std::move(setup)) {}

  // Looks for stalls and goes on with their diagnosis. Returns the error that must end the world,
  // if any: a mismatch of the calls, or the progress timeout.
  std::optional<Error> check(Seconds now);
  void receive_reply(int peer, const MessageKey& key, const ProgressReply& reply);
  // While a diagnosis is open the progress thread calls check() every kStallDiagnosisTick.
  bool is_diagnosing() const { return !diagnoses_.empty(); }
  // Ends all diagnoses: what they know is outdated.
  void reset(Seconds now);
  // The world has failed: nothing is diagnosed any more.
  void clear() { diagnoses_.clear(); }

 private:
  Seconds query_time() const;
  Seconds stall_timeout() const;
  std::vector<StalledCall> find_stalled(Seconds now) const;
  void update_diagnoses(Seconds now);
  std::optional<Error> advance(StallDiagnosis& diagnosis, Seconds now);
  bool must_query(const StallDiagnosis& diagnosis, Seconds now) const;
  void query_peers(StallDiagnosis& diagnosis, Seconds now);
  bool has_all_replies(const StallDiagnosis& diagnosis, Seconds now) const;
  std::vector<bool> stopped_ranks(const StallDiagnosis& diagnosis) const;
  Verdict judge(const StallDiagnosis& diagnosis) const;
  std::optional<Error> timeout_error(const StallDiagnosis& diagnosis, const Verdict& verdict,
                                     Seconds now) const;
  std::string describe(const StalledCall& stalled) const;
  void report(StallDiagnosis& diagnosis, Verdict verdict, Seconds now);
  void end(const StallDiagnosis& diagnosis, Seconds now);

  const StallMonitorSetup setup_;
  std::vector<StallDiagnosis> diagnoses_;
  WaitHistory wait_history_;
};

}  // namespace regatta::comm
