#include "regatta/runtime/measure/measurement_schedule_json.h"

#include <string>

#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"

namespace regatta::measure {
namespace {

using nlohmann::json;

constexpr EnumNames<5> kTaskKinds{"product", "batched", "pointwise", "copy", "overhead"};

json to_json(const DeviceTask& task) {
  return {{"kind", enum_name(kTaskKinds, task.kind)},
          {"precision", workload::to_string(task.precision)},
          {"m", task.m},
          {"n", task.n},
          {"k", task.k},
          {"batch", task.batch},
          {"op", cost::to_string(task.op)}};
}

DeviceTask read_device_task(const JsonReader& reader) {
  DeviceTask task;
  reader.read("kind", task.kind, kTaskKinds);
  reader.read("precision", task.precision, workload::kPrecisions);
  reader.read("m", task.m);
  reader.read("n", task.n);
  reader.read("k", task.k);
  reader.read("batch", task.batch);
  reader.read("op", task.op, cost::kPointwiseOps);
  return task;
}

PathTask read_path_task(const JsonReader& reader) {
  return {.path = reader.at("path").as<cost::PathClass>(cost::kPathClasses),
          .from = reader.at("from").as<Rank>(),
          .to = reader.at("to").as<Rank>()};
}

}  // namespace

json to_json(const MeasurementSchedule& schedule) {
  json devices = json::array();
  for (const DeviceTask& task : schedule.device_tasks)
    devices.push_back(to_json(task));
  json paths = json::array();
  for (const PathTask& task : schedule.path_tasks) {
    paths.push_back(
        {{"path", cost::to_string(task.path)}, {"from", task.from.value}, {"to", task.to.value}});
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

MeasurementSchedule read_measurement_schedule(const JsonReader& reader) {
  MeasurementSchedule schedule;
  for (const JsonReader& task : reader.at("device_tasks").items())
    schedule.device_tasks.push_back(read_device_task(task));
  for (const JsonReader& task : reader.at("path_tasks").items())
    schedule.path_tasks.push_back(read_path_task(task));
  reader.read("passes", schedule.passes);
  reader.read("time_per_task_s", schedule.time_per_task);
  reader.read("round_trips", schedule.round_trips);
  reader.read("transfers", schedule.transfers);
  reader.read("transfer_time_s", schedule.transfer_time);
  reader.read("transfer_min_bytes", schedule.transfer_size_min);
  reader.read("transfer_max_bytes", schedule.transfer_size_max);
  return schedule;
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
  const JsonReader reader(event, "event");
  const auto kind = reader.at("event").as<std::string>();
  Sample sample;
  if (kind == "sample")
    sample = DeviceSample{.rank = rank,
                          .task = reader.at("task").as<int>(),
                          .work = reader.at("work").as<double>(),
                          .busy = reader.at("busy_s").as<Seconds>()};
  if (kind == "share")
    sample = ShareSample{.rank = rank,
                         .busy = reader.at("busy_s").as<Seconds>(),
                         .wall = reader.at("wall_s").as<Seconds>()};
  if (kind == "path")
    sample = PathSample{.task = reader.at("task").as<int>(),
                        .latency = reader.at("latency_s").as<Seconds>(),
                        .bandwidth = reader.at("bandwidth_Bps").as<BytesPerSecond>()};
  // An event of another version counts as none; summarize() names what is missing.
  return reader.status() ? sample : Sample{};
}

}  // namespace regatta::measure
