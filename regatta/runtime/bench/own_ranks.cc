#include "regatta/runtime/bench/own_ranks.h"

#include <cstddef>
#include <string>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/errno_text.h"
#include "regatta/base/os/process.h"
#include "regatta/runtime/bench/internal/board.h"
#include "regatta/runtime/comm/tuning_file.h"

namespace regatta::bench {
namespace {

// The board, mapped, and the file to hand on.
class SharedBoard {
 public:
  SharedBoard() = default;
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;
  ~SharedBoard() {
    if (board_ != nullptr) ::munmap(board_, sizeof(Board));
  }
  Status make() {
    file_.reset(::memfd_create("regatta-bench", MFD_CLOEXEC));
    if (!file_ || ::ftruncate(file_.get(), sizeof(Board)) != 0)
      return os::errno_error("share memory with the ranks");
    void* memory =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (memory == MAP_FAILED) return os::errno_error("share memory with the ranks");
    board_ = static_cast<Board*>(memory);
    return {};
  }
  Board& operator*() const { return *board_; }
  Board* operator->() const { return board_; }
  int fd() const { return file_.get(); }

 private:
  os::UniqueFd file_;
  Board* board_ = nullptr;
};

// Whether every rank has something to move.
Status check_sizes(const Task& task) {
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
Status check_task(const Task& task, const Ground& ground) {
  const auto wrong = [](const std::string& what, std::size_t most) {
    return Error{Code::kInvalidInput, "benchmark: " + what + " " + std::to_string(most)};
  };
  if (task.ranks < 1 || task.ranks > kRanksMax) return wrong("ranks go from 1 to", kRanksMax);
  if (task.batches < 1 || task.batches > kBatchesMax)
    return wrong("batches go from 1 to", kBatchesMax);
  if (task.sizes.size() > kSizesMax) return wrong("the most sizes are", kSizesMax);
  if (task.how.tuning.size() >= kTuningMax)
    return wrong("the most bytes of a tuning file are", kTuningMax - 1);
  if (ground.lab && ground.places.size() < static_cast<std::size_t>(task.ranks))
    return wrong("the most ranks that have a place in the lab are", ground.places.size());
  return check_sizes(task);
}

void write_task(Board& board, const Task& task, const Ground& ground) {
  board.op = task.op;
  board.ranks = task.ranks;
  board.batches = task.batches;
  board.forced = task.how.forced;
  board.measure = task.how.measure;
  board.compression = task.how.compression;
  put_text(board.tuning, task.how.tuning);
  board.has_shared = !ground.lab;
  board.plans_ports = static_cast<bool>(ground.plan_ports);
  board.size_count = task.sizes.size();
  for (std::size_t i = 0; i < task.sizes.size(); ++i)
    board.sizes[i] = task.sizes[i];
  for (int rank = 0; rank < task.ranks; ++rank) {
    Board::Seat& seat = board.seats[rank];
    const Place place = ground.lab ? ground.places[static_cast<std::size_t>(rank)] : Place{};
    put_text(seat.server, place.server);
    put_text(seat.address, place.address);
    seat.link_rate_Bps = place.link_rate.value;
  }
}

Result<pid_t> start_rank(const std::string& program, int rank, const Ground& ground, int board_fd) {
  const std::vector<std::string> command = {program, std::to_string(rank)};
  if (ground.lab) {
    lab::ExecOptions options;
    options.stdin_fd = board_fd;
    return lab::spawn(*ground.lab, ground.places[static_cast<std::size_t>(rank)].server, command,
                      options);
  }
  os::SpawnOptions options;
  options.stdin_fd = board_fd;
  return os::spawn(command, options);
}

// Once all ranks are there; whether they all come is theirs to find out.
Status plan_ports(Board& board, const Ground& ground) {
  const Seconds deadline = os::monotonic_now() + kMeetingLimit;
  while (board.given.load() < board.ranks && os::monotonic_now() < deadline)
    os::sleep_for(Seconds{0.001});
  if (board.given.load() < board.ranks) return {};
  REGATTA_TRY(planned, ground.plan_ports(endpoints_of(board)));
  board.ways = static_cast<int>(planned.paths);
  board.connections = static_cast<int>(std::min<std::size_t>(planned.connections, kPortsMax));
  for (std::size_t from = 0; from < planned.ranks; ++from)
    for (std::size_t to = 0; to < planned.ranks; ++to)
      std::ranges::copy(
          planned.between(from, to).first(static_cast<std::size_t>(board.connections)),
          board.ports[from][to]);
  board.is_planned = true;
  return {};
}

// The first error of the ranks, or "".
std::string wait_for_ranks(const std::vector<pid_t>& ranks, const Board& board) {
  std::string error;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto ended = os::wait_for(ranks[rank]);
    if (error.empty()) error = board.seats[rank].error;
    if (error.empty() && ended && !ended->is_success())
      error = "rank " + std::to_string(rank) + ": " + to_string(*ended);
  }
  return error;
}

Contender contender_of(const Board& board, const std::string& name, Board::Way way) {
  Contender contender{name, {}};
  for (std::size_t size = 0; size < board.size_count; ++size) {
    const Board::Cell& cell = board.cells[way][size];
    Timing timing{.batches_s = {cell.batches_s, cell.batches_s + cell.batches},
                  .wrong = cell.wrong};
    if (way == Board::kCompressed) {
      timing.error = cell.error;
      timing.kind = to_string(cell.kind);
    }
    contender.timings.push_back(std::move(timing));
  }
  return contender;
}

std::vector<Contender> results(const Board& board) {
  std::vector<Contender> contenders{contender_of(board, "private", Board::kPrivate)};
  if (board.has_shared) contenders.push_back(contender_of(board, "shared", Board::kShared));
  if (board.compression != comm::compress::Kind::kNone)
    contenders.push_back(contender_of(board, to_string(board.compression), Board::kCompressed));
  return contenders;
}

}  // namespace

Result<OwnRun> run_own_ranks(const Task& task, const Ground& ground) {
  REGATTA_TRY_DO(check_task(task, ground));
  REGATTA_TRY(folder, os::executable_folder());
  SharedBoard board;
  REGATTA_TRY_DO(board.make());
  write_task(*board, task, ground);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < task.ranks; ++rank) {
    auto pid = start_rank(folder + "/regatta-bench-rank", rank, ground, board.fd());
    if (!pid) {
      for (const pid_t started : ranks)
        static_cast<void>(os::terminate(started));
      return pid.error();
    }
    ranks.push_back(*pid);
  }
  const Status planned = ground.plan_ports ? plan_ports(*board, ground) : Status();
  if (!planned) {
    for (const pid_t started : ranks)
      static_cast<void>(os::terminate(started));
    return planned.error();
  }
  const std::string error = wait_for_ranks(ranks, *board);
  if (!error.empty()) return Error{Code::kUnavailable, error};
  REGATTA_TRY(choices, comm::parse_tuning(board->choices));
  return OwnRun{results(*board), std::move(choices)};
}

}  // namespace regatta::bench
