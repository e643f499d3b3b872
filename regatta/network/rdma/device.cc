#include "regatta/network/rdma/device.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "regatta/base/os/unique_fd.h"
#include "regatta/network/rdma/queues.h"

namespace regatta::rdma {
namespace {

constexpr std::uint32_t kSoftwareVendor = 0xffffff;  // what rdma_rxe says

// Without a device there is no reason to load the library and all its drivers.
bool has_any_device() {
  std::error_code error;
  const std::filesystem::directory_iterator first("/sys/class/infiniband", error);
  return !error && first != std::filesystem::directory_iterator();
}

}  // namespace

Error device_error(const std::string& device, const std::string& what, int error) {
  std::string text = device + ": cannot " + what + ": " + os::errno_text(error);
  if (error == ENOMEM) text += "; raise the limit of locked memory (ulimit -l)";
  return {Code::kUnavailable, text};
}

Result<std::unique_ptr<Device>> Device::open(const std::string& address) {
  REGATTA_TRY(gid, gid_of(address));
  const Error none{Code::kUnsupported, "no active RoCEv2 port of this machine has the address " +
                                           address + ": see the output of ibv_devinfo -v"};
  if (!has_any_device()) return none;
  REGATTA_TRY(library, load_library());
  int count = 0;
  ibv_device** const list = library->devices.get_device_list(&count);
  if (list == nullptr) return none;
  std::unique_ptr<Device> found;
  for (int i = 0; i < count && found == nullptr; ++i) {
    ibv_context* const context = library->devices.open_device(list[i]);
    if (context == nullptr) continue;
    std::unique_ptr<Device> device(new Device(*library, context));
    if (!device->find(gid)) continue;
    device->name_ = std::string(library->devices.get_device_name(list[i])) + " port " +
                    std::to_string(device->port_);
    found = std::move(device);
  }
  library->devices.free_device_list(list);
  if (found == nullptr) return none;
  REGATTA_TRY_DO(found->try_out());
  return found;
}

bool Device::find(const Gid& gid) {
  ibv_device_attr device{};
  if (library_.devices.query_device(context_, &device) != 0) return false;
  is_software_ = device.vendor_id == kSoftwareVendor;
  for (std::uint8_t port = 1; port <= device.phys_port_cnt; ++port) {
    ibv_port_attr attributes{};
    // The library's own type for this call ends before the newest members of ours.
    if (library_.devices.query_port(context_, port,
                                    reinterpret_cast<_compat_ibv_port_attr*>(&attributes)) != 0 ||
        attributes.state != IBV_PORT_ACTIVE)
      continue;
    for (int index = 0; index < attributes.gid_tbl_len && index <= UINT8_MAX; ++index) {
      ibv_gid_entry entry{};
      if (library_.devices.query_gid_ex(context_, port, static_cast<std::uint32_t>(index), &entry,
                                        0, sizeof entry) != 0 ||
          entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
          std::memcmp(entry.gid.raw, gid.data(), gid.size()) != 0)
        continue;
      port_ = port;
      gid_ = gid;
      gid_index_ = static_cast<std::uint8_t>(index);
      mtu_ = attributes.active_mtu;
      return true;
    }
  }
  return false;
}

bool Device::is_active() const {
  ibv_port_attr attributes{};
  ibv_gid_entry entry{};
  return library_.devices.query_port(context_, port_,
                                     reinterpret_cast<_compat_ibv_port_attr*>(&attributes)) == 0 &&
         attributes.state == IBV_PORT_ACTIVE &&
         library_.devices.query_gid_ex(context_, port_, gid_index_, &entry, 0, sizeof entry) == 0 &&
         entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
         std::memcmp(entry.gid.raw, gid_.data(), gid_.size()) == 0;
}

// Tries all steps now: after a later failure a fallback to TCP is not possible.
Status Device::try_out() {
  domain_ = library_.devices.alloc_pd(context_);
  if (domain_ == nullptr) return device_error(name_, "allocate a protection domain", errno);
  REGATTA_TRY(queues, Queues::create(*this, {}));
  return {};
}

Device::~Device() {
  if (domain_ != nullptr) library_.devices.dealloc_pd(domain_);
  library_.devices.close_device(context_);
}

Result<MemoryRegistrar::Registered> Device::add(const MemoryRange& range) {
  const int access = range.is_writable ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
  ibv_mr* const region =
      library_.memory.reg_mr(domain_, const_cast<std::byte*>(range.data), range.bytes, access);
  if (region == nullptr) return device_error(name_, "register memory", errno);
  return Registered{.keys = {.local = region->lkey, .remote = region->rkey}, .handle = region};
}

void Device::remove(void* handle) {
  library_.memory.dereg_mr(static_cast<ibv_mr*>(handle));
}

}  // namespace regatta::rdma
