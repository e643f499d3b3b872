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

constexpr EnumNames<2> kDeviceKinds{"cpu", "gpu"};

// The part of the spec that this rank uses.
struct WorkerSpec {
  MeasurementSchedule schedule;
  Rank rank;
  int world_size = 1;
  comm::CommunicatorOptions options;
  device::ComputeDeviceOptions device;
};

Result<WorkerSpec> parse_spec(const json& spec) {
  const JsonReader reader(spec, "worker: spec");
  WorkerSpec worker;
  worker.schedule = read_measurement_schedule(reader);
  reader.read("rank", worker.rank);
  reader.read("world_size", worker.world_size, IntRange{});
  reader.read("job_token", worker.options.job_token);
  reader.read("server", worker.options.server);
  reader.read("address", worker.options.listen_address);
  reader.read("rank_names", worker.options.rank_names);
  reader.read("device_kind", worker.device.kind, kDeviceKinds);
  reader.read("device_index", worker.device.index);
  reader.read("cpu_share", worker.device.cpu_share);
  reader.read("compute_cgroup", worker.device.compute_cgroup);
  // A device that is limited to a share of a core only computes.
  worker.options.caller_moves_data = worker.device.cpu_share <= 0;
  if (!reader.status())
    return Error{Code::kInvalidInput,
                 reader.status().error().message + "; use programs of one version"};
  return worker;
}

// The world of all ranks; empty when this rank is alone.
Result<std::optional<comm::Communicator>> connect(const WorkerSpec& worker,
                                                  rpc::WorkerChannel& channel) {
  const comm::Exchange exchange = [&channel](const std::string& mine) {
    return channel.exchange(mine);
  };
  if (worker.world_size == 1) {
    // The agent waits for every worker's endpoint, also for a lonely one's.
    REGATTA_TRY_DO(exchange("alone"));
    return std::optional<comm::Communicator>();
  }
  REGATTA_TRY(
      world, comm::Communicator::connect(worker.rank, worker.world_size, exchange, worker.options));
  return std::optional<comm::Communicator>(std::move(world));
}

Status run_pass(const WorkerSpec& worker, const device::ComputeDevice& device, int pass,
                rpc::WorkerChannel& channel) {
  const LoopOptions options{.time = worker.schedule.time_per_task, .warm_up = pass == 0};
  for (std::size_t i = 0; i < worker.schedule.device_tasks.size(); ++i) {
    REGATTA_TRY(sample, run_task(worker.schedule.device_tasks[i], device, options));
    sample.rank = worker.rank;
    sample.task = static_cast<int>(i);
    REGATTA_TRY_DO(channel.emit(to_event(sample)));
  }
  return {};
}

Status run_device_tasks(const WorkerSpec& worker, const device::ComputeDevice& device,
                        rpc::WorkerChannel& channel) {
  const Seconds start = os::monotonic_now();
  const Seconds busy_start = busy_time(device);
  for (int pass = 0; pass < worker.schedule.passes; ++pass)
    REGATTA_TRY_DO(run_pass(worker, device, pass, channel));
  const ShareSample share{.rank = worker.rank,
                          .busy = busy_time(device) - busy_start,
                          .wall = os::monotonic_now() - start};
  return channel.emit(to_event(share));
}

Status run_path_tasks(const WorkerSpec& worker, comm::Communicator& world,
                      rpc::WorkerChannel& channel) {
  for (std::size_t i = 0; i < worker.schedule.path_tasks.size(); ++i) {
    const PathTask& task = worker.schedule.path_tasks[i];
    // The others sleep in the next barrier.
    REGATTA_TRY_DO(world.barrier().wait());
    if (worker.rank != task.from && worker.rank != task.to) continue;
    REGATTA_TRY(sample, run_path(world, task, worker.schedule));
    if (worker.rank != task.from) continue;
    sample.task = static_cast<int>(i);
    REGATTA_TRY_DO(channel.emit(to_event(sample)));
  }
  return world.barrier().wait();
}

}  // namespace

Status run_measure_worker(const json& spec, rpc::WorkerChannel& channel) {
  REGATTA_TRY(worker, parse_spec(spec));
  REGATTA_TRY(device, device::open_device(worker.device));
  // Before the compute thread joins its cgroup: the threads of the communicator would inherit it.
  REGATTA_TRY(world, connect(worker, channel));
  REGATTA_TRY_DO(device::bind_compute_thread(device));
  if (world) REGATTA_TRY_DO(world->barrier().wait());
  REGATTA_TRY_DO(run_device_tasks(worker, device, channel));
  if (world) REGATTA_TRY_DO(run_path_tasks(worker, *world, channel));
  return {};
}

}  // namespace regatta::measure
