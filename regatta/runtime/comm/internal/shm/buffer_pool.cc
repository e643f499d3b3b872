#include "regatta/runtime/comm/internal/shm/buffer_pool.h"

#include <algorithm>
#include <utility>

#include <sys/mman.h>

namespace regatta::comm {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

std::shared_ptr<std::byte> BufferPool::allocate(std::size_t bytes) {
  if (bytes > kBufferSpace) return nullptr;
  const std::size_t whole = std::max(kPage, (bytes + kPage - 1) / kPage * kPage);
  const MutexLock lock(mutex_);
  std::size_t at = 0;
  for (const auto& [offset, size] : used_) {
    if (offset - at >= whole) break;
    at = offset + size;
  }
  if (kBufferSpace - at < whole) return nullptr;
  used_.emplace(at, whole);
  return {shared_segment_.buffers() + at,
          [pool = shared_from_this()](std::byte* data) { pool->release(data); }};
}

void BufferPool::release(std::byte* data) {
  const MutexLock lock(mutex_);
  const auto found = used_.find(static_cast<std::size_t>(data - shared_segment_.buffers()));
  madvise(data, found->second, MADV_REMOVE);
  used_.erase(found);
}

}  // namespace regatta::comm
