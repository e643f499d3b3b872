#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {
namespace {

constexpr std::uint32_t kRanksMost = 1U << 20;
constexpr std::uint32_t kSlotsMost = 1U << 20;

std::string text_of(const char* text, std::size_t longest) {
  return {text, strnlen(text, longest)};
}

std::string text_of(const WatchText& box) {
  const auto words = box.read();
  if (!words) return {};
  return text_of(reinterpret_cast<const char*>(words->data()), kWatchTextBytes);
}

void set_status(OperationView& view, std::uint64_t word) {
  const auto failed = static_cast<std::uint64_t>(OperationStatus::kFailed);
  view.status = static_cast<OperationStatus>(std::min(word, failed));
  if (word >= failed) view.error = static_cast<Code>(word - failed);
}

OperationView read_lane(const WatchGroup& group, Lane lane) {
  OperationView view{.lane = lane};
  const auto words = group.lanes[static_cast<std::size_t>(lane)].read();
  if (!words) return view;
  view.sequence = (*words)[kLaneSequence];
  view.call = (*words)[kLaneCall];
  view.bytes = (*words)[kLaneBytes];
  view.moved = (*words)[kLaneMoved];
  view.started = {double_of((*words)[kLaneStarted])};
  view.progressed = {double_of((*words)[kLaneProgressed])};
  set_status(view, (*words)[kLaneStatus]);
  return view;
}

// Nothing when the slot is free, or was given to another communicator meanwhile.
std::optional<GroupView> read_group(const WatchMap& map, std::size_t slot) {
  const WatchGroup& group = map.group(slot);
  GroupView view{.id = group.id.load(std::memory_order_acquire),
                 .rank = static_cast<int>(group.rank.load(std::memory_order_relaxed)),
                 .submitted = group.submitted.load(std::memory_order_relaxed),
                 .ended = group.ended.load(std::memory_order_relaxed)};
  if (view.id == 0) return std::nullopt;
  const std::uint32_t size = group.size.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < std::min(size, map.shape.world_size); ++i) {
    const std::uint32_t member = map.members(slot)[i].load(std::memory_order_relaxed);
    if (member >= map.shape.world_size) return std::nullopt;
    view.members.push_back(static_cast<int>(member));
  }
  view.collective = read_lane(group, Lane::kCollective);
  view.transfer = read_lane(group, Lane::kTransfer);
  if (group.id.load(std::memory_order_acquire) != view.id) return std::nullopt;
  return view;
}

std::vector<FlightView> read_flights(const WatchMap& map) {
  std::vector<FlightView> flights;
  const std::uint64_t end = map.header().flights.load(std::memory_order_acquire);
  const std::uint64_t slots = map.shape.flight_slots;
  for (std::uint64_t number = end > slots ? end - slots : 0; number < end; ++number) {
    const WatchFlight& flight = map.flight(number);
    const std::uint64_t version = flight.version.load(std::memory_order_acquire);
    const auto words = flight.read();
    // Its writer has not come to it yet, or a later one has taken the slot.
    if (!words || version != 2 * (number / slots + 1)) continue;
    FlightView view{.number = number, .group = (*words)[kFlightGroup]};
    const std::uint64_t sequence = (*words)[kFlightSequence];
    view.operation.lane = (sequence & kLaneBit) != 0 ? Lane::kTransfer : Lane::kCollective;
    view.operation.sequence = sequence & ~kLaneBit;
    view.operation.call = (*words)[kFlightCall];
    view.operation.bytes = view.operation.moved = (*words)[kFlightBytes];
    view.operation.started = {double_of((*words)[kFlightStarted])};
    view.operation.progressed = {double_of((*words)[kFlightEnded])};
    set_status(view.operation, (*words)[kFlightStatus]);
    if (view.operation.error) view.operation.moved = 0;
    flights.push_back(view);
  }
  return flights;
}

// A watch file of another process, mapped for reading.
class ForeignFile {
 public:
  static std::optional<ForeignFile> open(const std::string& path) {
    const os::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!fd || fstat(fd.get(), &status) != 0) return std::nullopt;
    // Only a file that cannot shrink is safe to read.
    const int seals = fcntl(fd.get(), F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return std::nullopt;
    const auto bytes = static_cast<std::size_t>(status.st_size);
    if (bytes < kWatchHeaderBytes) return std::nullopt;
    void* memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (memory == MAP_FAILED) return std::nullopt;
    ForeignFile file;
    file.bytes_ = bytes;
    file.inode_ = status.st_ino;
    file.map_.memory = static_cast<std::byte*>(memory);
    const WatchHeader& header = file.map_.header();
    file.map_.shape = {header.world_size, header.group_slots, header.flight_slots};
    const WatchShape& shape = file.map_.shape;
    const bool is_ours = header.magic.load(std::memory_order_acquire) == kWatchMagic &&
                         header.version == kWatchVersion && shape.world_size <= kRanksMost &&
                         shape.group_slots <= kSlotsMost && shape.flight_slots <= kSlotsMost &&
                         shape.flight_slots > 0 && header.rank < shape.world_size &&
                         shape.bytes() <= bytes;
    if (!is_ours) return std::nullopt;
    return file;
  }
  ForeignFile() = default;
  ForeignFile(ForeignFile&& other) noexcept
      : bytes_(other.bytes_), inode_(other.inode_), map_(std::exchange(other.map_, {})) {}
  ForeignFile& operator=(ForeignFile&&) = delete;
  ~ForeignFile() {
    if (map_.memory != nullptr) munmap(map_.memory, bytes_);
  }

