#include "regatta/runtime/measure/measurement_schedule_json.h"

#include <string>

#include <nlohmann/json.hpp>

namespace regatta::measure {
namespace {

using nlohmann::json;

json to_json(const DeviceTask& task) {
  return {{"kind", static_cast<int>(task.kind)},
          {"precision", workload::to_string(task.precision)},
          {"m", task.m},
          {"n", task.n},
          {"k", task.k},
          {"batch", task.batch},
          {"op", cost::to_string(task.op)}};
}

DeviceTask parse_device_task(const json& value) {
  DeviceTask task;
  task.kind = static_cast<TaskKind>(value.at("kind").get<int>());
  task.precision =
      value.at("precision") == "bf16" ? workload::Precision::kBf16 : workload::Precision::kFp32;
  task.m = value.at("m");
  task.n = value.at("n");
  task.k = value.at("k");
  task.batch = value.at("batch");
  for (const cost::PointwiseOp op : cost::kPointwiseOps) {
    if (value.at("op") == cost::to_string(op)) task.op = op;
  }
  return task;
}

PathTask parse_path_task(const json& value) {
  return {static_cast<cost::PathClass>(value.at("path").get<int>()), Rank{value.at("from")},
          Rank{value.at("to")}};
}

}  // namespace

json to_json(const MeasurementSchedule& schedule) {
  json devices = json::array();
  for (const DeviceTask& task : schedule.device_tasks)
    devices.push_back(to_json(task));
  json paths = json::array();
  for (const PathTask& task : schedule.path_tasks) {
    paths.push_back(
        {{"path", static_cast<int>(task.path)}, {"from", task.from.value}, {"to", task.to.value}});
  }
  return {{"device_tasks", devices},
          {"path_tasks", paths},
          {"passes", schedule.passes},
          {"time_per_task_s", schedule.time_per_task.value},
          {"round_trips", schedule.round_trips},
          {"transfers", schedule.transfers},
          {"transfer_time_s", schedule.transfer_time.value},
          {"transfer_min_bytes", schedule.transfer_size_min.value},
          {"transfer_max_bytes", schedule.transfer_size_max.value}};
}

Result<MeasurementSchedule> parse_measurement_schedule(const json& spec) {
  try {
    MeasurementSchedule schedule;
    for (const json& task : spec.at("device_tasks"))
      schedule.device_tasks.push_back(parse_device_task(task));
    for (const json& task : spec.at("path_tasks"))
      schedule.path_tasks.push_back(parse_path_task(task));
    schedule.passes = spec.at("passes");
    schedule.time_per_task = {spec.at("time_per_task_s").get<double>()};
    schedule.round_trips = spec.at("round_trips");
    schedule.transfers = spec.at("transfers");
    schedule.transfer_time = {spec.at("transfer_time_s").get<double>()};
    schedule.transfer_size_min = {spec.at("transfer_min_bytes").get<long long>()};
    schedule.transfer_size_max = {spec.at("transfer_max_bytes").get<long long>()};
    return schedule;
  } catch (const json::exception& error) {
    return Error{Code::kInvalidInput, std::string("the schedule of measurements is broken: ") +
                                          error.what() + "; use programs of one version"};
  }
}

json to_event(const DeviceSample& sample) {
  return {{"event", "sample"},
          {"task", sample.task},
          {"work", sample.work},
          {"busy_s", sample.busy.value}};
}

json to_event(const ShareSample& sample) {
  return {{"event", "share"}, {"busy_s", sample.busy.value}, {"wall_s", sample.wall.value}};
}

json to_event(const PathSample& sample) {
  return {{"event", "path"},
          {"task", sample.task},
          {"latency_s", sample.latency.value},
          {"bandwidth_Bps", sample.bandwidth.value}};
}

Sample parse_event(Rank rank, const json& event) {
  try {
    const std::string kind = event.at("event");
    if (kind == "sample") {
      return DeviceSample{.rank = rank,
                          .task = event.at("task"),
                          .work = event.at("work"),
                          .busy = {event.at("busy_s")}};
    }
    if (kind == "share")
      return ShareSample{.rank = rank, .busy = {event.at("busy_s")}, .wall = {event.at("wall_s")}};
    if (kind == "path") {
      return PathSample{.task = event.at("task"),
                        .latency = {event.at("latency_s")},
                        .bandwidth = {event.at("bandwidth_Bps")}};
    }
  } catch (const json::exception&) {
    return {};  // of another version; summarize() names what is missing
  }
  return {};
}

}  // namespace regatta::measure
