// comm/internal/shm/buffer_pool.h: hands out the buffers of a rank's shared segment: memory that
// the ranks of the server read and write in place (in_place.h).
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "regatta/base/core/mutex.h"
#include "regatta/runtime/comm/shared_segment.h"

namespace regatta::comm {

class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  explicit BufferPool(SharedSegment shared_segment) : shared_segment_(std::move(shared_segment)) {}

  const SharedSegment& shared_segment() const { return shared_segment_; }

  // At least `bytes` of zeroed memory, aligned to a page; null when the space is used up. The last
  // copy of the pointer returns it, and its pages to the kernel; the shared segment lives until
  // then. Any thread.
  std::shared_ptr<std::byte> allocate(std::size_t bytes);

 private:
  void release(std::byte* data);

  SharedSegment shared_segment_;
  Mutex mutex_;
  std::map<std::size_t, std::size_t> used_ REGATTA_GUARDED_BY(mutex_);  // offset to bytes
};

}  // namespace regatta::comm
