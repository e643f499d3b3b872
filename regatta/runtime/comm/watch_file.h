// comm/watch_file.h: a rank records its operations in shared memory (internal/watch/layout.h);
// other processes read them as views, and flight files keep them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <sys/types.h>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/internal/watch/layout.h"
#include "regatta/runtime/comm/internal/watch/verdict.h"

namespace regatta::comm {

// The name of the communicator of all ranks of a world.
inline constexpr std::uint64_t kWorldGroup = 1;

struct WatchSetup {
  std::string job;
  std::string server;
  std::uint32_t token_hash = 0;
  std::uint64_t world = 0;
  int rank = 0;
  std::vector<std::string> names;  // by world rank
};

class GroupLog;

class WatchFile : public std::enable_shared_from_this<WatchFile> {
 public:
  static Result<std::shared_ptr<WatchFile>> create(const WatchSetup& setup);
  WatchFile(const WatchFile&) = delete;
  WatchFile& operator=(const WatchFile&) = delete;
  ~WatchFile();

  // Any thread. Null when all slots are used: that communicator is not recorded.
  std::shared_ptr<GroupLog> add_group(std::uint64_t id, int rank, const std::vector<int>& members);

  // The progress thread.
  void tick(Seconds now) { map_.header().ticked_s.store(now.value, std::memory_order_relaxed); }
  void show_verdict(std::string_view text);
  void show_error(std::string_view text);
  WatchPeer& peer(int rank) const { return map_.peer(static_cast<std::size_t>(rank)); }

  const WatchMap& map() const { return map_; }

 private:
  friend class GroupLog;
  WatchFile(os::UniqueFd fd, WatchMap map) : fd_(std::move(fd)), map_(map) {}

  // A slot of the groups whose id is 0.
  std::optional<std::size_t> free_slot() const REGATTA_REQUIRES(mutex_);

  os::UniqueFd fd_;  // kept open: readers find the file by it
  const WatchMap map_;
  Mutex mutex_;  // guards the ids of the groups in the map
};

// An operation as it is recorded.
struct LoggedCall {
  Lane lane = Lane::kCollective;
  std::uint64_t sequence = 0;
  std::uint64_t call = 0;
  std::uint64_t bytes = 0;
  Seconds started;
};

// Records the operations of one communicator. One thread at a time calls the functions of a lane.
class GroupLog {
 public:
  GroupLog(std::shared_ptr<WatchFile> file, std::size_t slot);
  GroupLog(const GroupLog&) = delete;
  GroupLog& operator=(const GroupLog&) = delete;
  ~GroupLog();

  // The caller's thread: a collective was called.
  void submit() { count(group_.submitted); }
  std::uint64_t submitted() const { return group_.submitted.load(std::memory_order_relaxed); }
  void begin(const LoggedCall& call);
  // The operation under way: bytes of the call that have moved, and the time of the last one.
  void move(Lane lane, std::uint64_t bytes) {
    word(lane, kLaneMoved).store(bytes, std::memory_order_relaxed);
  }
  void progress(Lane lane, Seconds at) {
    word(lane, kLaneProgressed).store(word_of(at.value), std::memory_order_relaxed);
  }
  // The operation ended, without an error or with it.
  void end(const LoggedCall& call, Seconds now, std::optional<Code> error = std::nullopt);

  // The call that was the `sequence`-th collective, as long as it is recorded.
  std::optional<LoggedCall> find(std::uint64_t sequence) const;

