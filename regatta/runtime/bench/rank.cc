// The rank's side of board.h.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/bench/internal/batches.h"
#include "regatta/runtime/bench/internal/board.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/compressor.h"
#include "regatta/runtime/comm/tuning_file.h"

namespace regatta::bench {
namespace {

using comm::Communicator;
using comm::DataType;
using comm::ReduceOp;
using comm::compress::Kind;

// More calls than a search takes.
constexpr int kTrialsMax = 400;
// Calls after which automatic compression has made up its mind: none, bf16 and int8 are tried.
constexpr int kTrialsOfKinds = 3 * comm::compress::KindTuner::kTrials + 1;

struct Buffers {
  float* in = nullptr;
  float* out = nullptr;
};

// What is timed; an error ends the run.
using Call = std::function<Status()>;

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

// Written by rank 0.
Status time_batches_of(Communicator& world, const Call& call, int batches, Board::Cell& cell) {
  Status status;
  const auto note = [&](Status last) {
    status = std::move(last);
    return status.has_value();
  };
  const auto times = time_batches(
      batches, [&] { return note(call()); }, [&] { return note(world.barrier().wait()); },
      [&](double seconds) {
        const bool done =
            note(world.all_reduce(&seconds, &seconds, 1, DataType::kF64, ReduceOp::kMax).wait());
        return done ? seconds : -1.0;
      });
  if (!status || world.rank().value != 0) return status;
  cell.batches = static_cast<int>(times.size());
  std::memcpy(cell.batches_s, times.data(), times.size() * sizeof(double));
  return {};
}

Status time_plain(Communicator& world, const Shape& shape, const Buffers& buffers, int batches,
                  Board::Cell& cell) {
  const Call once = [&] { return call(world, shape, buffers); };
  fill(shape, buffers.in, buffers.out);
  REGATTA_TRY_DO(once());
  std::int64_t wrong = count_wrong(shape, buffers.out);
  REGATTA_TRY_DO(world.all_reduce(&wrong, &wrong, 1, DataType::kI64, ReduceOp::kSum).wait());
  if (shape.rank == 0) cell.wrong = wrong;
  // Every trial of the tuner is over before anything is timed.
  for (int calls = 0; calls < kTrialsMax && !world.is_tuned(); ++calls)
    REGATTA_TRY_DO(once());
  return time_batches_of(world, once, batches, cell);
}

// |out - expected| / |expected|, the same on all ranks, which have the same bits.
double distance(const Shape& shape, const float* out) {
  double error = 0;
  double value = 0;
  for (std::size_t i = 0; i < shape.out_count(); ++i) {
    const double wanted = expected(shape, i);
    error += (out[i] - wanted) * (out[i] - wanted);
    value += wanted * wanted;
  }
  return value > 0 ? std::sqrt(error / value) : 0;
}

// As training calls it: with feedback.
Status time_compressed(Communicator& world, const Shape& shape, const Buffers& buffers,
                       const Board& board, Board::Cell& cell) {
  comm::compress::Compressor compressor(world, {.kind = board.compression});
  comm::compress::Feedback feedback;
  comm::compress::Report last;
  const Call once = [&]() -> Status {
    REGATTA_TRY(
        report,
        compressor.all_reduce({buffers.in, buffers.out, shape.count, ReduceOp::kSum}, &feedback)
            .wait());
    last = report;
    return {};
  };
  fill(shape, buffers.in, buffers.out);
  for (int calls = 0; calls < (board.compression == Kind::kAutomatic ? kTrialsOfKinds : 1); ++calls)
    REGATTA_TRY_DO(once());
  feedback = {};
  REGATTA_TRY_DO(once());
  if (shape.rank == 0) {
    cell.error = distance(shape, buffers.out);
    cell.kind = last.kind;
  }
  return time_batches_of(world, once, board.batches, cell);
}

Status run_sizes(Communicator& world, Board& board) {
  for (std::size_t i = 0; i < board.size_count; ++i) {
    const Shape shape = shape_for(board.op, board.sizes[i], board.ranks, world.rank().value);
    std::vector<float> in(shape.in_count());
    std::vector<float> out(shape.out_count());
    REGATTA_TRY_DO(time_plain(world, shape, {in.data(), out.data()}, board.batches,
                              board.cells[Board::kPrivate][i]));
    if (board.compression != Kind::kNone)
      REGATTA_TRY_DO(time_compressed(world, shape, {in.data(), out.data()}, board,
                                     board.cells[Board::kCompressed][i]));
    if (!board.has_shared) continue;
    REGATTA_TRY(shared_in, world.allocate(in.size() * sizeof(float)));
    REGATTA_TRY(shared_out, world.allocate(out.size() * sizeof(float)));
    const Buffers shared{reinterpret_cast<float*>(shared_in.get()),
                         reinterpret_cast<float*>(shared_out.get())};
    REGATTA_TRY_DO(time_plain(world, shape, shared, board.batches, board.cells[Board::kShared][i]));
  }
  return world.barrier().wait();
}

comm::Exchange exchange_over(Board& board, int rank) {
  return [&board, rank](const std::string& mine) -> Result<std::vector<std::string>> {
    put_text(board.seats[rank].endpoint, mine);
    board.given.fetch_add(1);
    const Seconds deadline = os::monotonic_now() + kMeetingLimit;
    while (board.given.load() < board.ranks || (board.plans_ports && !board.is_planned)) {
      if (os::monotonic_now() > deadline)
        return Error{Code::kTimeout, "not all ranks of the benchmark have started"};
      os::sleep_for(Seconds{0.001});
    }
    return endpoints_of(board);
  };
}

comm::PlannedPorts ports_of(const Board& board, Rank from, Rank to) {
  if (!board.plans_ports) return {};
  const auto& ports = board.ports[from.index()][to.index()];
  return {{ports, ports + board.connections}, board.ways};
}

Status connect_and_run(Board& board, int rank) {
  const Board::Seat& seat = board.seats[rank];
  comm::Options options;
  options.job_token = "bench";
  options.server = seat.server;
  options.listen_address = seat.address;
  options.link_rate = {seat.link_rate_Bps};
  options.forced = board.forced;
  options.measure = board.measure;
  options.tuning = board.tuning;
  options.source_ports = [&board](const auto&, Rank from, Rank to) {
    return ports_of(board, from, to);
  };
  REGATTA_TRY(world,
              Communicator::connect(Rank{rank}, board.ranks, exchange_over(board, rank), options));
  REGATTA_TRY_DO(run_sizes(world, board));
  if (rank > 0) return {};
  // A part of it would be no tuning file.
  const std::string choices = format_tuning(world.choices());
  if (choices.size() < kTuningMax) put_text(board.choices, choices);
  return {};
}

}  // namespace

Status be_rank(Board& board, int rank) {
  Status status = connect_and_run(board, rank);
  if (!status) put_text(board.seats[rank].error, status.error().message);
  return status;
}

}  // namespace regatta::bench
