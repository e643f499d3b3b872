// sharing/internal/client/cuda_stream_events.h: the gate's stream events as events of the CUDA
// driver. Events are reused; the gate's worker may make calls that a capture elsewhere in the
// process forbids to other threads (CU_STREAM_CAPTURE_MODE_RELAXED). Source: CUDA driver API,
// "Event Management", "Stream Management".
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "regatta/base/core/mutex.h"
#include "regatta/gpu/device/abi/cuda.h"
#include "regatta/gpu/sharing/internal/client/stream_events.h"

namespace regatta::sharing {

// The driver's own functions, not the hook's; those with `may` are null where the driver lacks
// them.
struct CudaEventCalls {
  CUresult (*context_get)(CUcontext*) = nullptr;
  CUresult (*context_push)(CUcontext) = nullptr;
  CUresult (*context_pop)(CUcontext*) = nullptr;
  CUresult (*event_create)(CUevent*, unsigned flags) = nullptr;
  CUresult (*event_destroy)(CUevent) = nullptr;
  CUresult (*event_record)(CUevent, CUstream) = nullptr;
  CUresult (*event_wait)(CUevent) = nullptr;
  CUresult (*event_query)(CUevent) = nullptr;
  CUresult (*event_elapsed)(float* milliseconds, CUevent begin, CUevent end) = nullptr;
  CUresult (*is_capturing)(CUstream, int* status) = nullptr;
  CUresult (*may_exchange_capture_mode)(int* mode) = nullptr;

  bool is_complete() const {
    return context_get != nullptr && context_push != nullptr && context_pop != nullptr &&
           event_create != nullptr && event_destroy != nullptr && event_record != nullptr &&
           event_wait != nullptr && event_query != nullptr && event_elapsed != nullptr &&
           is_capturing != nullptr;
  }
};

// Serves gates of any number of devices.
class CudaStreamEvents : public StreamEvents {
 public:
  explicit CudaStreamEvents(const CudaEventCalls& calls) : calls_(calls) {}

  // Streams are CUstream; the stream's context is the calling thread's.
  StreamEvents::Event record(void* stream) override;
  void begin_worker() override;
  void wait(StreamEvents::Event handle) override;
  bool is_reached(StreamEvents::Event handle) override;
  std::optional<std::uint64_t> between_ns(StreamEvents::Event begin,
                                          StreamEvents::Event end) override;
  void release(StreamEvents::Event handle) override;

  // Call before a context is destroyed: returns when no worker is in it, and none will enter.
  void leave(CUcontext context);

 private:
  struct CudaEvent;
  struct Context {
    CUcontext handle = nullptr;
    // Guarded by mutex_:
    std::vector<CudaEvent*> free;
    int workers = 0;  // in the context
    bool is_gone = false;
  };
  struct CudaEvent {
    CUevent event = nullptr;
    std::shared_ptr<Context> context;
    bool is_lost = false;  // it is unknown when the device reached it
  };
  bool is_capturing(void* stream) override;
  CudaEvent* acquire_event(CUcontext context);
  bool enter(Context& context);
  void exit(Context& context);
  // Runs `call` in the event's context; an error where the context is gone.
  template <typename Call>
  CUresult in_context_of(const CudaEvent& event, Call&& call);

  CudaEventCalls calls_;
  Mutex mutex_;
  ConditionVariable left_;
  std::map<CUcontext, std::shared_ptr<Context>> contexts_ REGATTA_GUARDED_BY(mutex_);
};

}  // namespace regatta::sharing
