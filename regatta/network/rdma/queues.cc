#include "regatta/network/rdma/queues.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>

namespace regatta::rdma {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kQueueSlotBytes = kLine + kSlotPayloadMax;
constexpr std::size_t kPage = 4096;
// Packets are counted from here; any number does.
constexpr std::uint32_t kFirstPacket = 0;
// How long a packet may stay unacknowledged before it is sent again: 4.096 us * 2^15 = 0.13 s; how
// often, before the connection counts as lost. At 7 soft-RoCE would go on without end.
constexpr std::uint8_t kTimeout = 15;
constexpr std::uint8_t kRetries = 6;
// Receives that are missing are tried again without end: credit sees to it that they come.
constexpr std::uint8_t kRetriesOfReceive = 7;
constexpr std::uint8_t kReceiveTimer = 12;  // 0.64 ms between those tries

int bytes_of(ibv_mtu mtu) {
  return 128 << static_cast<int>(mtu);
}

ibv_mtu mtu_of(std::uint32_t bytes) {
  int mtu = IBV_MTU_256;
  while (mtu < IBV_MTU_4096 &&
         static_cast<std::uint32_t>(bytes_of(static_cast<ibv_mtu>(mtu + 1))) <= bytes)
    ++mtu;
  return static_cast<ibv_mtu>(mtu);
}

}  // namespace

void Queues::Free::operator()(std::byte* memory) const {
  std::free(memory);  // NOLINT(*-no-malloc): it is aligned to a page
}

Result<std::unique_ptr<Queues>> Queues::create(Device& device, const QueueShape& shape) {
  std::unique_ptr<Queues> queues(new Queues(device, shape));
  REGATTA_TRY_DO(queues->make());
  return queues;
}

std::size_t Queues::memory_bytes() const {
  const std::size_t slots = shape_.receive_slots + shape_.send_slots;
  return (slots * kQueueSlotBytes + kPage - 1) / kPage * kPage;
}

Status Queues::make() {
  const auto failed = [this](const char* what) {
    return device_error(device_.name(), what, errno);
  };
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, memory_bytes())));
  if (memory_ == nullptr) return failed("allocate memory for packets");
  region_ = library_.memory.reg_mr(device_.domain(), memory_.get(), memory_bytes(),
                                   IBV_ACCESS_LOCAL_WRITE);
  if (region_ == nullptr) return failed("register memory for packets");
  channel_ = library_.completions.create_comp_channel(device_.context());
  if (channel_ == nullptr) return failed("create a completion channel");
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  completion_ = library_.completions.create_cq(
      device_.context(), static_cast<int>(shape_.receive_slots + shape_.send_slots), nullptr,
      channel_, 0);
  if (completion_ == nullptr) return failed("create a completion queue");
  ibv_srq_init_attr receives{};
  receives.attr = {.max_wr = shape_.receive_slots, .max_sge = 1, .srq_limit = 0};
  receives_ = library_.queues.create_srq(device_.domain(), &receives);
  if (receives_ == nullptr) return failed("create a receive queue");
  for (int i = 0; i < shape_.queue_pairs; ++i) {
    ibv_qp_init_attr pair{};
    pair.send_cq = pair.recv_cq = completion_;
    pair.srq = receives_;
    pair.cap = {.max_send_wr = shape_.send_slots,
                .max_recv_wr = 0,
                .max_send_sge = 2,
                .max_recv_sge = 0,
                .max_inline_data = 0};
    pair.qp_type = IBV_QPT_RC;
    ibv_qp* const made = library_.queues.create_qp(device_.domain(), &pair);
    if (made == nullptr) return failed("create a queue pair");
    pairs_.push_back(made);
  }
  for (std::uint32_t slot = 0; slot < shape_.receive_slots; ++slot)
    if (const int error = post_receive(slot); error != 0)
      return device_error(device_.name(), "post a receive", error);
  return {};
}

Queues::~Queues() {
  for (ibv_qp* pair : pairs_)
    library_.queues.destroy_qp(pair);
  if (receives_ != nullptr) library_.queues.destroy_srq(receives_);
  if (completion_ != nullptr) library_.completions.destroy_cq(completion_);
  if (channel_ != nullptr) library_.completions.destroy_comp_channel(channel_);
  if (region_ != nullptr) library_.memory.dereg_mr(region_);
}

QueueCard Queues::card() const {
  QueueCard card{.gid = device_.gid(),
                 .mtu = static_cast<std::uint32_t>(bytes_of(device_.mtu())),
                 .slots = shape_.receive_slots,
                 .numbers = {}};
  for (const ibv_qp* pair : pairs_)
    card.numbers.push_back(pair->qp_num);
  return card;
}

Status Queues::connect(const QueueCard& theirs) {
  const std::size_t count = std::min(pairs_.size(), theirs.numbers.size());
  const auto ports =
      choose_source_ports(count, pairs_.front()->qp_num ^ theirs.numbers.front() << 7);
  for (std::size_t i = 0; i < count; ++i)
    REGATTA_TRY_DO(connect_one(i, theirs, ports[i]));
  connected_ = count;
  return {};
}

