// Memory of pools: what counts is what a pool holds of its device, used or not. The driver says
// that, and gives back what is not used when it waits for work.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "regatta/base/core/mutex.h"
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/memory.h"
#include "regatta/gpu/sharing/internal/hook/swap.h"

namespace regatta::sharing::hook {

bool is_capturing(CUstream stream) {
  int status = CU_STREAM_CAPTURE_STATUS_NONE;
  auto* const ask = driver<DriverEntry::cuStreamIsCapturing>();
  return ask != nullptr && ask(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

struct Pool {
  CUmemoryPool handle = nullptr;
  int device = 0;
  DriverReportedUsage memory;
  std::atomic<std::uint64_t> step = kBlockBytes;  // that it grows by, at least, as far as is known
  std::atomic<std::uint64_t> used = 0;            // by allocations that are not freed
  // Nobody can ask about a destroyed pool: what it held then is counted until all work is done.
  std::atomic<bool> is_destroyed = false;
  std::atomic<std::uint64_t> left = 0;
};

namespace {

// Pools live until the process ends: a handle that comes again is a new Pool.
struct PoolState {
  Mutex mutex;
  std::map<CUmemoryPool, Pool*> pools REGATTA_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<Pool>> all REGATTA_GUARDED_BY(mutex);
};
PoolState& pool_state() {
  static auto* const only = new PoolState;
  return *only;
}
std::atomic<bool> has_pools = false;

Pool* add_pool(CUmemoryPool handle, int device) {
  const MutexLock lock(pool_state().mutex);
  Pool*& pool = pool_state().pools[handle];
  if (pool != nullptr) return pool;
  pool_state().all.push_back(std::make_unique<Pool>());
  pool = pool_state().all.back().get();
  pool->handle = handle;
  pool->device = device;
  has_pools = true;
  return pool;
}

// Null for a pool that another process made: it is counted there.
Pool* find_pool(CUmemoryPool handle) {
  {
    const MutexLock lock(pool_state().mutex);
    if (const auto at = pool_state().pools.find(handle); at != pool_state().pools.end())
      return at->second;
  }
  auto* const get_default = driver<DriverEntry::cuDeviceGetDefaultMemPool>();
  CUmemoryPool standard = nullptr;
  for (int device = 0; get_default(&standard, device) == CUDA_SUCCESS; ++device)
    if (standard == handle) return add_pool(handle, device);
  return nullptr;
}

std::optional<std::uint64_t> bytes_of(const Pool& pool) {
  std::uint64_t bytes = 0;
  if (pool.is_destroyed) return pool.left;
  if (driver<DriverEntry::cuMemPoolGetAttribute>()(
          pool.handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes) != CUDA_SUCCESS)
    return std::nullopt;
  return bytes;
}

DriverReportedUsage::Outcome settle(Pool& pool, const DriverReportedUsage::Call& call) {
  return pool.memory.settle(pool.device, call, [&] { return bytes_of(pool); });
}

// Room for `most` when the pool cannot grow as it is: by what pools have and do not use. On a
// device of this size the driver would use that again, too, rather than fail.
std::optional<DriverReportedUsage::Call> make_room(Pool& pool, std::uint64_t most, CUstream stream,
                                                   AccountingGuard& busy) {
  const auto trim = [&] {
    driver<DriverEntry::cuMemPoolTrimTo>()(pool.handle, 0);
    settle_pools(false);
    return pool.memory.begin(pool.device, most, &busy);
  };
  settle_pools(false);
  if (const auto call = pool.memory.begin(pool.device, most, &busy)) return call;
  if (const auto call = trim()) return call;
  if (driver<DriverEntry::cuStreamSynchronize>()(stream) != CUDA_SUCCESS) return std::nullopt;
  return trim();
}

template <typename RequestType>
CUresult allocate_from(Pool& pool, CUdeviceptr* address, std::size_t bytes, CUstream stream,
                       RequestType&& ask) {
  const auto place = current_device_context();
  if (bytes > REGATTA_MEMORY_MAX || (place && !account_context(*place)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  AccountingGuard busy;
  const std::uint64_t step = pool.step;
  const std::uint64_t most = (whole_blocks(bytes) + step - 1) / step * step;
  auto call = pool.memory.begin(pool.device, most, &busy);
  if (!call) {
    if (is_capturing(stream)) return ask();  // takes nothing before the graph is launched
    call = make_room(pool, most, stream, busy);
  }
  if (!call) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = ask();
  call->has_failed = result != CUDA_SUCCESS;
  const DriverReportedUsage::Outcome outcome = settle(pool, *call);
  if (result != CUDA_SUCCESS) return result;
  if (outcome.grown > most) pool.step = std::max(step, outcome.grown);
  if (!outcome.is_within && !is_capturing(stream)) {
    driver<DriverEntry::cuMemFreeAsync>()(*address, stream);
    driver<DriverEntry::cuStreamSynchronize>()(stream);
    driver<DriverEntry::cuMemPoolTrimTo>()(pool.handle, 0);
    settle(pool, {});
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  pool.used += whole_blocks(bytes);
  allocations().put({.address = *address,
                     .context = place ? place->context : nullptr,
                     .pool = &pool,
                     .pool_bytes = whole_blocks(bytes),
                     .device = pool.device});
  return result;
}

// The pool that a stream's allocations come from.
Pool* pool_of(CUstream stream) {
  auto place = current_device_context();
  CUcontext context = nullptr;
  auto* const get_context = driver<DriverEntry::cuStreamGetCtx>();
  if (!place || (get_context != nullptr && get_context(stream, &context) != CUDA_SUCCESS))
    return nullptr;
  if (context != nullptr && context != place->context) {
    if (driver<DriverEntry::cuCtxPushCurrent_v2>()(context) != CUDA_SUCCESS) return nullptr;
    place = current_device_context();
    driver<DriverEntry::cuCtxPopCurrent_v2>()(nullptr);
    if (!place) return nullptr;
  }
  CUmemoryPool handle = nullptr;
  if (driver<DriverEntry::cuDeviceGetMemPool>()(&handle, place->device) != CUDA_SUCCESS)
    return nullptr;
  return find_pool(handle);
}

// The program has waited for work; `is_idle`: for all of it. Counts what has changed meanwhile.
void after_wait(bool is_idle) {
  settle_pools(is_idle);
  settle_shares(SettleMode::kPeriodically);
  pay_debts();
}

// The stream that 0 means to the variant with the thread's own.
CUstream explicit_stream(bool is_own, CUstream stream) {
  constexpr std::uintptr_t kPerThread = 2;
  return stream == nullptr && is_own ? reinterpret_cast<CUstream>(kPerThread) : stream;
}

}  // namespace

void settle_pools(bool is_idle) {
  if (!has_pools.load(std::memory_order_relaxed)) return;
  std::vector<Pool*> pools;
  {
    const MutexLock lock(pool_state().mutex);
    for (const auto& pool : pool_state().all)
      pools.push_back(pool.get());
  }
  for (Pool* const pool : pools) {
    if (pool->memory.held_bytes() == 0) continue;
    if (is_idle && pool->is_destroyed) pool->left = std::min(pool->left.load(), pool->used.load());
    settle(*pool, {});
  }
}

void forget_in_pool(const Allocation& allocation) {
  allocation.pool->used -= allocation.pool_bytes;
}

CUresult allocate_async(DriverFunction<DriverEntry::cuMemAllocAsync> real, CUdeviceptr* address,
                        std::size_t bytes, CUstream stream) {
  const bool is_own = real == driver<DriverEntry::cuMemAllocAsync_ptsz>();
  // Memory that can move is there for every stream at once.
  if (!is_capturing(explicit_stream(is_own, stream))) {
    if (const auto done = allocate_swappable(address, bytes)) return *done;
  }
  Pool* const pool =
      address == nullptr || bytes == 0 ? nullptr : pool_of(explicit_stream(is_own, stream));
  if (pool == nullptr) return real(address, bytes, stream);
  return allocate_from(*pool, address, bytes, explicit_stream(is_own, stream),
                       [&] { return real(address, bytes, stream); });
}

CUresult allocate_from_pool(DriverFunction<DriverEntry::cuMemAllocFromPoolAsync> real,
                            CUdeviceptr* address, std::size_t bytes, CUmemoryPool handle,
                            CUstream stream) {
  const bool is_own = real == driver<DriverEntry::cuMemAllocFromPoolAsync_ptsz>();
  Pool* const pool = address == nullptr || bytes == 0 ? nullptr : find_pool(handle);
  if (pool == nullptr) return real(address, bytes, handle, stream);
  return allocate_from(*pool, address, bytes, explicit_stream(is_own, stream),
                       [&] { return real(address, bytes, handle, stream); });
}

CUresult free_async(DriverFunction<DriverEntry::cuMemFreeAsync> real, CUdeviceptr address,
                    CUstream stream) {
  if (find_swappable(address)) {
    const bool is_own = real == driver<DriverEntry::cuMemFreeAsync_ptsz>();
    // It waits for all work, and with that for the stream's.
    const bool is_free = !is_capturing(explicit_stream(is_own, stream)) && free_swappable(address);
    return is_free ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  const auto known = allocations().extract(address);
  const CUresult result = real(address, stream);
  if (known && result != CUDA_SUCCESS) allocations().put(*known);
  if (known && result == CUDA_SUCCESS && known->pool != nullptr) forget_in_pool(*known);
  return result;
}

CUresult create_pool(DriverFunction<DriverEntry::cuMemPoolCreate> real, CUmemoryPool* handle,
                     const CUmemPoolProps* properties) {
  const CUresult result = real(handle, properties);
  if (result == CUDA_SUCCESS && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
    add_pool(*handle, properties->location.id);
  return result;
}

CUresult destroy_pool(DriverFunction<DriverEntry::cuMemPoolDestroy> real, CUmemoryPool handle) {
  Pool* pool = nullptr;
  {
    const MutexLock lock(pool_state().mutex);
    if (auto node = pool_state().pools.extract(handle)) pool = node.mapped();
  }
  if (pool == nullptr) return real(handle);
  driver<DriverEntry::cuMemPoolTrimTo>()(handle, 0);
  pool->left = bytes_of(*pool).value_or(pool->memory.held_bytes());
  const CUresult result = real(handle);
  if (result != CUDA_SUCCESS) {
    const MutexLock lock(pool_state().mutex);
    pool_state().pools[handle] = pool;
    return result;
  }
  pool->is_destroyed = true;
  settle(*pool, {});
  return result;
}

CUresult trim_pool(DriverFunction<DriverEntry::cuMemPoolTrimTo> real, CUmemoryPool handle,
                   std::size_t keep) {
  const CUresult result = real(handle, keep);
  settle_pools(false);
  return result;
}

CUresult synchronize(DriverFunction<DriverEntry::cuStreamSynchronize> real, CUstream stream) {
  const CUresult result = real(stream);
  after_wait(false);
  return result;
}

CUresult synchronize(DriverFunction<DriverEntry::cuEventSynchronize> real, CUevent event) {
  const CUresult result = real(event);
  after_wait(false);
  return result;
}

CUresult synchronize(DriverFunction<DriverEntry::cuCtxSynchronize> real) {
  const CUresult result = real();
  after_wait(true);
  return result;
}

}  // namespace regatta::sharing::hook
