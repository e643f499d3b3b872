#include "regatta/platform/node_agent/internal/device_meter.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <variant>

#include <fcntl.h>
#include <unistd.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/process.h"

namespace regatta::node_agent {
namespace {

using node_protocol::DeviceReadings;

constexpr int kLeastChange = 2;  // points
constexpr double kRefresh = 10;  // seconds
constexpr double kSilence = 5;
constexpr double kPause = 30;  // before the reader is started anew
constexpr std::size_t kRecordHead = 2 * sizeof(std::uint32_t);

bool differs(std::uint8_t a, std::uint8_t b, int least) {
  if (a == b) return false;
  const bool is_known = a != node_protocol::kUnknownPercent && b != node_protocol::kUnknownPercent;
  return !is_known || std::abs(a - b) >= least;
}

}  // namespace

std::string encode_device_record(const DeviceState& state) {
  const std::string message = node_protocol::encode(node_protocol::NodeMessage(state.readings));
  const std::uint32_t head[] = {static_cast<std::uint32_t>(message.size()), state.failed};
  std::string record(kRecordHead, '\0');
  std::memcpy(record.data(), head, kRecordHead);
  return record + message;
}

Result<std::optional<std::pair<DeviceState, std::size_t>>> decode_device_record(
    std::string_view bytes) {
  using Decoded = std::optional<std::pair<DeviceState, std::size_t>>;
  std::uint32_t head[2];
  if (bytes.size() < kRecordHead) return Decoded();
  std::memcpy(head, bytes.data(), kRecordHead);
  if (head[0] > node_protocol::kMessageBytesMax)
    return Error{Code::kInvalidInput, "the record of the device reader is too long"};
  if (bytes.size() < kRecordHead + head[0]) return Decoded();
  REGATTA_TRY(message, node_protocol::decode_node_message(bytes.substr(kRecordHead, head[0])));
  auto* const readings = std::get_if<DeviceReadings>(&message);
  if (readings == nullptr)
    return Error{Code::kInvalidInput, "the record of the device reader has no readings"};
  return Decoded(std::pair(DeviceState{.readings = std::move(*readings), .failed = head[1]},
                           kRecordHead + head[0]));
}

std::optional<DeviceReadings> ReadingChanges::next(const DeviceReadings& now, double now_s) {
  if (!sent_ || sent_->devices != now.devices || sent_->source != now.source) {
    sent_ = now;
    sent_->has_shared = true;
    sent_s_ = now_s;
    return sent_;
  }
  const int least = now_s - sent_s_ >= kRefresh ? 1 : kLeastChange;
  DeviceReadings changes{.source = now.source};
  std::size_t place = 0;
  for (std::uint32_t rest = now.devices; rest != 0; rest &= rest - 1, ++place) {
    if (!differs(now.use[place], sent_->use[place], least) &&
        !differs(now.memory[place], sent_->memory[place], least))
      continue;
    changes.devices |= rest & -rest;
    changes.use.push_back(sent_->use[place] = now.use[place]);
    changes.memory.push_back(sent_->memory[place] = now.memory[place]);
  }
  if (now.shared != sent_->shared) {
    changes.has_shared = true;
    changes.shared = sent_->shared = now.shared;
  }
  if (changes.devices == 0 && !changes.has_shared) return std::nullopt;
  sent_s_ = now_s;
  return changes;
}

DeviceReader::~DeviceReader() {
  end(0, 0);
}

void DeviceReader::start(double now_s) {
  auto pipe = os::make_pipe();
  if (!pipe) return;
  ::fcntl(pipe->read_end.get(), F_SETFL, O_NONBLOCK);
  os::SpawnOptions options;
  options.stdout_fd = pipe->write_end.get();
  const auto pid = os::spawn({program_}, options);
  if (!pid) {
    os::log_warning("what devices do is not read: " + pid.error().message);
    start_s_ = now_s + 100 * kPause;
    return;
  }
  pid_ = *pid;
  output_ = std::move(pipe->read_end);
  bytes_.clear();
  heard_s_ = now_s;
}

void DeviceReader::end(double now_s, double pause_s) {
  if (pid_ > 0) {
    static_cast<void>(os::send_signal(pid_, SIGKILL));
    // A process that hangs in the driver cannot be ended: it is left to its fate.
    static_cast<void>(os::wait_for(pid_, Seconds{0.1}));
  }
  pid_ = -1;
  output_.reset();
  state_.reset();
  start_s_ = now_s + pause_s;
}

std::optional<DeviceState> DeviceReader::latest(double now_s) {
  if (pid_ < 0 && now_s >= start_s_) start(now_s);
  if (pid_ < 0) return std::nullopt;
  char block[4096];
  ssize_t count = 0;
  while ((count = ::read(output_.get(), block, sizeof block)) > 0)
    bytes_.append(block, static_cast<std::size_t>(count));
  if (count == 0) {  // it has ended, for one because this server has no GPUs of this kind
    end(now_s, kPause);
    return std::nullopt;
  }
  for (;;) {
    auto record = decode_device_record(bytes_);
    if (!record) {
      end(now_s, kPause);
      return std::nullopt;
    }
    if (!*record) break;
    state_ = std::move((*record)->first);
    bytes_.erase(0, (*record)->second);
    heard_s_ = now_s;
  }
  if (now_s - heard_s_ > kSilence) end(now_s, kPause);
  return state_;
}

}  // namespace regatta::node_agent
