// The rank's side of board.h.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "regatta/bench/batches.h"
#include "regatta/bench/board.h"
#include "regatta/coll/communicator.h"
#include "regatta/coll/tuning/tuning_file.h"
#include "regatta/os/clock.h"

namespace regatta::bench {
namespace {

using coll::Communicator;
using coll::DataType;
using coll::ReduceOp;

constexpr Seconds kMeetingLimit{30};
// More calls than a search takes.
constexpr int kTrialsMax = 200;

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
                 Board::Cell& cell) {
  fill(shape, buffers.in, buffers.out);
  REGATTA_TRY_DO(call(world, shape, buffers));
  std::int64_t wrong = count_wrong(shape, buffers.out);
  REGATTA_TRY_DO(world.all_reduce(&wrong, &wrong, 1, DataType::kI64, ReduceOp::kSum).wait());
  Status status;
  const auto note = [&](Status last) {
    status = std::move(last);
    return status.has_value();
  };
  // Every trial of the tuner is over before anything is timed.
  for (int calls = 0; calls < kTrialsMax && !world.is_tuned(); ++calls)
    REGATTA_TRY_DO(call(world, shape, buffers));
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

Status run_sizes(Communicator& world, Board& board) {
  for (std::size_t i = 0; i < board.size_count; ++i) {
    const Shape shape = shape_for(board.op, board.sizes[i], board.ranks, world.rank().value);
    std::vector<float> in(shape.in_count());
    std::vector<float> out(shape.out_count());
    REGATTA_TRY_DO(
        time_call(world, shape, {in.data(), out.data()}, board.batches, board.cells[0][i]));
    if (!board.has_shared) continue;
    REGATTA_TRY(shared_in, world.allocate(in.size() * sizeof(float)));
    REGATTA_TRY(shared_out, world.allocate(out.size() * sizeof(float)));
    const Buffers shared{reinterpret_cast<float*>(shared_in.get()),
                         reinterpret_cast<float*>(shared_out.get())};
    REGATTA_TRY_DO(time_call(world, shape, shared, board.batches, board.cells[1][i]));
  }
  return world.barrier().wait();
}

coll::Exchange exchange_over(Board& board, int rank) {
  return [&board, rank](const std::string& mine) -> Result<std::vector<std::string>> {
    put_text(board.seats[rank].endpoint, mine);
    board.given.fetch_add(1);
    const Seconds deadline = os::monotonic_now() + kMeetingLimit;
    while (board.given.load() < board.ranks) {
      if (os::monotonic_now() > deadline)
        return Error{Code::kTimeout, "not all ranks of the benchmark have started"};
      os::sleep_for(Seconds{0.001});
    }
    std::vector<std::string> texts;
    for (int i = 0; i < board.ranks; ++i)
      texts.emplace_back(board.seats[i].endpoint);
    return texts;
  };
}

Status connect_and_run(Board& board, int rank) {
  const Board::Seat& seat = board.seats[rank];
  coll::Options options;
  options.job_token = "bench";
  options.server = seat.server;
  options.listen_address = seat.address;
  options.link_rate = {seat.link_rate_Bps};
  options.forced = board.forced;
  options.measure = board.measure;
  options.tuning = board.tuning;
  REGATTA_TRY(world,
              Communicator::connect(Rank{rank}, board.ranks, exchange_over(board, rank), options));
  REGATTA_TRY_DO(run_sizes(world, board));
  if (rank == 0) put_text(board.choices, format_tuning(world.choices()));
  return {};
}

}  // namespace

Status be_rank(Board& board, int rank) {
  const Status status = connect_and_run(board, rank);
  if (!status) put_text(board.seats[rank].error, status.error().message);
  return status;
}

}  // namespace regatta::bench
