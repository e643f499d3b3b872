// rdma/device.h: an open RDMA device and its port that has an address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/network/rdma/internal/library.h"
#include "regatta/network/rdma/memory.h"
#include "regatta/network/rdma/wire.h"

namespace regatta::rdma {

class Device final : public MemoryRegistrar {
 public:
  // Opens the device with an active RoCEv2 port that has this numeric address, and checks that
  // memory can be registered and a queue pair created. kUnsupported: there is no such device, or no
  // libibverbs. Other errors name a device that exists and cannot be used.
  static Result<std::unique_ptr<Device>> open(const std::string& address);
  ~Device() override;

  const Library& library() const { return library_; }
  ibv_context* context() const { return context_; }
  ibv_pd* domain() const { return domain_; }
  const std::string& name() const { return name_; }  // "mlx5_0 port 1"
  std::uint8_t port() const { return port_; }
  const Gid& gid() const { return gid_; }
  std::uint8_t gid_index() const { return gid_index_; }
  ibv_mtu mtu() const { return mtu_; }
  // Soft-RoCE ignores flow labels: its packets leave from udp_port_of_queue().
  bool is_software() const { return is_software_; }
  // Whether the port is still up and still has the address, for RoCEv2.
  bool is_active() const;

  Result<Registered> add(const MemoryRange& range) override;
  void remove(void* handle) override;

 private:
  Device(const Library& library, ibv_context* context) : library_(library), context_(context) {}

  // Finds the port and index of an active port's GID; false when this device does not have it.
  bool find(const Gid& gid);
  Status try_out();

  const Library& library_;
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  std::string name_;
  std::uint8_t port_ = 0;
  Gid gid_{};
  std::uint8_t gid_index_ = 0;
  ibv_mtu mtu_ = IBV_MTU_1024;
  bool is_software_ = false;
};

// "mlx5_0 port 1: cannot register memory: Cannot allocate memory"
Error device_error(const std::string& device, const std::string& what, int error);

}  // namespace regatta::rdma
