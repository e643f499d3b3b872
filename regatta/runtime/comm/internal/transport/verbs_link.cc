#include "regatta/runtime/comm/internal/transport/verbs_link.h"

#include <cstddef>
#include <cstdint>
#include <memory>
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
// Completions that one call handles, so that every peer gets its turn.
constexpr int kCompletionsPerTurn = 32;
// After its last progress a rank polls for this long before it sleeps: the next packet of a running
// collective mostly arrives sooner than an interrupt would.
constexpr Seconds kSpinTime{20e-6};
// How long stopped queue pairs may take to complete what was posted.
constexpr Seconds kStopTime{0.2};

// These go over TCP: they have to arrive where RDMA does not work.
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
      writer_(peer_, *device_, *queues_, credit_, sink_) {
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
  writer_.post_control(header, std::string(text));
}

void VerbsLink::post_grant(const PacketHeader& header, std::byte* place) {
  if (is_stopped_) return;
  std::string text;
  if (place != nullptr && header.message_bytes > kCopiedBytesMax) {
    auto memory = device_->memory().take(
        {.data = place, .bytes = header.message_bytes, .is_writable = true}, header.key);
    // A message for memory that cannot be registered goes through slots.
    if (memory) {
      const std::uint32_t key = memory->keys().remote;
      const std::uint32_t number = incoming_writes_.add(header, place, std::move(*memory));
      text = text_of(rdma::encode_place(
          {.address = reinterpret_cast<std::uint64_t>(place), .key = key, .landing = number}));
    }
  }
  writer_.post_control(header, std::move(text));
}

void VerbsLink::post_message(OutMessage& message) {
  writer_.post_message(message);
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
  const Result<bool> written = writer_.write_some();
  if (!written) lose(written.error().message);
  return written && *written;
}

// One at a time: stop() counts the completions that follow one that ends the link.
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
  const bool is_good = completion.status == IBV_WC_SUCCESS;
  if (is_send)
    writer_.complete(static_cast<std::uint32_t>(completion.wr_id - kReceiveSlots), is_good);
  if (!is_good)
    return lose(
        "connection lost (RDMA: " +
        std::string(device_->device().library().completions.wc_status_str(completion.status)) +
        ")");
  if (is_send) return;
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM)
    complete_write(completion);
  else
    complete_packet(completion);
  if (is_stopped_) return;
  const Status posted = device_->check_post(queues_->post_receive(completion.wr_id));
  if (!posted) lose(posted.error().message);
}

void VerbsLink::complete_packet(const ibv_wc& completion) {
  const rdma::Queues::Slot slot = queues_->receive_slot(completion.wr_id);
  auto header = decode_header(ConstHeaderBytes(slot.header, kHeaderBytes));
  if (!header) return lose(header.error().message);
  if (completion.byte_len != kHeaderBytes + header->payload_bytes ||
      !credit_.receive(ntohl(completion.imm_data)))
    return lose("broke the rules of a packet");
  if (header->kind == PacketKind::kGrant && header->payload_bytes == kPlaceBytes)
    writer_.add_grant(header->key, rdma::decode_place(std::span<const std::byte, kPlaceBytes>(
                                       slot.payload, kPlaceBytes)));
  sink_.arrived(peer_, *header, slot.payload);
}

void VerbsLink::complete_write(const ibv_wc& completion) {
  (void)credit_.receive(0);
  const auto part = incoming_writes_.receive(ntohl(completion.imm_data), completion.byte_len);
  if (!part) return lose("wrote where it may not");
  sink_.arrived(peer_, part->header, part->data);
}

bool VerbsLink::arm() {
  if (lost_ || is_stopped_) return false;
  if (os::monotonic_now() - moved_at_ < kSpinTime) return true;
  if (is_armed_) return false;
  queues_->arm();
  is_armed_ = true;
  // A completion from before the queue was armed wakes no thread.
  return read_some(kCompletionsPerTurn);
}

void VerbsLink::on_event(int slot, std::uint32_t events) {
  if (slot == kControlSlot) return control_.on_event(slot, events);
  queues_->take_events();
  is_armed_ = false;
}

// Packets that have arrived count before the message by which the other end says how it ends.
void VerbsLink::drain() {
  while (!lost_ && read_some(kCompletionsPerTurn))
    ;
}

void VerbsLink::connect(std::string_view text) {
  const auto card = rdma::decode_card(std::as_bytes(std::span(text)));
  if (!card) return lose(card.error().message);
  if (writer_.queues() > 0 || card->slots != kReceiveSlots)
    return lose("its queue pairs do not fit: run the same version of regatta on all servers");
  const Status connected = queues_->connect(*card);
  if (!connected) return lose(connected.error().message);
  writer_.set_queues(queues_->connected());
  control_.post_control({.kind = PacketKind::kConnect}, {});
}

// Until everything posted has completed, the device may still access the memory of messages.
void VerbsLink::stop() {
  if (is_stopped_) return;
  is_stopped_ = true;
  queues_->stop();
  std::size_t left = writer_.posted();
  const Seconds deadline = os::monotonic_now() + kStopTime;
  while (left > 0 && os::monotonic_now() < deadline) {
    ibv_wc completion{};
    if (queues_->poll(completion) && completion.wr_id >= kReceiveSlots) --left;
  }
  writer_.stop();
  incoming_writes_.clear();
}

void VerbsLink::abandon() {
  control_.abandon();
  stop();
}

bool VerbsLink::is_flushed() {
  if (lost_) return true;
  if (!control_.is_flushed()) return false;
  // A rank reads and acknowledges nothing after its goodbye.
  return is_stopped_ || said_goodbye_ || writer_.is_empty();
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
    is_connected_ = writer_.queues() > 0;
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
