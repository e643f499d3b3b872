#include "regatta/runtime/comm/watch_file.h"

#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "regatta/base/core/stats.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::comm {
namespace {

// A text that is too long loses its end.
template <std::size_t kSize>
void put_text(char (&place)[kSize], std::string_view text) {
  place[text.copy(place, kSize - 1)] = '\0';
}

void write_text(WatchText& box, std::string_view text) {
  WatchText::Values words{};
  text.copy(reinterpret_cast<char*>(words.data()), kWatchTextBytes - 1);
  box.write(words);
}

std::uint64_t hash_text(std::uint64_t seed, std::string_view text) {
  std::uint64_t sum = splitmix_finish(seed + text.size());
  for (const char c : text)
    sum = splitmix(sum + static_cast<unsigned char>(c));
  return sum;
}

}  // namespace

Result<std::shared_ptr<WatchFile>> WatchFile::create(const WatchSetup& setup) {
  const WatchShape shape{.world_size = static_cast<std::uint32_t>(setup.names.size())};
  os::UniqueFd fd(memfd_create(kWatchName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return os::errno_error("make a memory file");
  if (ftruncate(fd.get(), static_cast<off_t>(shape.bytes())) != 0)
    return os::errno_error("size a memory file");
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return os::errno_error("seal a memory file");
  void* memory = mmap(nullptr, shape.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return os::errno_error("map a memory file");
  const WatchMap map{static_cast<std::byte*>(memory), shape};
  WatchHeader& header = map.header();
  header.version = kWatchVersion;
  header.pid = getpid();
  header.rank = static_cast<std::uint32_t>(setup.rank);
  header.world_size = shape.world_size;
  header.group_slots = shape.group_slots;
  header.flight_slots = shape.flight_slots;
  header.world = setup.world;
  header.token_hash = setup.token_hash;
  header.started_s = os::monotonic_now().value;
  put_text(header.job, setup.job);
  put_text(header.server, setup.server);
  header.ticked_s.store(header.started_s);
  for (std::size_t rank = 0; rank < setup.names.size(); ++rank)
    put_text(map.peer(rank).name, setup.names[rank]);
  header.magic.store(kWatchMagic, std::memory_order_release);
  return std::shared_ptr<WatchFile>(new WatchFile(std::move(fd), map));
}

WatchFile::~WatchFile() {
  munmap(map_.memory, map_.shape.bytes());
}

std::shared_ptr<GroupLog> WatchFile::add_group(std::uint64_t id, int rank,
                                               const std::vector<int>& members) {
  const MutexLock lock(mutex_);
  const auto slot = free_slot();
  if (!slot) return nullptr;
  WatchGroup& group = map_.group(*slot);
  group.rank.store(static_cast<std::uint32_t>(rank), std::memory_order_relaxed);
  group.size.store(static_cast<std::uint32_t>(members.size()), std::memory_order_relaxed);
  group.submitted.store(0, std::memory_order_relaxed);
  group.ended.store(0, std::memory_order_relaxed);
  for (std::size_t i = 0; i < members.size(); ++i)
    map_.members(*slot)[i].store(static_cast<std::uint32_t>(members[i]), std::memory_order_relaxed);
  for (auto& lane : group.lanes)
    lane.write({});
  group.id.store(id, std::memory_order_release);
  return std::make_shared<GroupLog>(shared_from_this(), *slot);
}

std::optional<std::size_t> WatchFile::free_slot() const {
  for (std::size_t slot = 0; slot < map_.shape.group_slots; ++slot)
    if (map_.group(slot).id.load(std::memory_order_relaxed) == 0) return slot;
  return std::nullopt;
}

void WatchFile::show_verdict(std::string_view text) {
  map_.header().judged_s.store(os::monotonic_now().value, std::memory_order_relaxed);
  write_text(map_.header().verdict, text);
}

void WatchFile::show_error(std::string_view text) {
  write_text(map_.header().error, text);
}

GroupLog::GroupLog(std::shared_ptr<WatchFile> file, std::size_t slot)
    : file_(std::move(file)),
      map_(file_->map()),
      group_(map_.group(slot)),
      id_(group_.id.load(std::memory_order_relaxed)) {}

GroupLog::~GroupLog() {
  const MutexLock lock(file_->mutex_);
  group_.id.store(0, std::memory_order_release);
}

void GroupLog::begin(const LoggedCall& call) {
  const std::uint64_t started = word_of(call.started.value);
  group_.lanes[static_cast<std::size_t>(call.lane)].write(
      {call.sequence, call.call, call.bytes, 0, started, started,
       static_cast<std::uint64_t>(OperationStatus::kRuns)});
}

void GroupLog::end(const LoggedCall& call, Seconds now, std::optional<Code> error) {
  const auto status = static_cast<std::uint64_t>(
      error ? static_cast<int>(OperationStatus::kFailed) + static_cast<int>(*error)
            : static_cast<int>(OperationStatus::kDone));
  const std::uint64_t lane_bit = call.lane == Lane::kTransfer ? kLaneBit : 0;
  const std::uint64_t number = map_.header().flights.fetch_add(1, std::memory_order_relaxed);
  map_.flight(number).write({id_, call.sequence | lane_bit, call.call, call.bytes,
                             word_of(call.started.value), word_of(now.value), status});
  if (word(call.lane, kLaneSequence).load(std::memory_order_relaxed) == call.sequence &&
      word(call.lane, kLaneCall).load(std::memory_order_relaxed) == call.call) {
    // As in its flight: a whole operation may run between two ticks of the progress thread.
    // Parts of any length have no size in the call: what was counted stays.
    if (!error) {
      if (call.bytes > 0) move(call.lane, call.bytes);
      progress(call.lane, now);
    }
    word(call.lane, kLaneStatus).store(status, std::memory_order_relaxed);
  }
  if (call.lane == Lane::kCollective) count(group_.ended);
}

std::optional<LoggedCall> GroupLog::find(std::uint64_t sequence) const {
  for (std::uint32_t slot = 0; slot < map_.shape.flight_slots; ++slot) {
    const auto flight = map_.flight(slot).read();
    if (!flight || (*flight)[kFlightGroup] != id_ || (*flight)[kFlightSequence] != sequence)
      continue;
    return LoggedCall{.sequence = sequence,
                      .call = (*flight)[kFlightCall],
                      .bytes = (*flight)[kFlightBytes],
                      .started = {double_of((*flight)[kFlightStarted])}};
  }
  return std::nullopt;
}

std::uint32_t hash_token(std::string_view token) {
  return static_cast<std::uint32_t>(hash_text(0x746f6b656eULL, token));
}

std::uint64_t hash_texts(const std::vector<std::string>& texts) {
  std::uint64_t sum = texts.size();
  for (const std::string& text : texts)
    sum = hash_text(sum, text);
  return sum;
}

}  // namespace regatta::comm
