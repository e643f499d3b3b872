#include "regatta/runtime/train/worker.h"

#include <atomic>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "regatta/gpu/device/device.h"
#include "regatta/model/workload/job.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/train/internal/train_spec_json.h"
#include "regatta/runtime/train/internal/trainer.h"

namespace regatta::train {
namespace {

std::atomic<bool> stop_requested{false};

// A JSON line with thousands of spans would block the channel for long: they go in parts.
constexpr std::size_t kSpansPerEvent = 500;

Status emit_spans(const StepReport& report, rpc::WorkerChannel& channel) {
  const workload::Timeline& spans = report.times.spans;
  for (std::size_t start = 0; start < spans.size(); start += kSpansPerEvent) {
    const std::size_t end = std::min(start + kSpansPerEvent, spans.size());
    const workload::Timeline part(spans.begin() + static_cast<std::ptrdiff_t>(start),
                                  spans.begin() + static_cast<std::ptrdiff_t>(end));
    REGATTA_TRY_DO(channel.emit(
        {{"event", "spans"}, {"step", report.step}, {"spans", workload::timeline_to_json(part)}}));
  }
  return {};
}

Status emit_step(const StepReport& report, rpc::WorkerChannel& channel) {
  REGATTA_TRY_DO(channel.emit({{"event", "step"},
                               {"step", report.step},
                               {"loss", report.loss},
                               {"gradient_norm", report.gradient_norm},
                               {"time_s", report.times.time.value},
                               {"tokens", report.tokens}}));
  REGATTA_TRY_DO(channel.emit({{"event", "phases"},
                               {"step", report.step},
                               {"phases", workload::phases_to_json(report.times.phases)}}));
  return emit_spans(report, channel);
}

// The world of all ranks; empty when this rank is alone.
Result<std::optional<comm::Communicator>> connect(const TrainSpec& spec,
                                                  rpc::WorkerChannel& channel) {
  const comm::Exchange exchange = [&channel](const std::string& mine) {
    return channel.exchange(mine);
  };
  if (spec.world_size == 1) {
    // The agent waits for the endpoint of every worker, also of a single one.
    REGATTA_TRY_DO(exchange("alone"));
    return std::optional<comm::Communicator>();
  }
  comm::CommunicatorOptions options;
  options.job_token = spec.job_token;
  options.server = spec.server;
  options.listen_address = spec.address;
  options.link_rate = spec.link_rate;
  // A run that continues from a checkpoint has the bits of one that was not interrupted.
  options.measure = comm::Measure::kTransport;
  options.rank_names = spec.rank_names;
  options.job_name = spec.job.name;
  options.flight_dir = spec.flight_dir;
  options.source_ports = [&channel](const auto&, Rank, Rank to) {
    const rpc::WorkerChannel::PlannedPorts& planned = channel.planned_ports();
    if (to.index() >= planned.to_rank.size()) return comm::PlannedPorts{};
    return comm::PlannedPorts{planned.to_rank[to.index()], planned.ways};
  };
  // A device that is limited to a share of a core only computes.
  options.caller_moves_data = spec.cpu_share <= 0;
  REGATTA_TRY(world, comm::Communicator::connect(spec.rank, spec.world_size, exchange, options));
  return std::optional<comm::Communicator>(std::move(world));
}

}  // namespace

void stop_worker() {
  stop_requested = true;
}

Status run_train_worker(const nlohmann::json& spec_json, rpc::WorkerChannel& channel) {
  REGATTA_TRY(spec, spec_from_json(spec_json));
  REGATTA_TRY(device, device::open_device({.index = spec.device_index,
                                           .cpu_share = spec.cpu_share,
                                           .compute_cgroup = spec.compute_cgroup}));
  // Communication threads start before the compute thread joins its group: they stay outside.
  REGATTA_TRY(world, connect(spec, channel));
  REGATTA_TRY(groups,
              make_rank_communicators(std::move(world), spec.rank, spec.strategy, spec.job.model));
  REGATTA_TRY_DO(device::bind_compute_thread(device));
  Status emitted;
  const TrainHooks hooks{.on_step =
                             [&](const StepReport& report) {
                               if (emitted) emitted = emit_step(report, channel);
                             },
                         .stop_requested = [&] { return stop_requested.load() || !emitted; }};
  const Status trained = train(spec, groups, hooks);
  if (!emitted) return emitted.error();
  if (!trained) return trained.error();
  if (!groups.world) return {};
  const comm::Traffic traffic = comm::traffic_of(*groups.world);
  return channel.emit({{"event", "traffic"},
                       {"network_bytes", traffic.network_bytes},
                       {"shared_bytes", traffic.shared_bytes}});
}

}  // namespace regatta::train
