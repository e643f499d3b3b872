// vgpu/client/marks.h: what the gate needs of a device: points in a stream that can be waited for
// and between which time is measured.
#pragma once

#include <cstdint>
#include <optional>

namespace regatta::vgpu {

class Marks {
 public:
  using Mark = void*;

  Marks() = default;
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;
  virtual ~Marks() = default;

  // By the launching thread: a mark after what the stream was given, null when there can be none.
  // Never of a stream that is being captured.
  virtual Mark record(void* stream) = 0;
  virtual bool is_capturing(void* stream) = 0;

  // By the gate's own thread, which calls begin_agent() first. Waits until the device has come to
  // the mark, or until it is known that it never will.
  virtual void begin_agent() {}
  virtual void wait(Mark mark) = 0;
  // Both were waited for.
  virtual std::optional<std::uint64_t> between_ns(Mark begin, Mark end) = 0;
  virtual void release(Mark mark) = 0;
};

}  // namespace regatta::vgpu
