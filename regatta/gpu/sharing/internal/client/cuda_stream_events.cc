#include "regatta/gpu/sharing/internal/client/cuda_stream_events.h"

#include "regatta/base/core/mutex.h"
#include "regatta/gpu/device/abi/cuda_sharing.h"

namespace regatta::sharing {
namespace {

constexpr unsigned kBlockingSync = 1;  // CU_EVENT_BLOCKING_SYNC: wait without using a core
constexpr int kRelaxed = 2;            // CU_STREAM_CAPTURE_MODE_RELAXED

}  // namespace

CudaStreamEvents::CudaEvent* CudaStreamEvents::acquire_event(CUcontext handle) {
  std::shared_ptr<Context> context;
  {
    const MutexLock lock(mutex_);
    std::shared_ptr<Context>& known = contexts_[handle];
    if (known == nullptr) {
      known = std::make_shared<Context>();
      known->handle = handle;
    }
    context = known;
    if (!context->free.empty()) {
      CudaEvent* event = context->free.back();
      context->free.pop_back();
      return event;
    }
  }
  // Allowed in a thread that captures another stream.
  int mode = kRelaxed;
  const bool is_exchanged = calls_.may_exchange_capture_mode != nullptr &&
                            calls_.may_exchange_capture_mode(&mode) == CUDA_SUCCESS;
  CUevent made = nullptr;
  const CUresult result = calls_.event_create(&made, kBlockingSync);
  if (is_exchanged) calls_.may_exchange_capture_mode(&mode);
  return result == CUDA_SUCCESS ? new CudaEvent{made, std::move(context)} : nullptr;
}

StreamEvents::Event CudaStreamEvents::record(void* stream) {
  CUcontext context = nullptr;
  if (calls_.context_get(&context) != CUDA_SUCCESS || context == nullptr) return nullptr;
  CudaEvent* event = acquire_event(context);
  if (event == nullptr) return nullptr;
  if (calls_.event_record(event->event, static_cast<CUstream>(stream)) == CUDA_SUCCESS)
    return event;
  // The stream is of another context, or the event is of one that had this handle before.
  calls_.event_destroy(event->event);
  delete event;
  return nullptr;
}

bool CudaStreamEvents::is_capturing(void* stream) {
  int status = 0;
  // A stream that cannot be queried, such as the default one beside a capture, is left alone.
  return calls_.is_capturing(static_cast<CUstream>(stream), &status) != CUDA_SUCCESS || status != 0;
}

void CudaStreamEvents::begin_worker() {
  int mode = kRelaxed;
  if (calls_.may_exchange_capture_mode != nullptr) calls_.may_exchange_capture_mode(&mode);
}

bool CudaStreamEvents::enter(Context& context) {
  const MutexLock lock(mutex_);
  if (context.is_gone) return false;
  ++context.workers;
  return true;
}

void CudaStreamEvents::exit(Context& context) {
  const MutexLock lock(mutex_);
  --context.workers;
  if (context.is_gone) left_.notify_all();
}

void CudaStreamEvents::leave(CUcontext handle) {
  MutexLock lock(mutex_);
  const auto at = contexts_.find(handle);
  if (at == contexts_.end()) return;
  const std::shared_ptr<Context> context = at->second;
  contexts_.erase(at);
  context->is_gone = true;
  left_.wait(lock, [&] { return context->workers == 0; });
  for (const CudaEvent* event : context->free)
    delete event;
  context->free.clear();
}

template <typename Call>
CUresult CudaStreamEvents::in_context_of(const CudaEvent& event, Call&& call) {
  if (!enter(*event.context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  CUresult result = calls_.context_push(event.context->handle);
  if (result == CUDA_SUCCESS) {
    result = call();
    CUcontext popped = nullptr;
    calls_.context_pop(&popped);
  }
  exit(*event.context);
  return result;
}

void CudaStreamEvents::wait(StreamEvents::Event handle) {
  auto* event = static_cast<CudaEvent*>(handle);
  event->is_lost =
      in_context_of(*event, [&] { return calls_.event_wait(event->event); }) != CUDA_SUCCESS;
}

bool CudaStreamEvents::is_reached(StreamEvents::Event handle) {
  const auto* event = static_cast<CudaEvent*>(handle);
  return in_context_of(*event, [&] { return calls_.event_query(event->event); }) == CUDA_SUCCESS;
}

std::optional<std::uint64_t> CudaStreamEvents::between_ns(StreamEvents::Event begin,
                                                          StreamEvents::Event end) {
  const auto* from = static_cast<CudaEvent*>(begin);
  const auto* to = static_cast<CudaEvent*>(end);
  float milliseconds = 0;
  if (to->is_lost || from->context != to->context) return std::nullopt;
  const CUresult result = in_context_of(
      *to, [&] { return calls_.event_elapsed(&milliseconds, from->event, to->event); });
  if (result != CUDA_SUCCESS || !(milliseconds >= 0)) return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<double>(milliseconds) * 1e6);
}

void CudaStreamEvents::release(StreamEvents::Event handle) {
  auto* event = static_cast<CudaEvent*>(handle);
  const MutexLock lock(mutex_);
  if (event->is_lost || event->context->is_gone) {  // its context is gone or broken
    delete event;
  } else {
    event->context->free.push_back(event);
  }
}

}  // namespace regatta::sharing
