// coll/transport/verbs_device.h: an open RDMA device, the port that has this rank's address, and
// the memory that is registered with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "regatta/coll/transport/registration_cache.h"
#include "regatta/coll/transport/verbs_library.h"
#include "regatta/coll/transport/verbs_wire.h"
#include "regatta/core/result.h"

namespace regatta::coll {

class VerbsDevice final : public MemoryRegistrar {
 public:
  // See open_verbs(). It has shown that memory can be registered and a queue pair be made.
  static Result<std::shared_ptr<VerbsDevice>> open(const std::string& address);
  ~VerbsDevice() override;

  const VerbsLibrary& library() const { return library_; }
  ibv_context* context() const { return context_; }
  ibv_pd* domain() const { return domain_; }
  const std::string& name() const { return name_; }  // "mlx5_0 port 1"
  std::uint8_t port() const { return port_; }
  const Gid& gid() const { return gid_; }
  std::uint8_t gid_index() const { return gid_index_; }
  ibv_mtu mtu() const { return mtu_; }
  // Kept from one message of a call to the next.
  RegistrationCache& memory() { return memory_; }

  Result<Registered> add(const MemoryRange& range) override;
  void remove(void* handle) override;

 private:
  VerbsDevice(const VerbsLibrary& library, ibv_context* context)
      : library_(library), context_(context) {}

  // Finds the port and index of an active port's GID; false when this device has it not.
  bool find(const Gid& gid);
  Status try_out();

  const VerbsLibrary& library_;
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  std::string name_;
  std::uint8_t port_ = 0;
  Gid gid_{};
  std::uint8_t gid_index_ = 0;
  ibv_mtu mtu_ = IBV_MTU_1024;
  RegistrationCache memory_{*this};
};

// "mlx5_0 port 1: cannot register memory: Cannot allocate memory"
Error verbs_error(const std::string& device, const std::string& what, int error);

}  // namespace regatta::coll
