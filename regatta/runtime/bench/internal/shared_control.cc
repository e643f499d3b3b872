// The rank's side of board.h.
#include "regatta/runtime/bench/internal/shared_control.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/bench/internal/batches.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/compressor.h"
#include "regatta/runtime/comm/tuner.h"

namespace regatta::bench {
namespace {

using comm::Communicator;
using comm::DataType;
using comm::ReduceOp;
using comm::compress::CompressionKind;

// More calls than a search takes.
constexpr int kTrialsMax = 400;
// Calls after which automatic compression has made up its mind: none, bf16 and int8 are tried.
constexpr int kTrialsOfKinds = 3 * comm::compress::CompressionTuner::kTrials + 1;

struct Buffers {
  float* in = nullptr;
  float* out = nullptr;
};

// The timed call; an error ends the run.
using Call = std::function<Status()>;

Status call(Communicator& world, const CollectiveShape& shape, const Buffers& buffers) {
  const auto f32 = DataType::kF32;
  const auto sum = ReduceOp::kSum;
  const Rank root{0};
  const auto [in, out] = buffers;
  switch (shape.op) {
    case CollectiveOp::kAllReduce:
      return world.all_reduce(in, out, shape.count, f32, sum).wait();
    case CollectiveOp::kReduceScatter:
      return world.reduce_scatter(in, out, shape.count, f32, sum).wait();
    case CollectiveOp::kAllGather:
      return world.all_gather(in, out, shape.count, f32).wait();
    case CollectiveOp::kBroadcast:
      return world.broadcast(out, shape.count, f32, root).wait();
    case CollectiveOp::kReduce:
      return world.reduce(in, out, shape.count, f32, sum, root).wait();
    case CollectiveOp::kGather:
      return world.gather(in, out, shape.count, f32, root).wait();
    case CollectiveOp::kScatter:
      return world.scatter(in, out, shape.count, f32, root).wait();
    case CollectiveOp::kAllToAll:
      return world.all_to_all(in, out, shape.count, f32).wait();
  }
  return {};
}

// Written by rank 0.
Status time_batches_of(Communicator& world, const Call& call, int batches,
                       SharedControl::Cell& cell) {
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

Status time_plain(Communicator& world, const CollectiveShape& shape, const Buffers& buffers,
                  int batches, SharedControl::Cell& cell) {
  const Call once = [&] { return call(world, shape, buffers); };
  fill(shape, buffers.in, buffers.out);
  REGATTA_TRY_DO(once());
  std::int64_t wrong = count_wrong(shape, buffers.out);
  REGATTA_TRY_DO(world.all_reduce(&wrong, &wrong, 1, DataType::kI64, ReduceOp::kSum).wait());
  if (shape.rank == 0) cell.wrong = wrong;
  // Every trial of the tuner is over before anything is timed.
  for (int calls = 0; calls < kTrialsMax && !is_tuned(world); ++calls)
    REGATTA_TRY_DO(once());
  return time_batches_of(world, once, batches, cell);
}

// |out - expected| / |expected|, the same on all ranks, which have the same bits.
double distance(const CollectiveShape& shape, const float* out) {
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
Status time_compressed(Communicator& world, const CollectiveShape& shape, const Buffers& buffers,
                       const SharedControl& control, SharedControl::Cell& cell) {
  comm::compress::Compressor compressor(world, {.kind = control.compression});
  comm::compress::ErrorFeedback feedback;
  comm::compress::CompressionReport last;
  const Call once = [&]() -> Status {
    REGATTA_TRY(
        report,
        compressor.all_reduce({buffers.in, buffers.out, shape.count, ReduceOp::kSum}, &feedback)
            .wait());
    last = report;
    return {};
  };
  fill(shape, buffers.in, buffers.out);
  for (int calls = 0;
       calls < (control.compression == CompressionKind::kAutomatic ? kTrialsOfKinds : 1); ++calls)
    REGATTA_TRY_DO(once());
  feedback = {};
  REGATTA_TRY_DO(once());
  if (shape.rank == 0) {
    cell.error = distance(shape, buffers.out);
    cell.kind = last.kind;
  }
  return time_batches_of(world, once, control.batches, cell);
}

Status run_sizes(Communicator& world, SharedControl& control) {
  for (std::size_t i = 0; i < control.size_count; ++i) {
    const CollectiveShape shape =
        collective_shape(control.op, control.sizes[i], control.ranks, world.rank().value);
    std::vector<float> in(shape.in_count());
    std::vector<float> out(shape.out_count());
    REGATTA_TRY_DO(time_plain(world, shape, {in.data(), out.data()}, control.batches,
                              control.cells[SharedControl::kPrivate][i]));
    if (control.compression != CompressionKind::kNone)
      REGATTA_TRY_DO(time_compressed(world, shape, {in.data(), out.data()}, control,
                                     control.cells[SharedControl::kCompressed][i]));
    if (!control.has_shared) continue;
    REGATTA_TRY(shared_in, world.allocate(in.size() * sizeof(float)));
    REGATTA_TRY(shared_out, world.allocate(out.size() * sizeof(float)));
    const Buffers shared{reinterpret_cast<float*>(shared_in.get()),
                         reinterpret_cast<float*>(shared_out.get())};
    REGATTA_TRY_DO(time_plain(world, shape, shared, control.batches,
                              control.cells[SharedControl::kShared][i]));
  }
  return world.barrier().wait();
}

comm::Exchange exchange_over(SharedControl& control, int rank) {
  return [&control, rank](const std::string& mine) -> Result<std::vector<std::string>> {
    put_text(control.slots[rank].endpoint, mine);
    control.given.fetch_add(1);
    const Seconds deadline = os::monotonic_now() + kRendezvousLimit;
    while (control.given.load() < control.ranks || (control.plans_ports && !control.is_planned)) {
      if (os::monotonic_now() > deadline)
        return Error{Code::kTimeout, "not all ranks of the benchmark have started"};
      os::sleep_for(Seconds{0.001});
    }
    return endpoints_of(control);
  };
}

comm::PlannedPorts ports_of(const SharedControl& control, Rank from, Rank to) {
  if (!control.plans_ports) return {};
  const auto& ports = control.ports[from.index()][to.index()];
  return {{ports, ports + control.connections}, control.paths};
}

Status connect_and_run(SharedControl& control, int rank) {
  const SharedControl::RankSlot& slot = control.slots[rank];
  comm::CommunicatorOptions options;
  options.job_token = "bench";
  options.server = slot.server;
  options.listen_address = slot.address;
  options.link_rate = {slot.link_rate_Bps};
  options.forced = control.forced;
  options.measure = control.measure;
  options.tuning = control.tuning;
  options.source_ports = [&control](const auto&, Rank from, Rank to) {
    return ports_of(control, from, to);
  };
  REGATTA_TRY(world, Communicator::connect(Rank{rank}, control.ranks, exchange_over(control, rank),
                                           options));
  REGATTA_TRY_DO(run_sizes(world, control));
  if (rank > 0) return {};
  // A part of it would be no tuning file.
  const std::string choices = format_tuning(tuning_choices(world));
  if (choices.size() < kTuningMax) put_text(control.choices, choices);
  return {};
}

}  // namespace

Status run_rank(SharedControl& control, int rank) {
  Status status = connect_and_run(control, rank);
  if (!status) put_text(control.slots[rank].error, status.error().message);
  return status;
}

}  // namespace regatta::bench
