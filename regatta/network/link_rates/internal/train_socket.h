// link_rates/internal/train_socket.h: the sockets of packet trains. Acts: Linux.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/fabric/traffic.h"
#include "regatta/network/link_rates/internal/train.h"

namespace regatta::link_rates {

// Sends the whole train as fast as it can, and returns the rate that the processor time for it
// would allow: what waits for a slow link is not counted. kInvalidInput when `flow.from` is no
// address of this machine, kUnavailable when the system refuses.
Result<BytesPerSecond> send_train(std::uint64_t train, const fabric::FiveTuple& flow,
                                  const TrainShape& shape);

struct ReceivedTrainPacket {
  TrainHeader header;
  std::uint32_t from = 0;
  std::int64_t at_ns = 0;  // when the kernel had it
};

// Receives at one address.
class TrainReceiver {
 public:
  static Result<TrainReceiver> open(std::uint32_t address, std::uint16_t port);

  int fd() const { return socket_.get(); }
  // The packets of trains that have come, at most a few hundred; never waits.
  std::vector<ReceivedTrainPacket> receive();

 private:
  explicit TrainReceiver(os::UniqueFd socket) : socket_(std::move(socket)) {}
  os::UniqueFd socket_;
};

}  // namespace regatta::link_rates
