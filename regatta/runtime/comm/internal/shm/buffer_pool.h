// comm/internal/shm/buffer_pool.h: hands out the buffers of a rank's shelf: memory that the ranks
// of the server read and write in place (in_place.h).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "regatta/runtime/comm/shelf.h"

namespace regatta::comm {

class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  explicit BufferPool(Shelf shelf) : shelf_(std::move(shelf)) {}

  const Shelf& shelf() const { return shelf_; }

  // At least `bytes` of zeroed memory, aligned to a page; null when the space is used up. It goes
  // back, and its pages to the kernel, with the last copy of the pointer; the shelf stays till
  // then.
  std::shared_ptr<std::byte> take(std::size_t bytes);

 private:
  void give_back(std::byte* data);

  Shelf shelf_;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> taken_;  // offset to bytes
};

}  // namespace regatta::comm
