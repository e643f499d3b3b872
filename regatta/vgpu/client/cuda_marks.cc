#include "regatta/vgpu/client/cuda_marks.h"

namespace regatta::vgpu {
namespace {

constexpr unsigned kBlockingSync = 1;  // CU_EVENT_BLOCKING_SYNC: wait without using a core
constexpr int kRelaxed = 2;            // CU_STREAM_CAPTURE_MODE_RELAXED

}  // namespace

CudaMarks::Event* CudaMarks::take(CUcontext context) {
  {
    const std::scoped_lock lock(mutex_);
    std::vector<Event*>& free = free_[context];
    if (!free.empty()) {
      Event* event = free.back();
      free.pop_back();
      return event;
    }
  }
  // Allowed to a thread whose own capture is under way in another stream.
  int mode = kRelaxed;
  const bool is_exchanged = calls_.may_exchange_capture_mode != nullptr &&
                            calls_.may_exchange_capture_mode(&mode) == CUDA_SUCCESS;
  CUevent made = nullptr;
  const CUresult result = calls_.event_create(&made, kBlockingSync);
  if (is_exchanged) calls_.may_exchange_capture_mode(&mode);
  return result == CUDA_SUCCESS ? new Event{made, context} : nullptr;
}

Marks::Mark CudaMarks::record(void* stream) {
  CUcontext context = nullptr;
  if (calls_.context_get(&context) != CUDA_SUCCESS || context == nullptr) return nullptr;
  Event* event = take(context);
  if (event == nullptr) return nullptr;
  if (calls_.event_record(event->event, static_cast<CUstream>(stream)) == CUDA_SUCCESS)
    return event;
  release(event);
  return nullptr;
}

bool CudaMarks::is_capturing(void* stream) {
  int status = 0;
  // A stream that cannot be asked, such as the default one beside a capture, is left alone.
  return calls_.is_capturing(static_cast<CUstream>(stream), &status) != CUDA_SUCCESS || status != 0;
}

void CudaMarks::begin_agent() {
  int mode = kRelaxed;
  if (calls_.may_exchange_capture_mode != nullptr) calls_.may_exchange_capture_mode(&mode);
}

void CudaMarks::wait(Mark mark) {
  auto* event = static_cast<Event*>(mark);
  if (calls_.context_push(event->context) != CUDA_SUCCESS) {
    event->is_lost = true;
    return;
  }
  if (calls_.event_wait(event->event) != CUDA_SUCCESS) event->is_lost = true;
  CUcontext popped = nullptr;
  calls_.context_pop(&popped);
}

std::optional<std::uint64_t> CudaMarks::between_ns(Mark begin, Mark end) {
  const auto* from = static_cast<Event*>(begin);
  const auto* to = static_cast<Event*>(end);
  float milliseconds = 0;
  if (to->is_lost || calls_.context_push(to->context) != CUDA_SUCCESS) return std::nullopt;
  const CUresult result = calls_.event_elapsed(&milliseconds, from->event, to->event);
  CUcontext popped = nullptr;
  calls_.context_pop(&popped);
  if (result != CUDA_SUCCESS || !(milliseconds >= 0)) return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<double>(milliseconds) * 1e6);
}

void CudaMarks::release(Mark mark) {
  auto* event = static_cast<Event*>(mark);
  if (event->is_lost) {  // with its context
    delete event;
    return;
  }
  const std::scoped_lock lock(mutex_);
  free_[event->context].push_back(event);
}

}  // namespace regatta::vgpu
