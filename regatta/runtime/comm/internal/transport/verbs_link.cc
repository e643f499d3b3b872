#include "regatta/runtime/comm/internal/transport/verbs_link.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arpa/inet.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::comm {
namespace {

// Slots of on_event().
constexpr int kControlSlot = 0;
// Completions of one call, so that every peer gets its turn.
constexpr int kCompletionsPerTurn = 32;
// Writes that wait in one queue pair: the next ones go to whichever is done first.
constexpr std::size_t kInFlightMax = 8;
constexpr std::size_t kWriteBytesMin = std::size_t{64} << 10;
constexpr std::size_t kWriteBytesMax = std::size_t{1} << 20;
// Messages up to this are copied at both ends rather than registered.
constexpr std::size_t kCopiedBytesMax = std::size_t{64} << 10;
// After the last movement a rank looks again and again for this long before it sleeps: the next
// packet of a running collective mostly comes sooner than an interrupt would tell.
constexpr Seconds kSpinTime{20e-6};
// How long queue pairs that were stopped may take to give back what was posted.
constexpr Seconds kStopTime{0.2};

// These go over TCP: they have to arrive when RDMA does not work.
bool is_for_control(PacketKind kind) {
  return kind == PacketKind::kAbort || kind == PacketKind::kGoodbye || kind == PacketKind::kQuery ||
         kind == PacketKind::kReply || kind == PacketKind::kHeartbeat ||
         kind == PacketKind::kStatement;
}

TcpConnections only_control(os::UniqueFd fd) {
  TcpConnections connections;
  connections.control = std::move(fd);
  return connections;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

VerbsLink::VerbsLink(VerbsLinkSetup setup, std::unique_ptr<rdma::Queues> queues, LinkSink& sink)
    : peer_(setup.peer),
      sink_(sink),
      device_(std::move(setup.device)),
      queues_(std::move(queues)),
      control_(peer_, only_control(std::move(setup.control)), *this),
      free_slots_(kSendSlots) {
  std::iota(free_slots_.begin(), free_slots_.end(), 0U);
  const std::vector<std::byte> card = rdma::encode_card(queues_->card());
  control_.post_control({.kind = PacketKind::kConnect}, text_of(card));
}

VerbsLink::~VerbsLink() {
  stop();
}

std::vector<int> VerbsLink::fds() const {
  return {control_.fds().front(), queues_->fd()};
}

void VerbsLink::post_control(const PacketHeader& header, std::string_view text) {
  if (is_for_control(header.kind)) return control_.post_control(header, text);
  if (!is_stopped_) controls_.emplace_back(header, text);
}

void VerbsLink::post_grant(const PacketHeader& header, std::byte* place) {
  if (is_stopped_) return;
  std::string text;
  if (place != nullptr && header.message_bytes > kCopiedBytesMax) {
    auto memory = device_->memory().take(
        {.data = place, .bytes = header.message_bytes, .is_writable = true}, header.key);
    // Memory that cannot be registered gets its message through slots.
    if (memory) {
      if (free_incoming_writes_.empty()) {
        free_incoming_writes_.push_back(static_cast<std::uint32_t>(incoming_writes_.size()));
        incoming_writes_.emplace_back();
      }
      const std::uint32_t number = free_incoming_writes_.back();
      free_incoming_writes_.pop_back();
      const auto bytes = rdma::encode_place({.address = reinterpret_cast<std::uint64_t>(place),
                                             .key = memory->keys().remote,
                                             .landing = number});
      text = text_of(bytes);
      incoming_writes_[number] = {.key = header.key,
                                  .place = place,
                                  .bytes = header.message_bytes,
                                  .received = 0,
                                  .call = header.call,
                                  .memory = std::move(*memory)};
    }
  }
  controls_.emplace_back(header, std::move(text));
}

void VerbsLink::post_message(OutMessage& message) {
  if (is_stopped_) return;
  const auto grant = grants_.find(message.key);
  if (grant == grants_.end() && message.bytes <= rdma::kSlotPayloadMax) {
    small_.push_back(&message);
    return;
  }
  auto bulk = std::make_shared<LargeMessage>();
  bulk->message = &message;
  if (message.bytes > kCopiedBytesMax) {
    auto memory =
        device_->memory().take({.data = message.data, .bytes = message.bytes}, message.key);
    if (memory) bulk->memory = std::move(*memory);
  }
  if (grant != grants_.end()) {
    bulk->place = grant->second;
    grants_.erase(grant);
  }
  bulk_.push_back(std::move(bulk));
}

bool VerbsLink::progress() {
  if (lost_) return false;
  bool moved = control_.progress();
  if (!lost_) moved |= read_some(kCompletionsPerTurn);
  if (!lost_) moved |= write_some();
  if (moved) moved_at_ = os::monotonic_now();
  return moved;
}

bool VerbsLink::write_some() {
  if (!is_connected_ || is_stopped_) return false;
  bool moved = false;
  while (!is_stopped_ && credit_.may_send() && !free_slots_.empty() && write_next())
    moved = true;
  if (!is_stopped_ && credit_.must_return() && !free_slots_.empty()) {
    write_packet({.kind = PacketKind::kHeartbeat}, nullptr, 0);
    moved = true;
  }
  return moved;
}

// False when nothing waits, or only messages that have enough under way.
bool VerbsLink::write_next() {
  if (!controls_.empty()) {
    auto [header, text] = std::move(controls_.front());
    controls_.pop_front();
    header.payload_bytes = static_cast<std::uint32_t>(text.size());
    write_packet(header, reinterpret_cast<const std::byte*>(text.data()), text.size());
    return true;
  }
  if (!small_.empty()) {
    OutMessage& message = *small_.front();
    small_.pop_front();
    write_small(message);
    return true;
  }
  if (bulk_.empty() || in_flight_[next_queue()] >= kInFlightMax) return false;
  write_bulk(std::shared_ptr<LargeMessage>(bulk_.front()));
  return true;
}

// The queue pair with the fewest posted; in turn when several have.
std::size_t VerbsLink::next_queue() {
  std::size_t best = first_queue_;
  for (std::size_t i = 0; i < in_flight_.size(); ++i) {
    const std::size_t queue = (first_queue_ + i) % in_flight_.size();
    if (in_flight_[queue] < in_flight_[best]) best = queue;
  }
  return best;
}

std::uint32_t VerbsLink::take_slot(std::size_t queue, std::size_t bytes,
                                   std::shared_ptr<LargeMessage> bulk) {
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  ++in_flight_[queue];
  first_queue_ = (queue + 1) % in_flight_.size();
  posted_[slot] = {.queue = queue, .bytes = bytes, .bulk = std::move(bulk)};
  return slot;
}

void VerbsLink::write_packet(const PacketHeader& header, const std::byte* payload,
                             std::size_t bytes) {
  const std::size_t queue = next_queue();
  const std::uint32_t slot = take_slot(queue, 0, nullptr);
  const rdma::Queues::Slot at = queues_->send_slot(slot);
  encode_header(header, HeaderBytes(at.header, kHeaderBytes));
  if (bytes > 0) std::memcpy(at.payload, payload, bytes);
  check_posted(queues_->send(queue, slot, {.bytes = bytes}, credit_.send()));
}

void VerbsLink::write_small(OutMessage& message) {
  const std::size_t bytes = message.bytes;
  write_packet({.key = message.key,
                .message_bytes = bytes,
                .payload_bytes = static_cast<std::uint32_t>(bytes),
                .call = message.call},
               message.data, bytes);
  if (is_stopped_) return;
  message.cut = message.written = bytes;
  sink_.sent(peer_, message, bytes);
}

// Writes shrink towards the end of a message, so that all queue pairs end at about one time.
void VerbsLink::write_bulk(const std::shared_ptr<LargeMessage>& bulk) {
  OutMessage& message = *bulk->message;
  const std::size_t left = message.bytes - message.cut;
  const bool is_copied = !bulk->memory;
  std::size_t bytes = std::min(left, rdma::kSlotPayloadMax);
  if (bulk->place && !is_copied)
    bytes =
        std::min(left, std::clamp(left / (2 * in_flight_.size()), kWriteBytesMin, kWriteBytesMax));
  const std::size_t queue = next_queue();
  const std::uint32_t slot = take_slot(queue, bytes, is_copied ? nullptr : bulk);
  const rdma::Queues::Slot at = queues_->send_slot(slot);
  const std::byte* const from = message.data + message.cut;
  if (is_copied) std::memcpy(at.payload, from, bytes);
  const PacketHeader header{.key = message.key,
                            .message_bytes = message.bytes,
                            .offset = message.cut,
                            .payload_bytes = static_cast<std::uint32_t>(bytes),
                            .call = message.call};
  message.cut += bytes;
  if (message.cut == message.bytes) bulk_.pop_front();
  const rdma::Queues::Payload payload{.bytes = bytes,
                                      .memory = is_copied ? nullptr : from,
                                      .key = is_copied ? 0 : bulk->memory.keys().local};
  if (bulk->place) {
    credit_.send_bare();
    check_posted(queues_->write(queue, slot, payload, *bulk->place, header.offset));
  } else {
    encode_header(header, HeaderBytes(at.header, kHeaderBytes));
    check_posted(queues_->send(queue, slot, payload, credit_.send()));
  }
  if (!is_copied || is_stopped_) return;
  message.written += bytes;
  sink_.sent(peer_, message, bytes);
}

void VerbsLink::check_posted(int error) {
  if (error != 0)
    lose("cannot post to a queue pair of " + device_->device().name() + ": " +
         os::errno_text(error));
}

// One at a time: what follows a completion that ends the link is left for stop() to count.
bool VerbsLink::read_some(int max) {
  int count = 0;
  ibv_wc completion{};
  while (!is_stopped_ && count < max && queues_->poll(completion)) {
    complete(completion);
    ++count;
  }
  return count > 0;
}

void VerbsLink::complete(const ibv_wc& completion) {
  const bool is_send = completion.wr_id >= kReceiveSlots;
  Posted posted;
  if (is_send)
    posted = give_back_slot(static_cast<std::uint32_t>(completion.wr_id - kReceiveSlots));
  if (completion.status != IBV_WC_SUCCESS)
    return lose("connection lost (RDMA: " +
                std::string(device_->device().library().wc_status_str(completion.status)) + ")");
  if (is_send) {
    if (posted.bulk == nullptr) return;
    OutMessage& message = *posted.bulk->message;
    message.written += posted.bytes;
    return sink_.sent(peer_, message, posted.bytes);
  }
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM)
    complete_write(completion);
  else
    complete_packet(completion);
  if (!is_stopped_) check_posted(queues_->post_receive(completion.wr_id));
}

VerbsLink::Posted VerbsLink::give_back_slot(std::uint32_t slot) {
  Posted posted = std::exchange(posted_[slot], {});
  --in_flight_[posted.queue];
  free_slots_.push_back(slot);
  return posted;
}

void VerbsLink::complete_packet(const ibv_wc& completion) {
  const rdma::Queues::Slot slot = queues_->receive_slot(completion.wr_id);
  auto header = decode_header(ConstHeaderBytes(slot.header, kHeaderBytes));
  if (!header) return lose(header.error().message);
  if (completion.byte_len != kHeaderBytes + header->payload_bytes ||
      !credit_.receive(ntohl(completion.imm_data)))
    return lose("broke the rules of a packet");
  if (header->kind == PacketKind::kGrant && header->payload_bytes == kPlaceBytes)
    grants_[header->key] =
        rdma::decode_place(std::span<const std::byte, kPlaceBytes>(slot.payload, kPlaceBytes));
  sink_.arrived(peer_, *header, slot.payload);
}

// Writes come in any order, so a message is there when all its bytes are.
void VerbsLink::complete_write(const ibv_wc& completion) {
  const std::uint32_t number = ntohl(completion.imm_data);
  const std::size_t bytes = completion.byte_len;
  (void)credit_.receive(0);
  if (bytes == 0 || number >= incoming_writes_.size() ||
      bytes > incoming_writes_[number].bytes - incoming_writes_[number].received)
    return lose("wrote where it may not");
  IncomingWrite& incoming = incoming_writes_[number];
  const PacketHeader header{.key = incoming.key,
                            .message_bytes = incoming.bytes,
                            .offset = incoming.received,
                            .payload_bytes = static_cast<std::uint32_t>(bytes),
                            .call = incoming.call};
  std::byte* const place = incoming.place + incoming.received;
  incoming.received += bytes;
  if (incoming.received == incoming.bytes) {
    incoming = {};
    free_incoming_writes_.push_back(number);
  }
  sink_.arrived(peer_, header, place);
}

bool VerbsLink::arm() {
  if (lost_ || is_stopped_) return false;
  if (os::monotonic_now() - moved_at_ < kSpinTime) return true;
  if (is_armed_) return false;
  queues_->arm();
  is_armed_ = true;
  // What came before the queue was armed wakes nobody.
  return read_some(kCompletionsPerTurn);
}

void VerbsLink::on_event(int slot, std::uint32_t events) {
  if (slot == kControlSlot) return control_.on_event(slot, events);
  queues_->take_events();
  is_armed_ = false;
}

// What came is here when the other end says how it ends.
void VerbsLink::drain() {
  while (!lost_ && read_some(kCompletionsPerTurn))
    ;
}

void VerbsLink::connect(std::string_view text) {
  const auto card = rdma::decode_card(std::as_bytes(std::span(text)));
  if (!card) return lose(card.error().message);
  if (!in_flight_.empty() || card->slots != kReceiveSlots)
    return lose("its queue pairs do not fit: run the same version of regatta on all servers");
  const Status connected = queues_->connect(*card);
  if (!connected) return lose(connected.error().message);
  in_flight_.assign(queues_->connected(), 0);
  control_.post_control({.kind = PacketKind::kConnect}, {});
}

// Until everything posted came back the device may still touch memory of others.
void VerbsLink::stop() {
  if (is_stopped_) return;
  is_stopped_ = true;
  queues_->stop();
  std::size_t left = kSendSlots - free_slots_.size();
  const Seconds deadline = os::monotonic_now() + kStopTime;
  while (left > 0 && os::monotonic_now() < deadline) {
    ibv_wc completion{};
    if (queues_->poll(completion) && completion.wr_id >= kReceiveSlots) --left;
  }
  posted_ = {};
  controls_.clear();
  small_.clear();
  bulk_.clear();
  grants_.clear();
  incoming_writes_.clear();
  free_incoming_writes_.clear();
}

void VerbsLink::abandon() {
  control_.abandon();
  stop();
}

bool VerbsLink::is_flushed() {
  if (lost_) return true;
  if (!control_.is_flushed()) return false;
  // Who said goodbye reads nothing more, and acknowledges nothing.
  if (is_stopped_ || said_goodbye_) return true;
  return controls_.empty() && small_.empty() && bulk_.empty() && free_slots_.size() == kSendSlots;
}

void VerbsLink::shut_down() {
  control_.shut_down();
}

void VerbsLink::lose(const std::string& reason) {
  if (lost_) return;
  lost_ = true;
  stop();
  sink_.lost(peer_, reason);
}

std::byte* VerbsLink::place(int /*peer*/, const PacketHeader& /*header*/) {
  return nullptr;
}

void VerbsLink::arrived(int peer, const PacketHeader& header, const std::byte* payload) {
  if (header.kind == PacketKind::kConnect && header.payload_bytes > 0)
    return connect({reinterpret_cast<const char*>(payload), header.payload_bytes});
  if (header.kind == PacketKind::kConnect) {
    is_connected_ = !in_flight_.empty();
    return;
  }
  if (header.kind == PacketKind::kAbort || header.kind == PacketKind::kGoodbye) drain();
  said_goodbye_ |= header.kind == PacketKind::kGoodbye;
  if (!lost_) sink_.arrived(peer, header, payload);
}

void VerbsLink::sent(int /*peer*/, OutMessage& /*message*/, std::size_t /*bytes*/) {}

void VerbsLink::lost(int /*peer*/, std::string_view reason) {
  drain();
  lose(std::string(reason));
}

Result<std::shared_ptr<VerbsDevice>> open_verbs(const std::string& address) {
  REGATTA_TRY(device, rdma::Device::open(address));
  return std::make_shared<VerbsDevice>(std::move(device));
}

void expire_memory(VerbsDevice& device) {
  device.memory().expire();
}

Result<std::unique_ptr<PeerLink>> make_verbs_link(VerbsLinkSetup setup, LinkSink& sink) {
  REGATTA_TRY(queues,
              rdma::Queues::create(setup.device->device(), {.queue_pairs = setup.queue_pairs,
                                                            .receive_slots = kReceiveSlots,
                                                            .send_slots = kSendSlots,
                                                            .header_bytes = kHeaderBytes}));
  return std::unique_ptr<PeerLink>(
      std::make_unique<VerbsLink>(std::move(setup), std::move(queues), sink));
}

}  // namespace regatta::comm
