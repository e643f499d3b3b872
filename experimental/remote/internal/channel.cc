#include "experimental/remote/internal/channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <poll.h>

#include "experimental/remote/internal/socket.h"

namespace regatta::remote {
namespace {

class TcpChannel final : public StreamChannel {
 public:
  explicit TcpChannel(os::UniqueFd fd) : fd_(std::move(fd)) {}
  bool send(std::string_view first, std::string_view second) override {
    return send_both(fd_.get(), first, second);
  }
  std::size_t receive(void* into, std::size_t count) override {
    if (deadline_ && !wait_for_socket(fd_.get(), POLLIN, deadline_)) return 0;
    return receive_some(fd_.get(), into, count, true);
  }
  void close() override { fd_.reset(); }
  void leave() override { fd_.reset(); }
  int fd() const override { return fd_.get(); }
  os::UniqueFd release() override { return std::move(fd_); }
  void set_deadline(std::optional<Seconds> deadline) override { deadline_ = deadline; }

 private:
  os::UniqueFd fd_;
  std::optional<Seconds> deadline_;
};

}  // namespace

std::unique_ptr<StreamChannel> make_tcp_channel(os::UniqueFd fd) {
  return std::make_unique<TcpChannel>(std::move(fd));
}

bool send_text(ByteChannel& channel, std::string_view text) {
  return send_text_by([&](auto head, auto body) { return channel.send(head, body); }, text);
}

bool send_refusal(ByteChannel& channel, const Error& error) {
  return send_refusal_by([&](auto head, auto body) { return channel.send(head, body); }, error);
}

Result<std::string> receive_text(ByteChannel& channel) {
  return receive_text_by([&](void* into, std::size_t count) {
    auto* at = static_cast<std::byte*>(into);
    while (count > 0) {
      const std::size_t came = channel.receive(at, count);
      if (came == 0) return false;
      at += came;
      count -= came;
    }
    return true;
  });
}

bool BufferedReader::read(void* into, std::size_t count) {
  auto* at = static_cast<std::byte*>(into);
  while (count > 0) {
    std::size_t part = 0;
    if (first_ == last_ && count >= bytes_.size()) {
      part = channel_.receive(at, count);
      if (part == 0) return false;
    } else {
      if (first_ == last_) {
        first_ = 0;
        last_ = channel_.receive(bytes_.data(), bytes_.size());
        if (last_ == 0) return false;
      }
      part = std::min(count, last_ - first_);
      std::memcpy(at, bytes_.data() + first_, part);
      first_ += part;
    }
    at += part;
    count -= part;
  }
  return true;
}

}  // namespace regatta::remote
