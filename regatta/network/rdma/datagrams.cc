#include "regatta/network/rdma/datagrams.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "regatta/base/os/clock.h"

namespace regatta::rdma {
namespace {

// In front of each datagram that arrives lies the header that brought it: of an IPv4 packet the
// last 20 bytes of it.
constexpr std::size_t kHeaderBytes = 40;
constexpr std::size_t kDatagramSlotBytes = 128;
static_assert(kHeaderBytes + kDatagramBytes <= kDatagramSlotBytes);
constexpr std::size_t kFromV4 = 20 + 12;  // of the sender's address in that header
constexpr std::size_t kFromV6 = 8;
constexpr std::uint32_t kKey = 0x52475452;  // both ends have it; no secret, but not anybody's
constexpr int kTriesMost = 1 << 17;         // eight times as many as there are ports

}  // namespace

Result<std::unique_ptr<Datagrams>> Datagrams::create(Device& device, const DatagramShape& shape) {
  std::unique_ptr<Datagrams> made(new Datagrams(device, shape));
  REGATTA_TRY_DO(made->make());
  return made;
}

Status Datagrams::make() {
  const auto failed = [this](const char* what) {
    return device_error(device_.name(), what, errno);
  };
  memory_.resize((shape_.sends + shape_.receives) * kDatagramSlotBytes);
  region_ = library_.memory.reg_mr(device_.domain(), memory_.data(), memory_.size(),
                                   IBV_ACCESS_LOCAL_WRITE);
  if (region_ == nullptr) return failed("register memory for datagrams");
  sent_ = library_.completions.create_cq(device_.context(), static_cast<int>(shape_.sends), nullptr,
                                         nullptr, 0);
  received_ = library_.completions.create_cq(device_.context(), static_cast<int>(shape_.receives),
                                             nullptr, nullptr, 0);
  if (sent_ == nullptr || received_ == nullptr) return failed("create a completion queue");
  ibv_qp* const pair = make_pair(shape_.receives);
  if (pair == nullptr) return failed("create a queue pair for datagrams");
  pairs_.push_back({.pair = pair});
  return start();
}

ibv_qp* Datagrams::make_pair(std::uint32_t receives) {
  ibv_qp_init_attr pair{};
  pair.send_cq = sent_;
  pair.recv_cq = received_;
  pair.cap = {.max_send_wr = shape_.sends,
              .max_recv_wr = receives,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  pair.qp_type = IBV_QPT_UD;
  return library_.queues.create_qp(device_.domain(), &pair);
}

// The numbers of queue pairs ascend, so their ports go through all that there are.
Status Datagrams::allow_ports(const std::set<std::uint16_t>& ports) {
  if (!ports.empty() && *ports.begin() <= 0xC000)
    return Error{Code::kInvalidInput, "UDP port " + std::to_string(*ports.begin()) +
                                          ": is none that RoCEv2 leaves from, 49153 to 65535"};
  if (!device_.is_software()) return {};
  std::set<std::uint16_t> missing = ports;
  for (const Pair& one : pairs_)
    missing.erase(one.port);
  for (int tries = 0; !missing.empty(); ++tries) {
    ibv_qp* const pair = tries < kTriesMost ? make_pair(1) : nullptr;
    if (pair == nullptr)
      return Error{Code::kExhausted, device_.name() + ": no queue pair sends from UDP port " +
                                         std::to_string(*missing.begin())};
    const std::uint16_t port = udp_port_of_queue(pair->qp_num);
    if (missing.erase(port) == 0) {
      library_.queues.destroy_qp(pair);
      continue;
    }
    pairs_.push_back({.pair = pair, .port = port});
    REGATTA_TRY_DO(start(pair, false));
  }
  return {};
}

Datagrams::~Datagrams() {
  for (const Pair& one : pairs_)
    library_.queues.destroy_qp(one.pair);
  if (received_ != nullptr) library_.completions.destroy_cq(received_);
  if (sent_ != nullptr) library_.completions.destroy_cq(sent_);
  if (region_ != nullptr) library_.memory.dereg_mr(region_);
}

Status Datagrams::change(ibv_qp* pair, ibv_qp_attr attributes, int mask) {
  const int error = library_.queues.modify_qp(pair, &attributes, mask);
  if (error == 0) return {};
  return device_error(device_.name(), "start a queue pair for datagrams", error);
}

Status Datagrams::start() {
  is_broken_ = true;  // until it has started
  ++generation_;
  free_.clear();
  for (std::uint32_t i = 0; i < shape_.sends; ++i)
    free_.push_back(shape_.receives + i);
  looked_at_.reset();
  for (const Pair& one : pairs_)
    REGATTA_TRY_DO(start(one.pair, &one == &pairs_.front()));
  is_broken_ = false;
  return {};
}

Status Datagrams::start(ibv_qp* pair, bool receives) {
  ibv_qp_attr reset{};
  reset.qp_state = IBV_QPS_RESET;
  REGATTA_TRY_DO(change(pair, reset, IBV_QP_STATE));
  ibv_qp_attr begin{};
  begin.qp_state = IBV_QPS_INIT;
  begin.pkey_index = 0;
  begin.port_num = device_.port();
  begin.qkey = kKey;
  REGATTA_TRY_DO(change(pair, begin, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
  for (std::uint32_t i = 0; receives && i < shape_.receives; ++i)
    if (const int error = post_receive(i); error != 0)
      return device_error(device_.name(), "post a receive", error);
  ibv_qp_attr receive{};
  receive.qp_state = IBV_QPS_RTR;
  REGATTA_TRY_DO(change(pair, receive, IBV_QP_STATE));
  ibv_qp_attr send{};
  send.qp_state = IBV_QPS_RTS;
  send.sq_psn = 0;
  return change(pair, send, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

std::byte* Datagrams::slot(std::uint32_t number) const {
  return const_cast<std::byte*>(memory_.data()) + std::size_t{number} * kDatagramSlotBytes;
}

bool Datagrams::is_v4() const {
  const Gid& gid = device_.gid();
  return std::all_of(gid.begin(), gid.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) &&
         gid[10] == 0xff && gid[11] == 0xff;
}

int Datagrams::post_receive(std::uint32_t number) {
  ibv_sge part{.addr = reinterpret_cast<std::uint64_t>(slot(number)),
               .length = kHeaderBytes + kDatagramBytes,
               .lkey = region_->lkey};
  ibv_recv_wr request{};
  request.wr_id = std::uint64_t{generation_} << 32 | number;
  request.sg_list = &part;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(pairs_.front().pair, &request, &bad);
}

ibv_ah* Datagrams::make_path(const Gid& to, std::uint16_t source_port) {
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.port_num = device_.port();
  std::memcpy(attributes.grh.dgid.raw, to.data(), to.size());
  attributes.grh.sgid_index = device_.gid_index();
  attributes.grh.hop_limit = kHopLimit;
  attributes.grh.traffic_class = shape_.traffic_class;
  attributes.grh.flow_label = flow_label_of(source_port);
  return library_.queues.create_ah(device_.domain(), &attributes);
}

ibv_qp* Datagrams::pair_for(std::uint16_t port) const {
  if (!device_.is_software()) return pairs_.front().pair;
  const auto at = std::find_if(pairs_.begin() + 1, pairs_.end(),
                               [&](const Pair& one) { return one.port == port; });
  return at == pairs_.end() ? nullptr : at->pair;
}

void Datagrams::take_sent() {
  ibv_wc done{};
  while (ibv_poll_cq(sent_, 1, &done) == 1) {
    if (done.wr_id >> 32 != generation_) continue;
    if (done.status == IBV_WC_SUCCESS) {
      free_.push_back(static_cast<std::uint32_t>(done.wr_id));
    } else {
      is_broken_ = true;
    }
  }
}

bool Datagrams::send(const DatagramPeer& to, std::span<const std::byte> payload) {
  take_sent();
  if (is_broken_ && !start()) return false;
  if (payload.size() > kDatagramBytes || free_.empty()) return false;
  ibv_qp* const pair = pair_for(to.source_port);
  if (free_.size() == shape_.sends) paths_.free_replaced();
  ibv_ah* const path = paths_.find(to.gid, to.source_port, os::monotonic_now());
  if (pair == nullptr || path == nullptr) return false;
  const std::uint32_t number = free_.back();
  std::memcpy(slot(number), payload.data(), payload.size());
  ibv_sge part{.addr = reinterpret_cast<std::uint64_t>(slot(number)),
               .length = static_cast<std::uint32_t>(payload.size()),
               .lkey = region_->lkey};
  ibv_send_wr request{};
  request.wr_id = std::uint64_t{generation_} << 32 | number;
  request.sg_list = &part;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.ud.ah = path;
  request.wr.ud.remote_qpn = to.queue;
  request.wr.ud.remote_qkey = kKey;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(pair, &request, &bad) != 0) return false;
  free_.pop_back();
  return true;
}

std::optional<Datagrams::Arrived> Datagrams::receive() {
  if (looked_at_ && post_receive(*looked_at_) != 0) is_broken_ = true;
  looked_at_.reset();
  ibv_wc came{};
  while (ibv_poll_cq(received_, 1, &came) == 1) {
    if (came.wr_id >> 32 != generation_) continue;
    const auto number = static_cast<std::uint32_t>(came.wr_id);
    if (came.status != IBV_WC_SUCCESS) {
      is_broken_ = true;
      continue;
    }
    if (came.byte_len < kHeaderBytes || (came.wc_flags & IBV_WC_GRH) == 0) {
      if (post_receive(number) != 0) is_broken_ = true;
      continue;
    }
    looked_at_ = number;
    const std::byte* const header = slot(number);
    Arrived arrived;
    if (is_v4()) {
      arrived.from[10] = arrived.from[11] = 0xff;
      std::memcpy(arrived.from.data() + 12, header + kFromV4, 4);
    } else {
      std::memcpy(arrived.from.data(), header + kFromV6, arrived.from.size());
    }
    paths_.hear(arrived.from, os::monotonic_now());
    arrived.payload = {header + kHeaderBytes, came.byte_len - kHeaderBytes};
    return arrived;
  }
  return std::nullopt;
}

}  // namespace regatta::rdma
