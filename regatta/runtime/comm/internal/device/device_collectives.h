// comm/internal/device/device_collectives.h: operations of a communicator on buffers that may lie
// in the memory of a CUDA device. A buffer goes piece by piece through page-locked stages of the
// host: while one piece travels between the ranks, the next is copied off the device and the last
// back to it. A message inside a server goes from device to device, where the receiver can open the
// sender's memory. Every call waits for its end; a send waits for the receiver. Either all ranks of
// a communicator use this layer for a call or none does, wherever their buffers lie: the pieces are
// calls of their own. kInvalidInput inside a group. Bytes: those of the call between ranks, plus
// each buffer once over the bus of its device.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/internal/device/device_memory.h"

namespace regatta::comm {

class DeviceCollectives {
 public:
  // Both outlive it. `piece`: the same on all ranks, a multiple of 64 bytes.
  DeviceCollectives(Communicator& communicator, const device::CudaDriver& driver,
                    Bytes piece = Bytes{4 << 20});

  // As in communicator.h. The buffers of a call lie on one device, or on the host. After an error
  // other than that of a group the communicator cannot be used any more: other ranks may still be
  // in the call, at another piece. in, out: count elements.
  Status all_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op);
  // in: count elements, out: count * world_size. An `in` inside `out` is its start or this rank's
  // part: pieces of the others would overwrite it elsewhere.
  Status all_gather(const void* in, void* out, std::size_t count, DataType type);
  // in: count * world_size elements, out: count.
  Status reduce_scatter(const void* in, void* out, std::size_t count, DataType type, ReduceOp op);
  // in, out: count * world_size elements.
  Status all_to_all(const void* in, void* out, std::size_t count, DataType type);
  // data: count elements.
  Status broadcast(void* data, std::size_t count, DataType type, Rank root);
  // data: count elements. Where one of the two ranks cannot use its device both have an error.
  Status send(const void* data, std::size_t count, DataType type, Rank to);
  Status recv(void* data, std::size_t count, DataType type, Rank from);

  // Bytes received directly from another device of this server.
  long long peer_bytes() const { return peer_bytes_; }

 private:
  static constexpr std::size_t kStages = 3;
  struct Device {
    std::unique_ptr<DeviceStream> stream;  // null: the host
    std::vector<std::shared_ptr<std::byte>> stages;
  };
  // One call, cut into pieces. `from` or `to` is null where nothing is read or written.
  struct Pass {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t count = 0;  // elements of a part
    DataType type = DataType::kU8;
    std::size_t from_parts = 1;
    std::size_t to_parts = 1;
    bool has_parts() const { return from_parts > 1 || to_parts > 1; }
    // Starts the call for `count` elements a part; the buffers are memory of the host.
    std::function<Handle(const std::byte* in, std::byte* out, std::size_t count)> start;
  };
  struct Piece {
    std::size_t offset = 0;  // within each part
    std::size_t bytes = 0;   // of each part
    std::byte* stage = nullptr;
    DeviceStream::Event copied;  // the stage is free again
    Handle handle;
  };

  Status run(const Pass& pass);
  std::size_t piece_bytes(const Pass& pass) const;
  std::size_t stage_bytes() const;
  static Status fetch(const Pass& pass, Device& device, Piece& piece);
  static Status store(const Pass& pass, Device& device, Piece& piece);
  Status begin(const Pass& pass, Device* device, Piece& piece);
  Status end(const Pass& pass, Device* device, Piece& piece);
  // Null: the buffers lie on the host.
  Result<Device*> find_device(const void* from, const void* to);
  Result<Device*> open_host();
  Result<bool> send_to_peer(const void* data, std::size_t bytes, Rank to);
  Result<bool> receive_from_peer(void* data, std::size_t bytes, Rank from);

  Communicator& communicator_;
  const device::CudaDriver& driver_;
  std::size_t piece_bytes_;
  std::map<int, Device> devices_;
  Device host_;  // stages for buffers of several parts
  long long peer_bytes_ = 0;
};

}  // namespace regatta::comm
