#include "experimental/remote/internal/channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "experimental/remote/internal/socket.h"

namespace regatta::remote {
namespace {

class TcpChannel final : public ByteChannel {
 public:
  explicit TcpChannel(os::UniqueFd fd) : fd_(std::move(fd)) {}
  bool send(std::string_view first, std::string_view second) override {
    return send_both(fd_.get(), first, second);
  }
  std::size_t receive(void* into, std::size_t count) override {
    return receive_some(fd_.get(), into, count, true);
  }
  void close() override { fd_.reset(); }
  void leave() override { fd_.reset(); }

 private:
  os::UniqueFd fd_;
};

}  // namespace

std::unique_ptr<ByteChannel> make_tcp_channel(os::UniqueFd fd) {
  return std::make_unique<TcpChannel>(std::move(fd));
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
