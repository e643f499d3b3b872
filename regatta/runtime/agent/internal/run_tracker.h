// agent/internal/run_tracker.h: the state of one run: the events of the workers, the replies that
// are due, and when and why the run is over. Pure: events and the time are arguments.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/agent/internal/failure_cause.h"

namespace regatta::agent::proto {
class AgentEvent;
class WorkerExit;
class WorkerLine;
}  // namespace regatta::agent::proto

namespace regatta::agent {

// A detected fault is named and all workers are ended within 10 s, except after `join`. There is no
// timeout for a rank that joined, lives and hangs: its run continues until it is stopped.
struct FailureTimeouts {
  Seconds heartbeat{4.0};    // a server without one for this long is lost
  Seconds silence{1.2};      // a server without one for this long is suspect: it may be the cause
  Seconds pause{4.6};        // a paused worker: longer than `heartbeat`, as a stopped server pauses
                             // its workers too
  Seconds carrier{3.0};      // a cable may come back within this time
  Seconds gather{1.0};       // after trouble between peers: for the reports that explain it
  Seconds gather_sure{0.5};  // after a cause that needs no explanation
  Seconds join{120.0};       // until every rank has sent its endpoint
};

struct TrackedServer {
  std::string name;
  // Interface -> the name of its link, for the interfaces that this run uses. Where they are
  // unknown
  // (`links_known` false), a loss of carrier explains a failure but is none by itself.
  std::map<std::string, std::string> links;
  bool links_known = false;
};

struct RunDescription {
  int run = 0;
  std::vector<std::string> rank_names;      // "rank 3 (s1/1)"
  std::vector<std::size_t> server_of_rank;  // index into `servers`
  std::vector<TrackedServer> servers;
  FailureTimeouts timeouts;
};

class RunTracker {
 public:
  RunTracker(RunDescription description, Seconds now);

  // An interface that was down when the run started: reported only where links are known.
  void carrier_was_down(std::size_t server, const std::string& interface, Seconds now);
  void on_event(std::size_t server, const proto::AgentEvent& event, Seconds now);
  // This process itself was stopped: silence until now is no fault.
  void restart_silence_timeouts(Seconds now);
  void on_server_lost(std::size_t server, const std::string& how, Seconds now);

  const std::vector<std::size_t>& server_of_rank() const { return description_.server_of_rank; }

  // The endpoints of all ranks, once every rank has sent its own, for a reply to all; then nothing.
  std::optional<std::vector<std::string>> take_peers();
  // The workers' events since the last call, endpoints left out.
  std::vector<std::pair<Rank, nlohmann::json>> take_events();

  // Every worker ended well after its "done".
  bool succeeded() const;
  // The reason to end the run, after the time to gather the reports about it.
  std::optional<Error> failure(Seconds now) const;
  // A cause was reported, whether failure() still gathers or not; a silent server, a pause, a lost
  // cable or a missing endpoint is no report. Callers may then add causes of their own.
  bool is_gathering() const { return !causes_.empty(); }
  void add_cause(Cause cause) { causes_.push_back(std::move(cause)); }

 private:
  struct RankState {
    std::optional<std::string> endpoint;
    bool done = false;
    bool has_reported_error = false;
    bool ended = false;
    std::optional<std::pair<Seconds, int>> paused;  // since, signal
    std::string last_log;
  };
  struct ServerState {
    Seconds last_heartbeat;
    bool lost = false;
    std::map<std::string, Seconds> down;  // interface -> since
  };

  void carrier_went_down(std::size_t server, const std::string& interface, Seconds now);
  void on_line(const proto::WorkerLine& line, Seconds now);
  void on_exit(const proto::WorkerExit& exit, Seconds now);
  std::vector<Cause> open_causes(Seconds now, bool ripe_only) const;
  Cause paused_cause(std::size_t rank, Seconds since, int signal) const;
  Cause carrier_cause(std::size_t server, const std::string& interface, Seconds since) const;
  bool is_suspect(Seconds now) const;
  bool knows_rank(int run, int rank) const;

  RunDescription description_;
  Seconds started_;
  std::vector<RankState> ranks_;
  std::vector<ServerState> servers_;
  std::vector<Cause> causes_;
  std::vector<std::pair<Rank, nlohmann::json>> events_;
  bool peers_taken_ = false;
};

}  // namespace regatta::agent
