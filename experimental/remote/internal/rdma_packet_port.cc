#include "experimental/remote/internal/rdma_packet_port.h"

#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <unistd.h>

#include "regatta/base/core/mutex.h"
#include "regatta/network/rdma/device.h"
#include "regatta/network/rdma/queues.h"

namespace regatta::remote {
namespace {

static_assert(kPacketBytes <= rdma::kSlotPayloadMax);

// The device of new connections of this process. Any thread makes and ends connections, and a
// replaced device stays open until its last connection has ended.
struct OpenDevices {
  Mutex mutex;
  std::string address REGATTA_GUARDED_BY(mutex);
  std::shared_ptr<rdma::Device> device REGATTA_GUARDED_BY(mutex);
  std::vector<std::weak_ptr<rdma::Device>> ever;  // guarded by mutex; those that may be open
};
OpenDevices& open_devices() {
  static auto* const one = new OpenDevices;
  return *one;
}

Result<std::shared_ptr<rdma::Device>> device_at(const std::string& address) {
  OpenDevices& open = open_devices();
  const MutexLock lock(open.mutex);
  if (open.device != nullptr && open.address == address && open.device->is_active())
    return open.device;
  REGATTA_TRY(device, rdma::Device::open(address));
  open.address = address;
  open.device = std::move(device);
  std::erase_if(open.ever, [](const auto& one) { return one.expired(); });
  open.ever.push_back(open.device);
  return open.device;
}

class QueuePairPort final : public RdmaPacketPort {
 public:
  QueuePairPort(std::shared_ptr<rdma::Device> device, std::unique_ptr<rdma::Queues> queues)
      : device_(std::move(device)), queues_(std::move(queues)) {}

  std::string device() const override { return device_->name(); }
  rdma::QueueCard card() const override { return queues_->card(); }
  Status connect(const rdma::QueueCard& theirs) override {
    if (theirs.slots != kPortReceives || theirs.numbers.size() != 1)
      return Error{Code::kUnsupported, "the other end's queue pair is of another build of regatta"};
    return queues_->connect(theirs);
  }

  std::byte* send_slot(std::uint32_t slot) override { return queues_->send_slot(slot).payload; }
  const std::byte* receive_slot(std::uint32_t slot) override {
    return queues_->receive_slot(slot).payload;
  }
  bool send(std::uint32_t slot, std::size_t bytes, std::uint32_t returned) override {
    return queues_->send(0, slot, {.bytes = bytes}, returned) == 0;
  }
  bool post_receive(std::uint32_t slot) override { return queues_->post_receive(slot) == 0; }
  bool poll(Completion& completion) override {
    ibv_wc came{};
    if (!queues_->poll(came)) return false;
    completion = {.is_good = came.status == IBV_WC_SUCCESS,
                  .is_send = came.wr_id >= kPortReceives,
                  .slot = static_cast<std::uint32_t>(came.wr_id)};
    if (completion.is_send) {
      completion.slot -= kPortReceives;
      return true;
    }
    if (!completion.is_good) return true;  // the rest says nothing then
    completion.is_good =
        came.opcode == IBV_WC_RECV && (came.wc_flags & static_cast<unsigned>(IBV_WC_WITH_IMM)) != 0;
    completion.bytes = came.byte_len;
    completion.returned = ntohl(came.imm_data);
    return true;
  }
  void arm() override {
    queues_->take_events();
    queues_->arm();
  }
  int fd() const override { return queues_->fd(); }
  void stop() override { queues_->stop(); }

 private:
  std::shared_ptr<rdma::Device> device_;
  std::unique_ptr<rdma::Queues> queues_;  // goes before the device
};

}  // namespace

Status find_rdma(const std::string& address) {
  REGATTA_TRY_DO(device_at(address));
  return {};
}

Result<std::unique_ptr<RdmaPacketPort>> open_rdma(const std::string& address) {
  REGATTA_TRY(device, device_at(address));
  REGATTA_TRY(queues, rdma::Queues::create(*device, {.queue_pairs = 1,
                                                     .receive_slots = kPortReceives,
                                                     .send_slots = kPortSends}));
  return std::unique_ptr<RdmaPacketPort>(
      std::make_unique<QueuePairPort>(std::move(device), std::move(queues)));
}

void leave_rdma() {
  for (const auto& one : open_devices().ever) {
    const auto device = one.lock();
    if (device == nullptr) continue;
    static_cast<void>(::close(device->context()->cmd_fd));
    static_cast<void>(::close(device->context()->async_fd));
  }
}

}  // namespace regatta::remote