Status Queues::connect_one(std::size_t index, const QueueCard& theirs, std::uint16_t source_port) {
  ibv_qp* const pair = pairs_[index];
  const auto failed = [this](int error) {
    return device_error(device_.name(), "connect a queue pair", error);
  };
  ibv_qp_attr start{};
  start.qp_state = IBV_QPS_INIT;
  start.pkey_index = 0;
  start.port_num = device_.port();
  start.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  int error = library_.queues.modify_qp(
      pair, &start, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) return failed(error);

  ibv_qp_attr receive{};
  receive.qp_state = IBV_QPS_RTR;
  receive.path_mtu = std::min(device_.mtu(), mtu_of(theirs.mtu));
  receive.dest_qp_num = theirs.numbers[index];
  receive.rq_psn = kFirstPacket;
  receive.max_dest_rd_atomic = 0;
  receive.min_rnr_timer = kReceiveTimer;
  receive.ah_attr.is_global = 1;
  receive.ah_attr.port_num = device_.port();
  std::memcpy(receive.ah_attr.grh.dgid.raw, theirs.gid.data(), theirs.gid.size());
  receive.ah_attr.grh.sgid_index = device_.gid_index();
  receive.ah_attr.grh.hop_limit = kHopLimit;
  receive.ah_attr.grh.flow_label = flow_label_of(source_port);
  error = library_.queues.modify_qp(pair, &receive,
                                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                        IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                        IBV_QP_MIN_RNR_TIMER);
  if (error != 0) return failed(error);

  ibv_qp_attr send{};
  send.qp_state = IBV_QPS_RTS;
  send.sq_psn = kFirstPacket;
  send.timeout = kTimeout;
  send.retry_cnt = kRetries;
  send.rnr_retry = kRetriesOfReceive;
  send.max_rd_atomic = 0;
  error =
      library_.queues.modify_qp(pair, &send,
                                IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
  if (error != 0) return failed(error);
  return {};
}

Queues::Slot Queues::at(std::uint64_t slot) const {
  std::byte* const line = memory_.get() + slot * kQueueSlotBytes;
  return {line + kLine - shape_.header_bytes, line + kLine};
}

ibv_sge Queues::part_of_slot(const std::byte* from, std::size_t bytes) const {
  return {.addr = reinterpret_cast<std::uint64_t>(from),
          .length = static_cast<std::uint32_t>(bytes),
          .lkey = region_->lkey};
}

int Queues::post(std::size_t queue, std::span<ibv_sge> parts, ibv_send_wr request) {
  request.sg_list = parts.data();
  request.num_sge = static_cast<int>(parts.size());
  request.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(pairs_[queue], &request, &bad);
}

int Queues::send(std::size_t queue, std::uint32_t slot, const Payload& payload,
                 std::uint32_t immediate) {
  std::array<ibv_sge, 2> parts{part_of_slot(send_slot(slot).header, shape_.header_bytes), {}};
  const bool is_apart = payload.memory != nullptr;
  if (is_apart)
    parts[1] = {.addr = reinterpret_cast<std::uint64_t>(payload.memory),
                .length = static_cast<std::uint32_t>(payload.bytes),
                .lkey = payload.key};
  else
    parts[0].length += static_cast<std::uint32_t>(payload.bytes);
  ibv_send_wr request{};
  request.wr_id = shape_.receive_slots + slot;
  request.opcode = IBV_WR_SEND_WITH_IMM;
  request.imm_data = htonl(immediate);
  const std::size_t count = is_apart ? 2 : (parts[0].length > 0 ? 1 : 0);  // none: nothing is said
  return post(queue, std::span(parts).first(count), request);
}

int Queues::write(std::size_t queue, std::uint32_t slot, const Payload& payload,
                  const RemotePlace& to, std::size_t offset) {
  ibv_sge part = part_of_slot(send_slot(slot).payload, payload.bytes);
  if (payload.memory != nullptr) {
    part.addr = reinterpret_cast<std::uint64_t>(payload.memory);
    part.lkey = payload.key;
  }
  ibv_send_wr request{};
  request.wr_id = shape_.receive_slots + slot;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = htonl(to.landing);
  request.wr.rdma.remote_addr = to.address + offset;
  request.wr.rdma.rkey = to.key;
  return post(queue, std::span(&part, 1), request);
}

int Queues::post_receive(std::uint64_t slot) {
  ibv_sge part = part_of_slot(at(slot).header, shape_.header_bytes + kSlotPayloadMax);
  ibv_recv_wr request{};
  request.wr_id = slot;
  request.sg_list = &part;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_srq_recv(receives_, &request, &bad);
}

void Queues::take_events() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  unsigned taken = 0;
  while (library_.completions.get_cq_event(channel_, &queue, &context) == 0)
    ++taken;
  if (taken > 0) library_.completions.ack_cq_events(completion_, taken);
}

void Queues::stop() {
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  for (ibv_qp* pair : pairs_)
    library_.queues.modify_qp(pair, &error, IBV_QP_STATE);
}

}  // namespace regatta::rdma
