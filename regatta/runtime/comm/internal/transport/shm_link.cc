#include "regatta/runtime/comm/internal/transport/shm_link.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <sys/epoll.h>
#include <sys/socket.h>

namespace regatta::comm {
namespace {

// Work for one direction per call, so that every peer gets its turn.
constexpr int kRecordsPerTurn = 16;

}  // namespace

ShmLink::ShmLink(int peer, RingSegment segment, bool is_creator, os::UniqueFd wake_socket,
                 LinkSink& sink)
    : peer_(peer),
      sink_(sink),
      segment_(std::move(segment)),
      writer_(segment_.writer(is_creator ? 0 : 1)),
      reader_(segment_.reader(is_creator ? 1 : 0)),
      wake_socket_(std::move(wake_socket)) {
  segment_.close_fd();
}

void ShmLink::post_control(const PacketHeader& header, std::string_view text) {
  if (!lost_) controls_.push_back({header, std::string(text)});
}

void ShmLink::post_message(OutMessage& message) {
  if (!lost_) messages_.push_back(&message);
}

bool ShmLink::progress() {
  if (lost_) return false;
  const bool wrote = write_some();
  const bool read = read_some();
  // The packets that the peer wrote before its end are read first.
  if (peer_closed_ && !lost_ && reader_.is_empty()) lose("connection lost");
  return wrote || read;
}

bool ShmLink::write_some() {
  bool moved = false;
  while (!controls_.empty()) {
    Control& control = controls_.front();
    const auto slot = writer_.reserve(control.text.size(), control.text.size());
    if (!slot) return moved;
    if (!control.text.empty()) std::memcpy(slot->payload, control.text.data(), control.text.size());
    control.header.payload_bytes = static_cast<std::uint32_t>(control.text.size());
    if (writer_.publish(control.header)) wake_peer();
    controls_.pop_front();
    moved = true;
  }
  for (int i = 0; i < kRecordsPerTurn && !messages_.empty() && controls_.empty(); ++i) {
    if (!write_fragment(*messages_.front())) return moved;
    moved = true;
  }
  return moved;
}

bool ShmLink::write_fragment(OutMessage& message) {
  const std::size_t left = message.bytes - message.cut;
  const std::size_t wanted = std::min(left, kFragmentBytesMax);
  const auto slot = writer_.reserve(wanted, kFragmentBytesMin);
  if (!slot) return false;
  if (slot->bytes > 0) std::memcpy(slot->payload, message.data + message.cut, slot->bytes);
  const PacketHeader header{.key = message.key,
                            .message_bytes = message.bytes,
                            .offset = message.cut,
                            .payload_bytes = static_cast<std::uint32_t>(slot->bytes),
                            .call = message.call};
  if (writer_.publish(header)) wake_peer();
  message.cut += slot->bytes;
  message.written = message.cut;
  const std::size_t bytes = slot->bytes;
  if (message.written == message.bytes) messages_.pop_front();
  sink_.sent(peer_, message, bytes);
  return true;
}

bool ShmLink::read_some() {
  bool moved = false;
  for (int i = 0; i < kRecordsPerTurn && !lost_; ++i) {
    const auto record = reader_.peek();
    if (!record) {
      lose(record.error().message);
      return true;
    }
    if (!record->has_value()) return moved;
    sink_.arrived(peer_, (*record)->header, (*record)->payload);
    if (reader_.pop()) wake_peer();
    moved = true;
  }
  return moved;
}

bool ShmLink::arm() {
  if (lost_) return false;
  const bool has_record = reader_.sleep();
  const bool wants_space = !controls_.empty() || !messages_.empty();
  const bool has_space = wants_space && writer_.wait_for_space();
  return has_record || has_space;
}

void ShmLink::disarm() {
  if (!lost_) reader_.wake();
}

void ShmLink::on_event(int /*slot*/, std::uint32_t events) {
  char rings[64];
  for (;;) {
    const ssize_t got = recv(wake_socket_.get(), rings, sizeof rings, MSG_DONTWAIT);
    if (got > 0) continue;
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || errno != EAGAIN) peer_closed_ = true;
    break;
  }
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) peer_closed_ = true;
  if (peer_closed_) progress();
}

void ShmLink::abandon() {
  messages_.clear();
}

bool ShmLink::is_flushed() {
  return lost_ || (controls_.empty() && messages_.empty());
}

void ShmLink::shut_down() {
  if (wake_socket_) shutdown(wake_socket_.get(), SHUT_WR);
}

void ShmLink::wake_peer() {
  // A full socket has wake-ups that the peer has not read yet: they suffice.
  const char ring = 1;
  while (send(wake_socket_.get(), &ring, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

void ShmLink::lose(std::string_view reason) {
  lost_ = true;
  controls_.clear();
  messages_.clear();
  sink_.lost(peer_, reason);
}

}  // namespace regatta::comm
