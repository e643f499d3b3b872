#include "regatta/runtime/comm/internal/transport/verbs_writer.h"

#include <algorithm>
#include <cstring>

namespace regatta::comm {
namespace {

// Writes that wait in one queue pair: the next ones go to the queue pair that is done first.
constexpr std::size_t kInFlightMax = 8;
constexpr std::size_t kWriteBytesMin = std::size_t{64} << 10;
constexpr std::size_t kWriteBytesMax = std::size_t{1} << 20;

}  // namespace

void VerbsWriter::post_control(const PacketHeader& header, std::string text) {
  if (!is_stopped_) controls_.emplace_back(header, std::move(text));
}

void VerbsWriter::post_message(OutMessage& message) {
  if (is_stopped_) return;
  const auto grant = grants_.find(message.key);
  if (grant == grants_.end() && message.bytes <= rdma::kSlotPayloadMax) {
    small_.push_back(&message);
    return;
  }
  auto large = std::make_shared<LargeMessage>();
  large->message = &message;
  if (message.bytes > kCopiedBytesMax) {
    auto memory =
        device_.memory().take({.data = message.data, .bytes = message.bytes}, message.key);
    if (memory) large->memory = std::move(*memory);
  }
  if (grant != grants_.end()) {
    large->place = grant->second;
    grants_.erase(grant);
  }
  large_.push_back(std::move(large));
}

Result<bool> VerbsWriter::write_some() {
  bool has_written = false;
  while (!is_stopped_ && credit_.may_send() && slots_.has_free()) {
    REGATTA_TRY(has_next, write_next());
    if (!has_next) break;
    has_written = true;
  }
  if (!is_stopped_ && credit_.must_return() && slots_.has_free()) {
    REGATTA_TRY_DO(write_packet({.kind = PacketKind::kHeartbeat}, nullptr, 0));
    has_written = true;
  }
  return has_written;
}

// False when nothing waits, or only messages that have enough posted.
Result<bool> VerbsWriter::write_next() {
  if (!controls_.empty()) {
    auto [header, text] = std::move(controls_.front());
    controls_.pop_front();
    header.payload_bytes = static_cast<std::uint32_t>(text.size());
    REGATTA_TRY_DO(
        write_packet(header, reinterpret_cast<const std::byte*>(text.data()), text.size()));
    return true;
  }
  if (!small_.empty()) {
    OutMessage& message = *small_.front();
    small_.pop_front();
    REGATTA_TRY_DO(write_small(message));
    return true;
  }
  if (large_.empty() || slots_.in_flight(slots_.next_queue()) >= kInFlightMax) return false;
  REGATTA_TRY_DO(write_part(std::shared_ptr<LargeMessage>(large_.front())));
  return true;
}

Status VerbsWriter::write_packet(const PacketHeader& header, const std::byte* payload,
                                 std::size_t bytes) {
  const std::size_t queue = slots_.next_queue();
  const std::uint32_t slot = slots_.acquire({.queue = queue});
  const rdma::Queues::Slot to = queues_.send_slot(slot);
  encode_header(header, HeaderBytes(to.header, kHeaderBytes));
  if (bytes > 0) std::memcpy(to.payload, payload, bytes);
  return device_.check_post(queues_.send(queue, slot, {.bytes = bytes}, credit_.send()));
}

Status VerbsWriter::write_small(OutMessage& message) {
  const std::size_t bytes = message.bytes;
  REGATTA_TRY_DO(write_packet({.key = message.key,
                               .message_bytes = bytes,
                               .payload_bytes = static_cast<std::uint32_t>(bytes),
                               .call = message.call},
                              message.data, bytes));
  message.cut = message.written = bytes;
  sink_.sent(peer_, message, bytes);
  return {};
}

// Writes shrink towards the end of a message, so that all queue pairs end at about one time.
Status VerbsWriter::write_part(const std::shared_ptr<LargeMessage>& large) {
  OutMessage& message = *large->message;
  const std::size_t left = message.bytes - message.cut;
  const bool is_copied = !large->memory;
  std::size_t bytes = std::min(left, rdma::kSlotPayloadMax);
  if (large->place && !is_copied)
    bytes = std::min(left, std::clamp(left / (2 * queues()), kWriteBytesMin, kWriteBytesMax));
  const std::size_t queue = slots_.next_queue();
  const std::uint32_t slot =
      slots_.acquire({.queue = queue, .bytes = bytes, .message = is_copied ? nullptr : large});
  const rdma::Queues::Slot to = queues_.send_slot(slot);
  const std::byte* const from = message.data + message.cut;
  if (is_copied) std::memcpy(to.payload, from, bytes);
  const PacketHeader header{.key = message.key,
                            .message_bytes = message.bytes,
                            .offset = message.cut,
                            .payload_bytes = static_cast<std::uint32_t>(bytes),
                            .call = message.call};
  message.cut += bytes;
  if (message.cut == message.bytes) large_.pop_front();
  const rdma::Queues::Payload payload{.bytes = bytes,
                                      .memory = is_copied ? nullptr : from,
                                      .key = is_copied ? 0 : large->memory.keys().local};
  if (large->place) {
    credit_.send_bare();
    REGATTA_TRY_DO(
        device_.check_post(queues_.write(queue, slot, payload, *large->place, header.offset)));
  } else {
    encode_header(header, HeaderBytes(to.header, kHeaderBytes));
    REGATTA_TRY_DO(device_.check_post(queues_.send(queue, slot, payload, credit_.send())));
  }
  if (!is_copied) return {};
  message.written += bytes;
  sink_.sent(peer_, message, bytes);
  return {};
}

void VerbsWriter::complete(std::uint32_t slot, bool is_sent) {
  const SendSlots::Posted posted = slots_.release(slot);
  if (!is_sent || posted.message == nullptr) return;
  OutMessage& message = *posted.message->message;
  message.written += posted.bytes;
  sink_.sent(peer_, message, posted.bytes);
}

bool VerbsWriter::is_empty() const {
  return controls_.empty() && small_.empty() && large_.empty() && posted() == 0;
}

void VerbsWriter::stop() {
  is_stopped_ = true;
  slots_.drop_messages();
  controls_.clear();
  small_.clear();
  large_.clear();
  grants_.clear();
}

}  // namespace regatta::comm