  const WatchMap& map() const { return map_; }
  ino_t inode() const { return inode_; }

 private:
  std::size_t bytes_ = 0;
  ino_t inode_ = 0;
  WatchMap map_;
};

// The pid that the process has in its own namespace; what its forks inherit does not name them.
pid_t pid_inside(const std::string& folder, pid_t outside) {
  const auto status = os::read_file(folder + "/status");
  if (!status) return outside;
  const std::size_t at = status->find("NSpid:");
  if (at == std::string::npos) return outside;
  const std::string line = status->substr(at, status->find('\n', at) - at);
  return static_cast<pid_t>(
      std::strtol(line.substr(line.find_last_of("\t ") + 1).c_str(), nullptr, 10));
}

bool is_watch_file(const std::filesystem::path& link) {
  std::error_code error;
  const std::string target = std::filesystem::read_symlink(link, error);
  return !error && target.find(std::string("memfd:") + kWatchName) != std::string::npos;
}

}  // namespace

RankView read_view(const WatchMap& map) {
  const WatchHeader& header = map.header();
  RankView view{.job = text_of(header.job, sizeof header.job - 1),
                .server = text_of(header.server, sizeof header.server - 1),
                .token_hash = header.token_hash,
                .world = header.world,
                .rank = static_cast<int>(header.rank),
                .started = {header.started_s},
                .ticked = {header.ticked_s.load(std::memory_order_relaxed)}};
  for (std::uint32_t rank = 0; rank < map.shape.world_size; ++rank) {
    const WatchPeer& peer = map.peer(rank);
    view.peers.push_back({.name = text_of(peer.name, sizeof peer.name - 1),
                          .sent_bytes = peer.sent_bytes.load(std::memory_order_relaxed),
                          .has_departed = peer.has_departed.load(std::memory_order_relaxed) != 0});
  }
  for (std::size_t slot = 0; slot < map.shape.group_slots; ++slot)
    if (auto group = read_group(map, slot)) view.groups.push_back(*std::move(group));
  view.flights = read_flights(map);
  view.verdict = text_of(header.verdict);
  view.judged = {header.judged_s.load(std::memory_order_relaxed)};
  view.error = text_of(header.error);
  return view;
}

Result<std::vector<RankView>> inspect_process(pid_t pid, const std::string& proc) {
  const std::string folder = proc + "/" + std::to_string(pid);
  const std::string who = "process " + std::to_string(pid);
  const auto process = os::read_process(pid, proc);
  if (!process) return Error{Code::kNotFound, who + ": there is none; see regatta coll inspect"};
  std::error_code error;
  const std::filesystem::directory_iterator descriptors(folder + "/fd", error);
  if (error == std::errc::permission_denied)
    return Error{Code::kUnsupported,
                 who + ": it belongs to another user; ask as that user or root"};
  if (error) return Error{Code::kNotFound, who + ": it has ended"};
  std::vector<RankView> views;
  std::vector<ino_t> seen;
  for (const auto& descriptor : descriptors) {
    if (!is_watch_file(descriptor.path())) continue;
    const auto file = ForeignFile::open(descriptor.path());
    if (!file || std::find(seen.begin(), seen.end(), file->inode()) != seen.end()) continue;
    seen.push_back(file->inode());
    if (file->map().header().pid != pid_inside(folder, pid)) continue;
    RankView view = read_view(file->map());
    view.pid = pid;
    view.state = process->state;
    views.push_back(std::move(view));
  }
  if (views.empty())
    return Error{Code::kInvalidInput,
                 who + " (" + printable(process->command, 20) +
                     "): it is no rank of a regatta job, or its job is not watched; "
                     "regatta coll inspect shows those that there are"};
  return views;
}

std::vector<RankView> inspect_job(const std::string& job, const std::string& proc) {
  std::vector<RankView> all;
  for (const os::ProcessEntry& process : os::list_processes(proc)) {
    auto views = inspect_process(process.pid, proc);
    if (!views) continue;
    for (RankView& view : *views)
      if (job.empty() || view.job == job) all.push_back(std::move(view));
  }
  std::sort(all.begin(), all.end(), [](const RankView& a, const RankView& b) {
    return std::tie(a.job, a.world, a.rank) < std::tie(b.job, b.world, b.rank);
  });
  return all;
}

}  // namespace regatta::comm
