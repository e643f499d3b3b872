#include "regatta/bench/own_ranks.h"

#include <atomic>
#include <cstring>
#include <string>

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/bench/batches.h"
#include "regatta/coll/communicator.h"
#include "regatta/os/clock.h"
#include "regatta/os/errno_text.h"

namespace regatta::bench {
namespace {

using coll::Communicator;
using coll::DataType;
using coll::ReduceOp;

constexpr std::size_t kTextMax = 1024;

struct Cell {
  int batches = 0;
  double batches_s[kBatchesMax];
  long long wrong = 0;
};

// Memory that the parent and all ranks see; the cells are written by rank 0.
struct Board {
  std::atomic<int> given;
  char endpoints[kRanksMax][kTextMax];
  char errors[kRanksMax][kTextMax];
  Cell cells[2][kSizesMax];
};

struct Buffers {
  float* in = nullptr;
  float* out = nullptr;
};

Status call(Communicator& world, const Shape& shape, const Buffers& buffers) {
  const auto f32 = DataType::kF32;
  const auto sum = ReduceOp::kSum;
  const Rank root{0};
  const auto [in, out] = buffers;
  switch (shape.op) {
    case Op::kAllReduce:
      return world.all_reduce(in, out, shape.count, f32, sum).wait();
    case Op::kReduceScatter:
      return world.reduce_scatter(in, out, shape.count, f32, sum).wait();
    case Op::kAllGather:
      return world.all_gather(in, out, shape.count, f32).wait();
    case Op::kBroadcast:
      return world.broadcast(out, shape.count, f32, root).wait();
    case Op::kReduce:
      return world.reduce(in, out, shape.count, f32, sum, root).wait();
    case Op::kGather:
      return world.gather(in, out, shape.count, f32, root).wait();
    case Op::kScatter:
      return world.scatter(in, out, shape.count, f32, root).wait();
    case Op::kAllToAll:
      return world.all_to_all(in, out, shape.count, f32).wait();
  }
  return {};
}

Status time_call(Communicator& world, const Shape& shape, const Buffers& buffers, int batches,
                 Cell& cell) {
  fill(shape, buffers.in, buffers.out);
  REGATTA_TRY_DO(call(world, shape, buffers));
  std::int64_t wrong = count_wrong(shape, buffers.out);
  REGATTA_TRY_DO(world.all_reduce(&wrong, &wrong, 1, DataType::kI64, ReduceOp::kSum).wait());
  Status status;
  const auto note = [&](Status last) {
    status = std::move(last);
    return status.has_value();
  };
  const auto times = time_batches(
      batches, [&] { return note(call(world, shape, buffers)); },
      [&] { return note(world.barrier().wait()); },
      [&](double seconds) {
        const bool done =
            note(world.all_reduce(&seconds, &seconds, 1, DataType::kF64, ReduceOp::kMax).wait());
        return done ? seconds : -1.0;
      });
  if (!status || shape.rank != 0) return status;
  cell.wrong = wrong;
  cell.batches = static_cast<int>(times.size());
  std::memcpy(cell.batches_s, times.data(), times.size() * sizeof(double));
  return {};
}

Status run_rank(const Task& task, Communicator& world, Board& board) {
  for (std::size_t i = 0; i < task.sizes.size(); ++i) {
    const Shape shape = shape_for(task.op, task.sizes[i], task.ranks, world.rank().value);
    std::vector<float> in(shape.in_count());
    std::vector<float> out(shape.out_count());
    REGATTA_TRY_DO(
        time_call(world, shape, {in.data(), out.data()}, task.batches, board.cells[0][i]));
    REGATTA_TRY(shared_in, world.allocate(in.size() * sizeof(float)));
    REGATTA_TRY(shared_out, world.allocate(out.size() * sizeof(float)));
    const Buffers shared{reinterpret_cast<float*>(shared_in.get()),
                         reinterpret_cast<float*>(shared_out.get())};
    REGATTA_TRY_DO(time_call(world, shape, shared, task.batches, board.cells[1][i]));
  }
  return world.barrier().wait();
}

void put_text(char (&place)[kTextMax], const std::string& text) {
  std::strncpy(place, text.c_str(), kTextMax - 1);
}

coll::Exchange exchange_over(Board& board, int rank, int ranks) {
  return [&board, rank, ranks](const std::string& mine) -> Result<std::vector<std::string>> {
    put_text(board.endpoints[rank], mine);
    board.given.fetch_add(1);
    while (board.given.load() < ranks)
      os::sleep_for(Seconds{0.001});
    std::vector<std::string> texts;
    texts.reserve(static_cast<std::size_t>(ranks));
    for (int i = 0; i < ranks; ++i)
      texts.emplace_back(board.endpoints[i]);
    return texts;
  };
}

void be_rank(const Task& task, int rank, Board& board) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  coll::Options options;
  options.job_token = "bench";
  options.server = "here";
  auto world = Communicator::connect(Rank{rank}, task.ranks, exchange_over(board, rank, task.ranks),
                                     options);
  const Status status = world ? run_rank(task, *world, board) : Status(world.error());
  if (!status) put_text(board.errors[rank], status.error().message);
}

// The first error of the ranks, or "".
std::string wait_for_ranks(const std::vector<pid_t>& ranks, const Board& board) {
  std::string error;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    int status = 0;
    ::waitpid(ranks[rank], &status, 0);
    if (error.empty()) error = board.errors[rank];
    if (error.empty() && status != 0)
      error = "rank " + std::to_string(rank) + " ended before its work was done";
  }
  return error;
}

std::vector<Contender> results(const Task& task, const Board& board) {
  std::vector<Contender> contenders = {{"private", {}}, {"shared", {}}};
  for (std::size_t kind = 0; kind < contenders.size(); ++kind) {
    for (std::size_t size = 0; size < task.sizes.size(); ++size) {
      const Cell& cell = board.cells[kind][size];
      contenders[kind].timings.push_back(
          {{cell.batches_s, cell.batches_s + cell.batches}, cell.wrong});
    }
  }
  return contenders;
}

}  // namespace

Result<std::vector<Contender>> run_own_ranks(const Task& task) {
  const std::size_t bytes = sizeof(Board);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return os::errno_error("share memory with the ranks");
  auto* board = static_cast<Board*>(memory);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < task.ranks; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      be_rank(task, rank, *board);
      ::_exit(board->errors[rank][0] == 0 ? 0 : 1);
    }
    ranks.push_back(pid);
  }
  std::string error = wait_for_ranks(ranks, *board);
  auto contenders = results(task, *board);
  ::munmap(memory, bytes);
  if (!error.empty()) return Error{Code::kUnavailable, std::move(error)};
  return contenders;
}

}  // namespace regatta::bench
