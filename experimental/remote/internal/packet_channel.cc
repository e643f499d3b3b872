#include "experimental/remote/internal/packet_channel.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include <poll.h>
#include <sched.h>
#include <unistd.h>

namespace regatta::remote {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A waiting thread polls for this long before it sleeps: an answer mostly arrives sooner than an
// interrupt could report it.
constexpr microseconds kSpin{20};
// The other end's last packets may arrive this much later than the end of its TCP connection.
constexpr milliseconds kLast{50};
// Time for sent bytes to arrive when this end closes.
constexpr milliseconds kClosing{1000};
constexpr std::string_view kGreeting = "regatta\n";

Seconds seconds(std::chrono::duration<double> time) {
  return Seconds{time.count()};
}

}  // namespace

PacketChannel::PacketChannel(std::unique_ptr<PacketPort> port, os::UniqueFd tcp,
                             milliseconds poll_interval)
    : poll_interval_(poll_interval),
      port_(std::move(port)),
      tcp_(std::move(tcp)),
      free_(kPortSends) {
  std::iota(free_.begin(), free_.end(), 0U);
}

PacketChannel::~PacketChannel() {
  close();
}

template <typename Condition>
void PacketChannel::wait_until(MutexLock& lock, Condition condition, Clock::time_point deadline) {
  const Clock::time_point spin_end = Clock::now() + kSpin;
  for (;;) {
    progress();
    const Clock::time_point now = Clock::now();
    if (is_cut_ && now >= cut_at_ + kLast && !condition()) lose();
    if (is_lost_ || condition() || now >= deadline) return;
    if (now < spin_end) {
      mutex_.unlock();
      ::sched_yield();
      mutex_.lock();
    } else if (is_watched_) {
      changed_.wait_for(lock, seconds(std::min<Clock::duration>(deadline - now, poll_interval_)));
    } else {
      sleep(deadline);
    }
  }
}

void PacketChannel::sleep(Clock::time_point deadline) {
  port_->arm();
  if (progress()) return;  // a packet from before the port was armed wakes no thread
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  const milliseconds poll_interval =
      std::clamp(left, milliseconds{1}, is_cut_ ? milliseconds{5} : poll_interval_);
  pollfd watched[2] = {{port_->fd(), POLLIN, 0},
                       {is_cut_ ? -1 : tcp_.get(), POLLIN | POLLRDHUP, 0}};
  is_watched_ = true;
  mutex_.unlock();
  static_cast<void>(::poll(watched, 2, static_cast<int>(poll_interval.count())));
  mutex_.lock();
  is_watched_ = false;
  changed_.notify_all();
  if (watched[1].revents == 0 || is_cut_) return;
  is_cut_ = true;
  cut_at_ = Clock::now();
}

bool PacketChannel::progress() {
  if (is_lost_) return false;
  bool moved = false;
  Completion completion;
  while (!is_lost_ && port_->poll(completion)) {
    complete(completion);
    moved = true;
  }
  return_credit();
  if (moved && is_watched_) changed_.notify_all();
  return moved;
}

void PacketChannel::complete(const Completion& completion) {
  if (!completion.is_good) return lose();
  if (completion.is_send) return free_.push_back(completion.slot);
  if (completion.bytes > kPacketBytes || !credit_.take_back(completion.returned)) return lose();
  if (completion.bytes == 0) return repost_receive(completion.slot);
  received_.push_back({completion.slot, completion.bytes, 0});
}

void PacketChannel::repost_receive(std::uint32_t receive) {
  if (is_lost_) return;
  if (!port_->post_receive(receive)) return lose();
  credit_.repost();
}

// Sends a packet for the credit alone when no other packet is sent.
void PacketChannel::return_credit() {
  if (is_lost_ || free_.empty() || !credit_.must_return()) return;
  if (!port_->send(take_slot(), 0, credit_.send())) lose();
}

std::uint32_t PacketChannel::take_slot() {
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void PacketChannel::lose() {
  if (is_lost_) return;
  is_lost_ = true;
  port_->stop();
  changed_.notify_all();
}

bool PacketChannel::send(std::string_view first, std::string_view second) {
  MutexLock lock(mutex_);
  while (!first.empty() || !second.empty()) {
    wait_until(
        lock, [this]() REGATTA_REQUIRES(mutex_) { return may_send(); }, Clock::time_point::max());
    if (is_lost_) return false;
    const std::uint32_t slot = take_slot();
    std::byte* const at = port_->send_slot(slot);
    const std::size_t of_first = std::min(first.size(), kPacketBytes);
    const std::size_t of_second = std::min(second.size(), kPacketBytes - of_first);
    if (of_first > 0) std::memcpy(at, first.data(), of_first);
    if (of_second > 0) std::memcpy(at + of_first, second.data(), of_second);
    first.remove_prefix(of_first);
    second.remove_prefix(of_second);
    if (!port_->send(slot, of_first + of_second, credit_.send())) lose();
  }
  return !is_lost_;
}

std::size_t PacketChannel::receive(void* into, std::size_t count) {
  MutexLock lock(mutex_);
  wait_until(
      lock, [this]() REGATTA_REQUIRES(mutex_) { return !received_.empty(); },
      Clock::time_point::max());
  auto* const at = static_cast<std::byte*>(into);
  std::size_t done = 0;
  while (done < count && !received_.empty()) {
    ReceivedPacket& packet = received_.front();
    const std::size_t part = std::min(count - done, packet.bytes - packet.taken);
    std::memcpy(at + done, port_->receive_slot(packet.slot) + packet.taken, part);
    done += part;
    packet.taken += part;
    if (packet.taken < packet.bytes) break;
    const std::uint32_t slot = packet.slot;
    received_.pop_front();
    repost_receive(slot);
  }
  return_credit();
  return done;
}

bool PacketChannel::handshake(bool begins, milliseconds timeout) {
  if (begins && !send(kGreeting, {})) return false;
  {
    MutexLock lock(mutex_);
    wait_until(
        lock, [this]() REGATTA_REQUIRES(mutex_) { return !received_.empty(); },
        Clock::now() + timeout);
    if (is_lost_ || received_.empty() || received_.front().bytes != kGreeting.size()) return false;
  }
  char came[kGreeting.size()];
  if (receive(came, sizeof came) != sizeof came) return false;
  return std::string_view(came, sizeof came) == kGreeting && (begins || send(kGreeting, {}));
}

void PacketChannel::close() {
  MutexLock lock(mutex_);
  if (!tcp_) return;
  wait_until(
      lock, [this]() REGATTA_REQUIRES(mutex_) { return free_.size() == kPortSends; },
      Clock::now() + kClosing);
  lose();
  tcp_.reset();
}

// In a child of fork(), where no other thread exists and the mutex may be locked for ever.
void PacketChannel::leave() REGATTA_NO_THREAD_SAFETY_ANALYSIS {
  tcp_.reset();
  static_cast<void>(::close(port_->fd()));
}

}  // namespace regatta::remote
