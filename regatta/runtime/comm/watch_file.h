// comm/watch_file.h: the own side of internal/watch/layout.h: a rank writes down what it does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/internal/watch/layout.h"

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

  // Any thread. Null when all slots are taken: that communicator is not shown.
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

  os::UniqueFd fd_;  // kept open: others find the file by it
  const WatchMap map_;
  std::mutex mutex_;  // guards the ids of the slots
};

// One operation as it is written down.
struct LoggedCall {
  Lane lane = Lane::kCollective;
  std::uint64_t sequence = 0;
  std::uint64_t call = 0;
  std::uint64_t bytes = 0;
  Seconds started;
};

// What one communicator does. The functions of a lane are called by one thread at a time.
class GroupLog {
 public:
  GroupLog(std::shared_ptr<WatchFile> file, std::size_t slot);
  GroupLog(const GroupLog&) = delete;
  GroupLog& operator=(const GroupLog&) = delete;
  ~GroupLog();

  // By the caller's thread: a collective was called.
  void submit() { count(group_.submitted); }
  std::uint64_t submitted() const { return group_.submitted.load(std::memory_order_relaxed); }
  void begin(const LoggedCall& call);
  // Of the operation under way: bytes of the call that are through, and when the last one was.
  void move(Lane lane, std::uint64_t bytes) {
    word(lane, kLaneMoved).store(bytes, std::memory_order_relaxed);
  }
  void progress(Lane lane, Seconds at) {
    word(lane, kLaneProgressed).store(word_of(at.value), std::memory_order_relaxed);
  }
  // The operation ended, well or with the error.
  void end(const LoggedCall& call, Seconds now, std::optional<Code> error = std::nullopt);

  // The call that was the `sequence`-th collective, as long as it is remembered.
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

// Of the job's token: names the job, and leaves the other bits of it open.
std::uint32_t hash_token(std::string_view token);
// One name for what all these texts say.
std::uint64_t hash_texts(const std::vector<std::string>& texts);

}  // namespace regatta::comm
