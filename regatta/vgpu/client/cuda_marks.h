// vgpu/client/cuda_marks.h: marks of the gate as events of the CUDA driver. Events are made once
// and used again; the gate's own thread may call what a capture elsewhere in the process forbids to
// others (CU_STREAM_CAPTURE_MODE_RELAXED).
// Source: CUDA driver API, "Event Management", "Stream Management".
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "regatta/gpu/abi/cuda.h"
#include "regatta/vgpu/client/marks.h"

namespace regatta::vgpu {

// The driver's own functions, not ours; those with `may` are null where the driver has none.
struct CudaCalls {
  CUresult (*context_get)(CUcontext*) = nullptr;
  CUresult (*context_push)(CUcontext) = nullptr;
  CUresult (*context_pop)(CUcontext*) = nullptr;
  CUresult (*event_create)(CUevent*, unsigned flags) = nullptr;
  CUresult (*event_record)(CUevent, CUstream) = nullptr;
  CUresult (*event_wait)(CUevent) = nullptr;
  CUresult (*event_elapsed)(float* milliseconds, CUevent begin, CUevent end) = nullptr;
  CUresult (*is_capturing)(CUstream, int* status) = nullptr;
  CUresult (*may_exchange_capture_mode)(int* mode) = nullptr;
};

class CudaMarks : public Marks {
 public:
  explicit CudaMarks(const CudaCalls& calls) : calls_(calls) {}

  // Streams are CUstream; the stream's context is the calling thread's.
  Mark record(void* stream) override;
  bool is_capturing(void* stream) override;
  void begin_agent() override;
  void wait(Mark mark) override;
  std::optional<std::uint64_t> between_ns(Mark begin, Mark end) override;
  void release(Mark mark) override;

 private:
  struct Event {
    CUevent event = nullptr;
    CUcontext context = nullptr;
    bool is_lost = false;  // its context is gone
  };
  Event* take(CUcontext context);

  CudaCalls calls_;
  std::mutex mutex_;
  std::map<CUcontext, std::vector<Event*>> free_;  // guarded by mutex_
};

}  // namespace regatta::vgpu
