// experimental/remote/internal/fake_packet_port.h: two ports that are joined by memory, for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "experimental/remote/internal/packet_port.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::remote {

// The state that both ends share.
struct FakePacketLink {
  struct End {
    std::vector<std::byte> received = std::vector<std::byte>(kPortReceives * kPacketBytes);
    std::deque<std::uint32_t> posted;
    std::deque<Completion> completions;
    os::UniqueFd event{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    bool is_armed = false;
    bool is_stopped = false;
  };
  FakePacketLink() {
    for (End& end : ends)
      for (std::uint32_t slot = 0; slot < kPortReceives; ++slot)
        end.posted.push_back(slot);
  }
  // With mutex held.
  void complete(End& end, const Completion& completion) {
    end.completions.push_back(completion);
    const std::uint64_t one = 1;
    if (end.is_armed) static_cast<void>(::write(end.event.get(), &one, sizeof one) > 0);
    end.is_armed = false;
  }

  Mutex mutex;  // guards the rest
  End ends[2];
  int overruns = 0;    // packets for which no receive was posted
  bool loses = false;  // all packets
};

class FakePacketPort final : public PacketPort {
 public:
  FakePacketPort(std::shared_ptr<FakePacketLink> wire, int side)
      : wire_(std::move(wire)),
        own_(wire_->ends[side]),
        other_(wire_->ends[1 - side]),
        slots_(kPortSends * kPacketBytes) {}

  std::byte* send_slot(std::uint32_t slot) override { return slots_.data() + slot * kPacketBytes; }
  const std::byte* receive_slot(std::uint32_t slot) override {
    return own_.received.data() + slot * kPacketBytes;
  }
  bool send(std::uint32_t slot, std::size_t bytes, std::uint32_t returned) override {
    const MutexLock lock(wire_->mutex);
    if (own_.is_stopped) return false;
    if (wire_->loses) return true;
    wire_->complete(own_, {.is_good = true, .is_send = true, .slot = slot});
    if (other_.is_stopped) return true;
    if (other_.posted.empty()) {
      ++wire_->overruns;
      return true;
    }
    const std::uint32_t into = other_.posted.front();
    other_.posted.pop_front();
    std::memcpy(other_.received.data() + into * kPacketBytes, send_slot(slot), bytes);
    wire_->complete(
        other_,
        {.is_good = true, .is_send = false, .slot = into, .bytes = bytes, .returned = returned});
    return true;
  }
  bool post_receive(std::uint32_t slot) override {
    const MutexLock lock(wire_->mutex);
    own_.posted.push_back(slot);
    return true;
  }
  bool poll(Completion& completion) override {
    const MutexLock lock(wire_->mutex);
    if (own_.completions.empty()) return false;
    completion = own_.completions.front();
    own_.completions.pop_front();
    return true;
  }
  void arm() override {
    const MutexLock lock(wire_->mutex);
    std::uint64_t count = 0;
    static_cast<void>(::read(own_.event.get(), &count, sizeof count) > 0);
    own_.is_armed = true;
  }
  int fd() const override { return own_.event.get(); }
  void stop() override {
    const MutexLock lock(wire_->mutex);
    own_.is_stopped = true;
  }

 private:
  std::shared_ptr<FakePacketLink> wire_;
  FakePacketLink::End& own_;
  FakePacketLink::End& other_;
  std::vector<std::byte> slots_;
};

}  // namespace regatta::remote
