// experimental/remote/internal/channel.h: the bytes of a connection, in order, over TCP (socket.h)
// or RDMA (packet_channel.h).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::remote {

// One thread sends while another receives. A peer that is silent for ten seconds is lost.
class ByteChannel {
 public:
  ByteChannel() = default;
  ByteChannel(const ByteChannel&) = delete;
  ByteChannel& operator=(const ByteChannel&) = delete;
  virtual ~ByteChannel() = default;

  // Sends all of both, as fast as the other end accepts it.
  virtual bool send(std::string_view first, std::string_view second) = 0;
  // Receives at least one byte and at most `count`; 0: the connection has ended.
  virtual std::size_t receive(void* into, std::size_t count) = 0;
  // Bytes that were sent still arrive.
  virtual void close() = 0;
  // In a child of fork(): leaves the connection to the parent.
  virtual void leave() = 0;
};

// Over a TCP connection that it owns.
class StreamChannel : public ByteChannel {
 public:
  virtual int fd() const = 0;
  // The connection, at the next byte that was not received; the channel ends without a word.
  virtual os::UniqueFd release() = 0;
  // From this time on of os::monotonic_now(), calls that would wait fail instead.
  virtual void set_deadline(std::optional<Seconds> deadline) = 0;
};

// Not encrypted; tls_channel.h has the one that is.
std::unique_ptr<StreamChannel> make_tcp_channel(os::UniqueFd fd);

// As the functions of socket.h, over any channel.
bool send_text(ByteChannel& channel, std::string_view text);
bool send_refusal(ByteChannel& channel, const Error& error);
Result<std::string> receive_text(ByteChannel& channel);

// Reads ahead, so that one call serves many small messages.
class BufferedReader {
 public:
  explicit BufferedReader(ByteChannel& channel) : channel_(channel), bytes_(kAhead) {}
  // All of it, or false.
  bool read(void* into, std::size_t count);

 private:
  static constexpr std::size_t kAhead = 64 << 10;
  ByteChannel& channel_;
  std::vector<std::byte> bytes_;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

}  // namespace regatta::remote
