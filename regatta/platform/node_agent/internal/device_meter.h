// node_agent/internal/device_meter.h: what the devices of this server do and whether they work,
// once a second; and what of it is new to the controller.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/platform/node_agent/internal/replica_meter.h"
#include "regatta/platform/node_protocol/node_message.h"
#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::node_agent {

inline constexpr const char* kDeviceReaderProgram = "regatta-device-reader";

// Readings of all devices, and a bit for each that has failed.
struct DeviceState {
  node_protocol::DeviceReadings readings;
  std::uint32_t failed = 0;
};
// As the reader writes it, and the length of what was read; nothing: not all of it is there yet.
// kInvalidInput: this is no record.
std::string encode_device_record(const DeviceState& state);
Result<std::optional<std::pair<DeviceState, std::size_t>>> decode_device_record(
    std::string_view bytes);

// The readings that differ from what was sent before: by two points or more, or at all when nothing
// was sent for 10 s.
class ReadingChanges {
 public:
  std::optional<node_protocol::DeviceReadings> next(const node_protocol::DeviceReadings& now,
                                                    double now_s);
  void forget() { sent_.reset(); }

 private:
  std::optional<node_protocol::DeviceReadings> sent_;  // of all devices, as the controller has them
  double sent_s_ = 0;
};

// The program that asks the driver and the daemon of shared GPUs, in a process of its own: either
// may hang. One that is silent or ends is started anew after a while; until then nothing is known.
class DeviceReader {
 public:
  explicit DeviceReader(std::string program) : program_(std::move(program)) {}
  ~DeviceReader();
  DeviceReader(const DeviceReader&) = delete;
  DeviceReader& operator=(const DeviceReader&) = delete;

  // The latest readings; nothing: there are none of the last 5 s. Never waits.
  std::optional<DeviceState> latest(double now_s);

 private:
  void start(double now_s);
  void end(double now_s, double pause_s);

  std::string program_;
  pid_t pid_ = -1;
  os::UniqueFd output_;
  std::string bytes_;
  std::optional<DeviceState> state_;
  double heard_s_ = 0;
  double start_s_ = 0;  // not before
};

}  // namespace regatta::node_agent