 private:
  // One writer at a time: no need of a locked instruction.
  static void count(std::atomic<std::uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  std::atomic<std::uint64_t>& word(Lane lane, LaneWord which) {
    return group_.lanes[static_cast<std::size_t>(lane)].words[which];
  }

  const std::shared_ptr<WatchFile> file_;
  const WatchMap map_;
  WatchGroup& group_;
  const std::uint64_t id_;
};

// A hash of the job's token, too short to reveal it.
std::uint32_t hash_token(std::string_view token);
// One hash of all these texts.
std::uint64_t hash_texts(const std::vector<std::string>& texts);

// A snapshot of a watch file as plain values.

// Times: CLOCK_MONOTONIC of the rank's machine.
struct OperationView {
  Lane lane = Lane::kCollective;
  std::uint64_t sequence = 0;  // of the collective in its communicator, from 1
  std::uint64_t call = 0;      // encode_call()
  std::uint64_t bytes = 0;
  std::uint64_t moved = 0;  // bytes of the call that have moved
  Seconds started;
  Seconds progressed;  // of one that ended: when
  OperationStatus status = OperationStatus::kNone;
  std::optional<Code> error;
};

struct GroupView {
  std::uint64_t id = 0;
  int rank = 0;              // in the communicator
  std::vector<int> members;  // world ranks
  std::uint64_t submitted = 0;
  std::uint64_t ended = 0;
  OperationView collective;  // the last one that began
  OperationView transfer;
};

struct FlightView {
  std::uint64_t number = 0;  // counts the operations of the rank
  std::uint64_t group = 0;
  OperationView operation;
};

struct PeerView {
  std::string name;
  std::uint64_t sent_bytes = 0;
  bool has_departed = false;
};

struct RankView {
  pid_t pid = 0;    // as the reader sees it; 0: from a file
  char state = 0;   // of the process, as in proc(5); 0: unknown
  std::string job;  // its name; may be empty
  std::string server;
  std::uint32_t token_hash = 0;
  std::uint64_t world = 0;  // the same on all ranks of a world
  int rank = 0;
  Seconds started;
  Seconds ticked;  // the last tick of its progress thread
  std::vector<PeerView> peers;
  std::vector<GroupView> groups;
  std::vector<FlightView> flights;  // the last operations that ended, oldest first
  std::string verdict;              // of a stalled operation
  Seconds judged;                   // time of the verdict; 0: unknown
  std::string error;                // of the failed world

  int world_size() const { return static_cast<int>(peers.size()); }
  const std::string& name() const { return peers[static_cast<std::size_t>(rank)].name; }
};

RankView read_view(const WatchMap& map);

// All worlds of a process, from its watch files. kNotFound: there is no such process;
// kInvalidInput: it is in no world of regatta; kUnsupported: this user may not read its files.
Result<std::vector<RankView>> inspect_process(pid_t pid, const std::string& proc = "/proc");

// The ranks on this machine whose job has that name, by world and rank; those of all jobs when it
// is empty. Processes whose files this user may not read are left out.
std::vector<RankView> inspect_job(const std::string& job, const std::string& proc = "/proc");

// The views of several ranks together. Pure: the views may come from running processes or from
// flight files.

// The meaning of a rank of the world without a view.
enum class MissingView : std::uint8_t {
  kElsewhere,  // it may run on another machine: its state is unknown
  kLeftNoFile  // its process ended before the failure: every other one leaves a flight file
};

// The oldest collective of one communicator that some ranks are in and others have not ended.
struct OpenOperation {
  std::uint64_t world = 0;
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;
  std::uint64_t call = 0;  // of the first rank that is in it
  std::uint64_t bytes = 0;
  Seconds progressed;  // the last progress that a rank made in it
  Verdict verdict;
};

// One for each communicator with such an operation. A running operation is open as well: its
// `progressed` tells it from a stalled one.
std::vector<OpenOperation> find_open_operations(const std::vector<RankView>& views,
                                                MissingView missing);

// The sentence about ranks of that view's world that left no flight file.
std::string describe_missing_files(const std::vector<int>& ranks, const RankView& view);

// The flight file that a rank leaves when its world fails: its view as JSON
// (docs/formats/flight.md).

nlohmann::json view_to_json(const RankView& view);
// kInvalidInput names the path of a key that is missing or of another kind; `source` names the
// text.
Result<RankView> view_from_json(const nlohmann::json& json, const std::string& source);

// <folder>/regatta-flight-<job>-rank<r>.json; "job" where it has no name; characters other than
// letters, digits, '.', '_' and '-' become '_'.
std::string flight_path(const std::string& folder, const RankView& view);
// Creates a missing folder and replaces an older file.
Status write_flight_file(const std::string& folder, const RankView& view);
Result<RankView> read_flight_file(const std::string& path);

}  // namespace regatta::comm
