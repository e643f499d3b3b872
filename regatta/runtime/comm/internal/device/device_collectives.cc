#include "regatta/runtime/comm/internal/device/device_collectives.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/os/process.h"
#include "regatta/model/collective/data_type.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/group_scope.h"

namespace regatta::comm {
namespace {

// The route of a message, which the sender offers and the receiver confirms.
enum class Route : std::int64_t {
  kStages,
  kDevice,  // straight from the sender's memory
  kNone,    // its rank cannot use its device
};

// The message of a sender before its data.
struct Offer {
  std::array<char, 40> server{};  // boot id: processes of one kernel
  Route route = Route::kStages;
  DeviceStream::IpcAddress shown{};
};

Error cannot_use_device(const std::string& call, Rank peer) {
  return {Code::kUnavailable, call + ": rank " + std::to_string(peer.value) +
                                  " cannot use its device; see its own error"};
}

std::array<char, 40> this_server() {
  std::array<char, 40> id{};
  if (const auto text = os::boot_id())
    std::memcpy(id.data(), text->data(), std::min(text->size(), id.size() - 1));
  return id;
}

}  // namespace

DeviceCollectives::DeviceCollectives(Communicator& communicator, const device::CudaDriver& driver,
                                     Bytes piece)
    : communicator_(communicator),
      driver_(driver),
      piece_bytes_(static_cast<std::size_t>(piece.value)) {}

Status DeviceCollectives::all_reduce(const void* in, void* out, std::size_t count, DataType type,
                                     ReduceOp op) {
  REGATTA_TRY_DO(GroupScope::refuse("all_reduce"));
  return run({.from = bytes_of(in),
              .to = bytes_of(out),
              .count = count,
              .type = type,
              .start = [&](const std::byte* from, std::byte* to, std::size_t part) {
                return communicator_.all_reduce(from, to, part, type, op);
              }});
}

Status DeviceCollectives::all_gather(const void* in, void* out, std::size_t count, DataType type) {
  REGATTA_TRY_DO(GroupScope::refuse("all_gather"));
  return run({.from = bytes_of(in),
              .to = bytes_of(out),
              .count = count,
              .type = type,
              .to_parts = static_cast<std::size_t>(communicator_.world_size()),
              .start = [&](const std::byte* from, std::byte* to, std::size_t part) {
                return communicator_.all_gather(from, to, part, type);
              }});
}

Status DeviceCollectives::reduce_scatter(const void* in, void* out, std::size_t count,
                                         DataType type, ReduceOp op) {
  REGATTA_TRY_DO(GroupScope::refuse("reduce_scatter"));
  return run({.from = bytes_of(in),
              .to = bytes_of(out),
              .count = count,
              .type = type,
              .from_parts = static_cast<std::size_t>(communicator_.world_size()),
              .start = [&](const std::byte* from, std::byte* to, std::size_t part) {
                return communicator_.reduce_scatter(from, to, part, type, op);
              }});
}

Status DeviceCollectives::all_to_all(const void* in, void* out, std::size_t count, DataType type) {
  REGATTA_TRY_DO(GroupScope::refuse("all_to_all"));
  const auto ranks = static_cast<std::size_t>(communicator_.world_size());
  return run({.from = bytes_of(in),
              .to = bytes_of(out),
              .count = count,
              .type = type,
              .from_parts = ranks,
              .to_parts = ranks,
              .start = [&](const std::byte* from, std::byte* to, std::size_t part) {
                return communicator_.all_to_all(from, to, part, type);
              }});
}

Status DeviceCollectives::broadcast(void* data, std::size_t count, DataType type, Rank root) {
  REGATTA_TRY_DO(GroupScope::refuse("broadcast"));
  const bool is_root = communicator_.rank() == root;
  return run({.from = is_root ? bytes_of(data) : nullptr,
              .to = is_root ? nullptr : bytes_of(data),
              .count = count,
              .type = type,
              .start = [&](const std::byte* from, std::byte* to, std::size_t part) {
                // The root's is only read.
                return communicator_.broadcast(is_root ? const_cast<std::byte*>(from) : to, part,
                                               type, root);
              }});
}

Status DeviceCollectives::send(const void* data, std::size_t count, DataType type, Rank to) {
  REGATTA_TRY_DO(GroupScope::refuse("send"));
  REGATTA_TRY(is_done, send_to_peer(data, count * size_of(type), to));
  if (is_done) return {};
  return run({.from = bytes_of(data),
              .count = count,
              .type = type,
              .start = [&](const std::byte* from, std::byte*, std::size_t part) {
                return communicator_.send(from, part, type, to);
              }});
}

Status DeviceCollectives::recv(void* data, std::size_t count, DataType type, Rank from) {
  REGATTA_TRY_DO(GroupScope::refuse("recv"));
  REGATTA_TRY(is_done, receive_from_peer(data, count * size_of(type), from));
  if (is_done) return {};
  return run({.to = bytes_of(data),
              .count = count,
              .type = type,
              .start = [&](const std::byte*, std::byte* to, std::size_t part) {
                return communicator_.recv(to, part, type, from);
              }});
}

// The bytes of a part: a stage holds the parts of the input, then those of the output.
std::size_t DeviceCollectives::piece_bytes(const Pass& pass) const {
  const std::size_t element = size_of(pass.type);
  const std::size_t share = pass.has_parts() ? pass.from_parts + pass.to_parts : 1;
  return std::max<std::size_t>(piece_bytes_ / share / element, 1) * element;
}

// An element of every part fits.
std::size_t DeviceCollectives::stage_bytes() const {
  const auto ranks = static_cast<std::size_t>(communicator_.world_size());
  return std::max(piece_bytes_, 2 * ranks * size_of(DataType::kF64));
}

// While piece k is between the ranks, piece k + 1 comes off the device and k - 1 goes back.
Status DeviceCollectives::run(const Pass& pass) {
  REGATTA_TRY(device, find_device(pass.from, pass.to));
  if (device == nullptr && pass.has_parts()) {
    REGATTA_TRY(host, open_host());
    device = host;
  }
  const std::size_t most = piece_bytes(pass);
  const std::size_t bytes = pass.count * size_of(pass.type);
  std::array<Piece, kStages> pieces{};
  if (device != nullptr)
    for (std::size_t i = 0; i < kStages; ++i)
      pieces[i].stage = device->stages[i].get();
  const std::size_t count = bytes == 0 ? 1 : (bytes + most - 1) / most;
  Status status;
  for (std::size_t k = 0; k <= count && status; ++k) {
    if (k < count) {
      Piece& piece = pieces[k % kStages];
      piece.offset = k * most;
      piece.bytes = std::min(most, bytes - piece.offset);
      status = begin(pass, device, piece);
    }
    if (k > 0 && status) status = end(pass, device, pieces[(k - 1) % kStages]);
  }
  // The next call uses the stages again; after an error no call does.
  for (Piece& piece : pieces) {
    const Status left = piece.handle.wait();
    if (status) status = left;
    if (device == nullptr || device->stream == nullptr) continue;
    const Status copied = device->stream->wait(piece.copied);
    if (status) status = copied;
  }
  return status;
}

Status DeviceCollectives::begin(const Pass& pass, Device* device, Piece& piece) {
  const std::byte* in = pass.from == nullptr ? nullptr : pass.from + piece.offset;
  std::byte* out = pass.to == nullptr ? nullptr : pass.to + piece.offset;
  if (device != nullptr) {
    REGATTA_TRY_DO(fetch(pass, *device, piece));
    in = out = piece.stage;
    if (pass.has_parts()) out += pass.from_parts * piece.bytes;
  }
  piece.handle = pass.start(in, out, piece.bytes / size_of(pass.type));
  return {};
}

Status DeviceCollectives::end(const Pass& pass, Device* device, Piece& piece) {
  REGATTA_TRY_DO(piece.handle.wait());
  if (device == nullptr || pass.to == nullptr || piece.bytes == 0) return {};
  return store(pass, *device, piece);
}

// The input of the piece into its stage, once the stage is free.
Status DeviceCollectives::fetch(const Pass& pass, Device& device, Piece& piece) {
  const std::size_t part_bytes = pass.count * size_of(pass.type);
  DeviceStream::Event arrived = std::exchange(piece.copied, {});
  if (device.stream != nullptr) REGATTA_TRY_DO(device.stream->wait(arrived));
  if (pass.from == nullptr || piece.bytes == 0) return {};
  for (std::size_t part = 0; part < pass.from_parts; ++part) {
    std::byte* to = piece.stage + part * piece.bytes;
    const std::byte* from = pass.from + part * part_bytes + piece.offset;
    if (device.stream == nullptr) {
      std::memcpy(to, from, piece.bytes);
      continue;
    }
    REGATTA_TRY(mark, device.stream->to_host(to, from, piece.bytes));
    arrived = mark;
  }
  return device.stream == nullptr ? Status{} : device.stream->wait(arrived);
}

// The output of the piece from its stage, which is free after the piece's mark.
Status DeviceCollectives::store(const Pass& pass, Device& device, Piece& piece) {
  const std::size_t part_bytes = pass.count * size_of(pass.type);
  const std::byte* out = piece.stage + (pass.has_parts() ? pass.from_parts * piece.bytes : 0);
  for (std::size_t part = 0; part < pass.to_parts; ++part) {
    std::byte* to = pass.to + part * part_bytes + piece.offset;
    const std::byte* from = out + part * piece.bytes;
    if (device.stream == nullptr) {
      std::memcpy(to, from, piece.bytes);
      continue;
    }
    REGATTA_TRY(mark, device.stream->to_device(to, from, piece.bytes));
    piece.copied = mark;
  }
  return {};
}

Result<DeviceCollectives::Device*> DeviceCollectives::open_host() {
  while (host_.stages.size() < kStages) {
    REGATTA_TRY(stage, communicator_.allocate(stage_bytes()));
    host_.stages.push_back(std::move(stage));
  }
  return &host_;
}

Result<DeviceCollectives::Device*> DeviceCollectives::find_device(const void* from,
                                                                  const void* to) {
  const auto first = device_of(driver_, from != nullptr ? from : to);
  const auto second = device_of(driver_, to != nullptr ? to : from);
  if (first != second)
    return Error{Code::kInvalidInput,
                 "the buffers of a call lie on different devices: use one, or the host"};
  if (!first) return static_cast<Device*>(nullptr);
  Device& device = devices_[*first];
  if (device.stream == nullptr) {
    REGATTA_TRY(stream, DeviceStream::open(driver_, *first));
    std::vector<std::shared_ptr<std::byte>> stages;
    for (std::size_t i = 0; i < kStages; ++i) {
      REGATTA_TRY(stage, stream->make_stage(stage_bytes()));
      stages.push_back(std::move(stage));
    }
    device = {.stream = std::move(stream), .stages = std::move(stages)};
  }
  return &device;
}

// True when the receiver took it from this rank's device itself.
Result<bool> DeviceCollectives::send_to_peer(const void* data, std::size_t bytes, Rank to) {
  const auto device = find_device(data, nullptr);
  Offer offer{.server = this_server(), .route = device ? Route::kStages : Route::kNone};
  if (device && *device != nullptr && bytes > 0) {
    if (const auto shown = (*device)->stream->export_memory(data)) {
      offer.route = Route::kDevice;
      offer.shown = *shown;
    }
  }
  Route answer = Route::kStages;
  Handle answered = communicator_.recv(&answer, sizeof answer, DataType::kU8, to);
  REGATTA_TRY_DO(communicator_.send(&offer, sizeof offer, DataType::kU8, to).wait());
  REGATTA_TRY_DO(answered.wait());
  if (!device) return device.error();
  if (answer == Route::kNone) return cannot_use_device("send", to);
  return answer == Route::kDevice;
}

Result<bool> DeviceCollectives::receive_from_peer(void* data, std::size_t bytes, Rank from) {
  const auto device = find_device(nullptr, data);
  Offer offer;
  REGATTA_TRY_DO(communicator_.recv(&offer, sizeof offer, DataType::kU8, from).wait());
  Route answer = device ? Route::kStages : Route::kNone;
  if (device && *device != nullptr && offer.route == Route::kDevice &&
      offer.server == this_server()) {
    // Memory that cannot be opened (another container, no path between the devices) goes through
    // stages.
    if ((*device)->stream->copy_from_peer(data, offer.shown, bytes)) {
      answer = Route::kDevice;
      peer_bytes_ += static_cast<long long>(bytes);
    }
  }
  REGATTA_TRY_DO(communicator_.send(&answer, sizeof answer, DataType::kU8, from).wait());
  if (!device) return device.error();
  if (offer.route == Route::kNone) return cannot_use_device("recv", from);
  return answer == Route::kDevice;
}

}  // namespace regatta::comm
