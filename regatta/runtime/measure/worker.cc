#include "regatta/runtime/measure/worker.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "regatta/base/os/clock.h"
#include "regatta/gpu/device/device.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/measure/internal/operator_loops.h"
#include "regatta/runtime/measure/internal/path_loops.h"
#include "regatta/runtime/measure/measurement_schedule_json.h"

namespace regatta::measure {
namespace {

using nlohmann::json;

// What this rank was told.
struct WorkerSpec {
  MeasurementSchedule schedule;
  Rank rank;
  int world_size = 1;
  comm::CommunicatorOptions options;
  device::ComputeDeviceOptions device;
};

Result<WorkerSpec> parse_spec(const json& spec) {
  REGATTA_TRY(schedule, parse_measurement_schedule(spec));
  try {
    WorkerSpec told;
    told.schedule = schedule;
    told.rank = Rank{spec.at("rank")};
    told.world_size = spec.at("world_size");
    told.options.job_token = spec.at("job_token");
    told.options.server = spec.at("server");
    told.options.listen_address = spec.at("address");
    told.options.rank_names = spec.at("rank_names").get<std::vector<std::string>>();
    told.device.kind =
        spec.at("device_kind") == "gpu" ? topo::DeviceKind::kGpu : topo::DeviceKind::kCpu;
    told.device.index = spec.at("device_index");
    told.device.cpu_share = spec.at("cpu_share");
    // A device that is held to a share of a core computes, and no more.
    told.options.caller_moves_data = told.device.cpu_share <= 0;
    told.device.compute_cgroup = spec.at("compute_cgroup");
    return told;
  } catch (const json::exception& error) {
    return Error{Code::kInvalidInput, std::string("the worker's orders are broken: ") +
                                          error.what() + "; use programs of one version"};
  }
}

// The world of all ranks; empty when this rank is alone.
Result<std::optional<comm::Communicator>> connect(const WorkerSpec& told,
                                                  rpc::WorkerChannel& channel) {
  const comm::Exchange exchange = [&channel](const std::string& mine) {
    return channel.exchange(mine);
  };
  if (told.world_size == 1) {
    // The agent waits for every worker's endpoint, also for a lonely one's.
    REGATTA_TRY_DO(exchange("alone"));
    return std::optional<comm::Communicator>();
  }
  REGATTA_TRY(world,
              comm::Communicator::connect(told.rank, told.world_size, exchange, told.options));
  return std::optional<comm::Communicator>(std::move(world));
}

Status run_pass(const WorkerSpec& told, const device::ComputeDevice& device, int pass,
                rpc::WorkerChannel& channel) {
  const LoopOptions options{.time = told.schedule.time_per_task, .warm_up = pass == 0};
  for (std::size_t i = 0; i < told.schedule.device_tasks.size(); ++i) {
    REGATTA_TRY(sample, run_task(told.schedule.device_tasks[i], device, options));
    sample.rank = told.rank;
    sample.task = static_cast<int>(i);
    REGATTA_TRY_DO(channel.emit(to_event(sample)));
  }
  return {};
}

Status run_device_tasks(const WorkerSpec& told, const device::ComputeDevice& device,
                        rpc::WorkerChannel& channel) {
  const Seconds start = os::monotonic_now();
  const Seconds busy_start = busy_time(device);
  for (int pass = 0; pass < told.schedule.passes; ++pass)
    REGATTA_TRY_DO(run_pass(told, device, pass, channel));
  const ShareSample share{.rank = told.rank,
                          .busy = busy_time(device) - busy_start,
                          .wall = os::monotonic_now() - start};
  return channel.emit(to_event(share));
}

Status run_path_tasks(const WorkerSpec& told, comm::Communicator& world,
                      rpc::WorkerChannel& channel) {
  for (std::size_t i = 0; i < told.schedule.path_tasks.size(); ++i) {
    const PathTask& task = told.schedule.path_tasks[i];
    // The others sleep in the next barrier.
    REGATTA_TRY_DO(world.barrier().wait());
    if (told.rank != task.from && told.rank != task.to) continue;
    REGATTA_TRY(sample, run_path(world, task, told.schedule));
    if (told.rank != task.from) continue;
    sample.task = static_cast<int>(i);
    REGATTA_TRY_DO(channel.emit(to_event(sample)));
  }
  return world.barrier().wait();
}

}  // namespace

Status run_measure_worker(const json& spec, rpc::WorkerChannel& channel) {
  REGATTA_TRY(told, parse_spec(spec));
  REGATTA_TRY(device, device::open_device(told.device));
  // Before the compute thread joins its cgroup: the threads of the communicator would inherit it.
  REGATTA_TRY(world, connect(told, channel));
  REGATTA_TRY_DO(device::bind_compute_thread(device));
  if (world) REGATTA_TRY_DO(world->barrier().wait());
  REGATTA_TRY_DO(run_device_tasks(told, device, channel));
  if (world) REGATTA_TRY_DO(run_path_tasks(told, *world, channel));
  return {};
}

}  // namespace regatta::measure
