#include "regatta/runtime/bench/regatta_ranks.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/cost/hierarchical_layout.h"
#include "regatta/runtime/bench/internal/shared_control.h"
#include "regatta/runtime/comm/tuner.h"

namespace regatta::bench {
namespace {

// The board, mapped, and the file to hand on.
class SharedControlFile {
 public:
  SharedControlFile() = default;
  SharedControlFile(const SharedControlFile&) = delete;
  SharedControlFile& operator=(const SharedControlFile&) = delete;
  ~SharedControlFile() {
    if (control_ != nullptr) ::munmap(control_, sizeof(SharedControl));
  }
  Status make() {
    file_.reset(::memfd_create("regatta-bench", MFD_CLOEXEC));
    if (!file_ || ::ftruncate(file_.get(), sizeof(SharedControl)) != 0)
      return os::errno_error("share memory with the ranks");
    void* memory =
        ::mmap(nullptr, sizeof(SharedControl), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (memory == MAP_FAILED) return os::errno_error("share memory with the ranks");
    control_ = static_cast<SharedControl*>(memory);
    return {};
  }
  SharedControl& operator*() const { return *control_; }
  SharedControl* operator->() const { return control_; }
  int fd() const { return file_.get(); }

 private:
  os::UniqueFd file_;
  SharedControl* control_ = nullptr;
};

// Whether every rank has something to move.
Status check_sizes(const BenchTask& task) {
  const std::size_t least = least_bytes(task.op, task.ranks);
  for (const std::size_t bytes : task.sizes)
    if (bytes < least)
      return Error{Code::kInvalidInput,
                   "benchmark: " + to_string(task.op) + " of " + std::to_string(bytes) +
                       " bytes has no element for each of " + std::to_string(task.ranks) +
                       " ranks; take at least " + std::to_string(least) + " bytes"};
  return {};
}

// Whether the board has room for it.
Status check_task(const BenchTask& task, const TestEnvironment& environment) {
  const auto wrong = [](const std::string& what, std::size_t most) {
    return Error{Code::kInvalidInput, "benchmark: " + what + " " + std::to_string(most)};
  };
  if (task.ranks < 1 || task.ranks > kRanksMax) return wrong("ranks go from 1 to", kRanksMax);
  if (task.batches < 1 || task.batches > kBatchesMax)
    return wrong("batches go from 1 to", kBatchesMax);
  if (task.sizes.size() > kSizesMax) return wrong("the most sizes are", kSizesMax);
  if (task.settings.tuning.size() >= kTuningMax)
    return wrong("the most bytes of a tuning file are", kTuningMax - 1);
  if (environment.lab && environment.places.size() < static_cast<std::size_t>(task.ranks))
    return wrong("the most ranks that have a place in the lab are", environment.places.size());
  return check_sizes(task);
}

void write_task(SharedControl& control, const BenchTask& task, const TestEnvironment& environment) {
  control.op = task.op;
  control.ranks = task.ranks;
  control.batches = task.batches;
  control.forced = task.settings.forced;
  control.measure = task.settings.measure;
  control.compression = task.settings.compression;
  put_text(control.tuning, task.settings.tuning);
  control.has_shared = !environment.lab;
  control.plans_ports = static_cast<bool>(environment.plan_ports);
  control.size_count = task.sizes.size();
  for (std::size_t i = 0; i < task.sizes.size(); ++i)
    control.sizes[i] = task.sizes[i];
  for (int rank = 0; rank < task.ranks; ++rank) {
    SharedControl::RankSlot& slot = control.slots[rank];
    const RankHost place = environment.lab ? at(environment.places, rank) : RankHost{};
    put_text(slot.server, place.server);
    put_text(slot.address, place.address);
    slot.link_rate_Bps = place.link_rate.value;
  }
}

Result<pid_t> start_rank(const std::string& program, int rank, const TestEnvironment& environment,
                         int control_fd) {
  const std::vector<std::string> command = {program, std::to_string(rank)};
  if (environment.lab) {
    lab::ExecOptions options;
    options.stdin_fd = control_fd;
    return lab::spawn(*environment.lab, at(environment.places, rank).server, command, options);
  }
  os::SpawnOptions options;
  options.stdin_fd = control_fd;
  return os::spawn(command, options);
}

// Once all ranks are there; whether they all come is theirs to find out.
Status plan_ports(SharedControl& control, const TestEnvironment& environment) {
  const Seconds deadline = os::monotonic_now() + kRendezvousLimit;
  while (control.given.load() < control.ranks && os::monotonic_now() < deadline)
    os::sleep_for(Seconds{0.001});
  if (control.given.load() < control.ranks) return {};
  REGATTA_TRY(planned, environment.plan_ports(endpoints_of(control)));
  control.paths = static_cast<int>(planned.paths);
  control.connections = static_cast<int>(std::min<std::size_t>(planned.connections, kPortsMax));
  for (std::size_t from = 0; from < planned.ranks; ++from)
    for (std::size_t to = 0; to < planned.ranks; ++to)
      std::ranges::copy(
          planned.between(from, to).first(static_cast<std::size_t>(control.connections)),
          control.ports[from][to]);
  control.is_planned = true;
  return {};
}

// The first error of the ranks, or "".
std::string wait_for_ranks(const std::vector<pid_t>& ranks, const SharedControl& control) {
  std::string error;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto ended = os::wait_for(ranks[rank]);
    if (error.empty()) error = control.slots[rank].error;
    if (error.empty() && ended && !ended->is_success())
      error = "rank " + std::to_string(rank) + ": " + to_string(*ended);
  }
  return error;
}

Contender contender_of(const SharedControl& control, const std::string& name,
                       SharedControl::Variant variant) {
  Contender contender{name, {}};
  for (std::size_t size = 0; size < control.size_count; ++size) {
    const SharedControl::Cell& cell = control.cells[variant][size];
    Timing timing{.batches_s = {cell.batches_s, cell.batches_s + cell.batches},
                  .wrong = cell.wrong};
    if (variant == SharedControl::kCompressed) {
      timing.error = cell.error;
      timing.kind = to_string(cell.kind);
    }
    contender.timings.push_back(std::move(timing));
  }
  return contender;
}

std::vector<Contender> results(const SharedControl& control) {
  std::vector<Contender> contenders{contender_of(control, "private", SharedControl::kPrivate)};
  if (control.has_shared)
    contenders.push_back(contender_of(control, "shared", SharedControl::kShared));
  if (control.compression != comm::compress::CompressionKind::kNone)
    contenders.push_back(
        contender_of(control, to_string(control.compression), SharedControl::kCompressed));
  return contenders;
}

}  // namespace

std::vector<Seconds> all_reduce_bounds(const BenchTask& task, const TestEnvironment& environment) {
  std::vector<Seconds> bounds;
  if (task.op != CollectiveOp::kAllReduce || !environment.lab) return bounds;
  std::map<std::string, int> numbers;
  cost::RankLocations sites;
  for (const RankHost& place : environment.places) {
    const auto next = static_cast<int>(numbers.size());
    sites.server.push_back(numbers.try_emplace(place.server, next).first->second);
    sites.rate.push_back(place.link_rate);
  }
  if (numbers.size() < 2) return bounds;
  for (const std::size_t size : task.sizes)
    bounds.push_back(all_reduce_bound(Bytes{static_cast<long long>(size)}, sites));
  return bounds;
}

Result<RegattaRun> run_regatta_ranks(const BenchTask& task, const TestEnvironment& environment) {
  REGATTA_TRY_DO(check_task(task, environment));
  REGATTA_TRY(folder, os::executable_folder());
  SharedControlFile control;
  REGATTA_TRY_DO(control.make());
  write_task(*control, task, environment);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < task.ranks; ++rank) {
    auto pid = start_rank(folder + "/regatta-bench-rank", rank, environment, control.fd());
    if (!pid) {
      for (const pid_t started : ranks)
        static_cast<void>(os::terminate(started));
      return pid.error();
    }
    ranks.push_back(*pid);
  }
  const Status planned = environment.plan_ports ? plan_ports(*control, environment) : Status();
  if (!planned) {
    for (const pid_t started : ranks)
      static_cast<void>(os::terminate(started));
    return planned.error();
  }
  const std::string error = wait_for_ranks(ranks, *control);
  if (!error.empty()) return Error{Code::kUnavailable, error};
  REGATTA_TRY(choices, comm::parse_tuning(control->choices));
  return RegattaRun{results(*control), std::move(choices)};
}

}  // namespace regatta::bench
