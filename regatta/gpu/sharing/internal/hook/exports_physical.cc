// Memory without an address: counted for its device until the handle is released and nothing is
// mapped to it, as the driver keeps it. Imported memory is counted in the process that exported it.
#include <map>
#include <utility>
#include <vector>

#include "regatta/base/core/mutex.h"
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/memory.h"
#include "regatta/gpu/sharing/internal/hook/swap.h"

namespace regatta::sharing::hook {
namespace {

using Handle = CUmemGenericAllocationHandle;

struct Physical {
  int device = 0;
  std::uint64_t charged = 0;
  std::int64_t references = 1;  // cuMemRetainAllocationHandle() adds one
  std::int64_t mappings = 0;
};
struct Mapping {
  std::uint64_t bytes = 0;
  Handle handle = 0;
};

struct PhysicalState {
  Mutex mutex;
  std::map<Handle, Physical> handles REGATTA_GUARDED_BY(mutex);
  std::map<CUdeviceptr, Mapping> mappings REGATTA_GUARDED_BY(mutex);
};
PhysicalState& physical_state() {
  static auto* const only = new PhysicalState;
  return *only;
}

using Node = std::map<Handle, Physical>::node_type;

// Takes references and mappings off a handle before the driver does: it may give the same handle
// out again at once. The node comes back when nothing is left; its bytes are the device's until the
// driver is done.
Node drop(Handle handle, int references, int mappings) REGATTA_REQUIRES(physical_state().mutex) {
  const auto at = physical_state().handles.find(handle);
  if (at == physical_state().handles.end()) return {};
  at->second.references -= references;
  at->second.mappings -= mappings;
  if (at->second.references > 0 || at->second.mappings > 0) return {};
  return physical_state().handles.extract(at);
}

// Undoes drop() after the driver refused.
void put_back(Handle handle, Node node, int references, int mappings)
    REGATTA_REQUIRES(physical_state().mutex) {
  if (node) physical_state().handles.insert(std::move(node));
  const auto at = physical_state().handles.find(handle);
  if (at == physical_state().handles.end()) return;
  at->second.references += references;
  at->second.mappings += mappings;
}

}  // namespace

CUresult create_physical(DriverFunction<DriverEntry::cuMemCreate> real, Handle* handle,
                         std::size_t bytes, const CUmemAllocationProp* properties,
                         unsigned long long flags) {
  if (handle == nullptr || properties == nullptr ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || properties->location.id < 0)
    return real(handle, bytes, properties, flags);
  AccountingGuard busy;
  const int device = properties->location.id;
  const auto granted = reserve(device, whole_blocks(bytes), &busy);
  if (!granted) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = real(handle, bytes, properties, flags);
  if (result != CUDA_SUCCESS) {
    release(device, *granted);
    return result;
  }
  const MutexLock lock(physical_state().mutex);
  physical_state().handles[*handle] = {.device = device, .charged = *granted};
  return result;
}

namespace {

CUresult release_known(DriverFunction<DriverEntry::cuMemRelease> real, Handle handle) {
  const AccountingGuard busy;
  Node node;
  {
    const MutexLock lock(physical_state().mutex);
    node = drop(handle, 1, 0);
  }
  const CUresult result = real(handle);
  if (result != CUDA_SUCCESS) {
    const MutexLock lock(physical_state().mutex);
    put_back(handle, std::move(node), 1, 0);
  } else if (node) {
    release(node.mapped().device, node.mapped().charged);
  }
  return result;
}

}  // namespace

CUresult release_physical(DriverFunction<DriverEntry::cuMemRelease> real, Handle handle) {
  const CUresult result = release_known(real, handle);
  if (result == CUDA_SUCCESS) settle_shares(SettleMode::kAlways);
  return result;
}

CUresult retain_physical(DriverFunction<DriverEntry::cuMemRetainAllocationHandle> real,
                         Handle* handle, void* address) {
  // It is under these addresses today, and under none tomorrow.
  if (find_swappable(reinterpret_cast<CUdeviceptr>(address))) return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult result = real(handle, address);
  if (result != CUDA_SUCCESS) return result;
  const MutexLock lock(physical_state().mutex);
  put_back(*handle, {}, 1, 0);
  return result;
}

CUresult map_physical(DriverFunction<DriverEntry::cuMemMap> real, CUdeviceptr address,
                      std::size_t bytes, std::size_t offset, Handle handle,
                      unsigned long long flags) {
  const CUresult result = real(address, bytes, offset, handle, flags);
  if (result != CUDA_SUCCESS) return result;
  const MutexLock lock(physical_state().mutex);
  physical_state().mappings[address] = {bytes, handle};
  put_back(handle, {}, 0, 1);
  return result;
}

namespace {

CUresult unmap_known(DriverFunction<DriverEntry::cuMemUnmap> real, CUdeviceptr address,
                     std::size_t bytes) {
  const AccountingGuard busy;
  // Taken out first, as the addresses may be mapped again at once.
  std::map<CUdeviceptr, Mapping> gone;
  std::vector<std::pair<Handle, Node>> dropped;
  {
    const MutexLock lock(physical_state().mutex);
    auto& mappings = physical_state().mappings;
    for (auto at = mappings.lower_bound(address);
         at != mappings.end() && at->first < address + bytes;) {
      dropped.emplace_back(at->second.handle, drop(at->second.handle, 0, 1));
      gone.insert(mappings.extract(at++));
    }
  }
  const CUresult result = real(address, bytes);
  if (result == CUDA_SUCCESS) {
    for (const auto& [handle, node] : dropped)
      if (node) release(node.mapped().device, node.mapped().charged);
    return result;
  }
  const MutexLock lock(physical_state().mutex);
  for (auto& [handle, node] : dropped)
    put_back(handle, std::move(node), 0, 1);
  physical_state().mappings.merge(gone);
  return result;
}

}  // namespace

CUresult unmap_physical(DriverFunction<DriverEntry::cuMemUnmap> real, CUdeviceptr address,
                        std::size_t bytes) {
  const CUresult result = unmap_known(real, address, bytes);
  if (result == CUDA_SUCCESS) settle_shares(SettleMode::kAlways);
  return result;
}

}  // namespace regatta::sharing::hook
