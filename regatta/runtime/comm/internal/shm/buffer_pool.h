// comm/internal/shm/buffer_pool.h: hands out the buffers of a rank's shared segment: memory that
// the ranks of the server read and write in place (in_place.h).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "regatta/runtime/comm/shared_segment.h"

namespace regatta::comm {

class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  explicit BufferPool(SharedSegment shared_segment) : shared_segment_(std::move(shared_segment)) {}

  const SharedSegment& shared_segment() const { return shared_segment_; }

  // At least `bytes` of zeroed memory, aligned to a page; null when the space is used up. It goes
  // back, and its pages to the kernel, with the last copy of the pointer; the shared segment stays
  // till then.
  std::shared_ptr<std::byte> take(std::size_t bytes);

 private:
  void give_back(std::byte* data);

  SharedSegment shared_segment_;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> taken_;  // offset to bytes
};

}  // namespace regatta::comm
