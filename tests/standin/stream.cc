// Streams, events and host functions.
#include "tests/standin/api.h"
#include "tests/standin/graph.h"
#include "tests/standin/process.h"

using namespace regatta::standin;

namespace {

// Under the lock: the stream, when it may be waited for or asked: not while it is captured.
CUresult find_free_stream(CUstream handle, CUstream* stream) {
  if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if ((*stream)->capture == nullptr) return check_no_capture();
  (*stream)->capture->is_invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult create_stream(CUstream* stream, unsigned flags, int priority) {
  if (stream == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  const StreamKind kind =
      flags == CU_STREAM_NON_BLOCKING ? StreamKind::kNonBlocking : StreamKind::kBlocking;
  *stream = make_stream(context, kind, flags, clamp_priority(priority));
  return CUDA_SUCCESS;
}

// Under the lock: an event that a stream outside of captures recorded.
CUresult check_event(CUevent event) {
  if (!process().events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  return event->capture == nullptr ? check_no_capture() : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
  constexpr unsigned kDisableTiming = CU_EVENT_DISABLE_TIMING;
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  Packet marks[2];
  for (const int i : {0, 1}) {
    const CUevent event = i == 0 ? start : end;
    if (const CUresult result = check_event(event); result != CUDA_SUCCESS) return result;
    if (event->sequence == 0 || (event->flags & kDisableTiming) != 0)
      return CUDA_ERROR_INVALID_HANDLE;
    marks[i] = event->context->device->link.call(
        {.message = PacketType::kQueryMark, .ticket = event->mark});
  }
  if (marks[0].status != 1 || marks[1].status != 1) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(marks[1].time_ns - marks[0].time_ns) / 1e6F;
  return CUDA_SUCCESS;
}

// The stream joins the capture that the event is of.
CUresult join_capture(CUstream_st& stream, const CUevent_st& event) {
  if (stream.capture != nullptr && stream.capture != event.capture)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  stream.capture = event.capture;
  stream.frontier.insert(stream.frontier.end(), event.captured.begin(), event.captured.end());
  return CUDA_SUCCESS;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return create_stream(stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return create_stream(stream, flags, priority);
}

// Work that it was given still runs.
CUresult cuStreamDestroy_v2(CUstream stream) {
  const std::lock_guard lock(process().mutex);
  if (process().streams.erase(stream) == 0) return CUDA_ERROR_INVALID_HANDLE;
  stream->context->device->link.send({.message = PacketType::kCloseStream, .stream = stream->id});
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle) {
  std::unique_lock lock(process().mutex);
  CUstream stream = nullptr;
  const CUresult result = find_free_stream(handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  const std::uint64_t sequence = stream->submitted;
  lock.unlock();
  return wait_stream(*stream, sequence);
}

CUresult cuStreamQuery(CUstream handle) {
  const std::lock_guard lock(process().mutex);
  CUstream stream = nullptr;
  const CUresult result = find_free_stream(handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  const auto is_done = [](const CUstream_st& one) {
    return one.context->device->link
               .call({.message = PacketType::kQueryStream,
                      .stream = one.id,
                      .sequence = one.submitted})
               .status == 1;
  };
  // The legacy stream is done when those are that it would wait for.
  for (CUstream const other : process().streams)
    if (stream->kind == StreamKind::kLegacy && other->context == stream->context &&
        other->kind == StreamKind::kBlocking && !is_done(*other))
      return CUDA_ERROR_NOT_READY;
  return is_done(*stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags) {
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUstream stream = nullptr;
  if (const CUresult result = find_stream(handle, &stream); result != CUDA_SUCCESS) return result;
  if (!process().events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture != nullptr) return join_capture(*stream, *event);
  if (stream->capture != nullptr) {
    stream->capture->is_invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (event->sequence == 0) return CUDA_SUCCESS;  // never recorded: nothing to wait for
  submit(*stream, {.after = {event->stream_id, event->sequence}});
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUstream stream = nullptr;
  const CUresult result = find_stream(handle, &stream);
  if (result == CUDA_SUCCESS) *flags = stream->flags;
  return result;
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUstream stream = nullptr;
  const CUresult result = find_stream(handle, &stream);
  if (result == CUDA_SUCCESS) *priority = stream->priority;
  return result;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUstream stream = nullptr;
  const CUresult result = find_stream(handle, &stream);
  if (result == CUDA_SUCCESS) *context = stream->context;
  return result;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUstream stream = nullptr;
  const CUresult result = find_stream(handle, &stream);
  if (result == CUDA_SUCCESS) *id = stream->id;
  return result;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUstream stream = nullptr;
  const CUresult result = find_stream(handle, &stream);
  if (result == CUDA_SUCCESS) *device = stream->context->device->ordinal;
  return result;
}

// The old way; it cannot be captured.
CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data,
                             unsigned flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  {
    const std::lock_guard lock(process().mutex);
    CUstream stream = nullptr;
    if (const CUresult result = find_free_stream(handle, &stream); result != CUDA_SUCCESS)
      return result;
  }
  return enqueue(handle,
                 {.kind = OpKind::kCall, .action = [=] { callback(handle, CUDA_SUCCESS, data); }});
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(stream, {.kind = OpKind::kCall,
                          .action = [=] { function(data); },
                          .node_type = CU_GRAPH_NODE_TYPE_HOST});
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  if (event == nullptr || flags > 7) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  *event = new CUevent_st{.context = context, .flags = flags};
  process().events.insert(*event);
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  const std::lock_guard lock(process().mutex);
  if (process().events.erase(event) == 0) return CUDA_ERROR_INVALID_HANDLE;
  if (event->mark != 0)
    event->context->device->link.send({.message = PacketType::kForgetMark, .ticket = event->mark});
  delete event;
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream handle) {
  const std::lock_guard lock(process().mutex);
  CUstream stream = nullptr;
  if (const CUresult result = find_stream(handle, &stream); result != CUDA_SUCCESS) return result;
  if (!process().events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
  event->capture = stream->capture;
  if (stream->capture != nullptr) {
    event->captured = stream->frontier;
    return CUDA_SUCCESS;
  }
  if (const CUresult result = check_legacy(*stream); result != CUDA_SUCCESS) return result;
  DeviceConnection& link = stream->context->device->link;
  if (event->mark != 0) link.send({.message = PacketType::kForgetMark, .ticket = event->mark});
  event->mark = ++process().last_id;  // a new one: what was recorded before no longer counts
  event->stream = stream;
  event->stream_id = stream->id;
  event->sequence = submit(*stream, {.mark = event->mark});
  return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return flags > 1 ? CUDA_ERROR_INVALID_VALUE : cuEventRecord(event, stream);
}

CUresult cuEventQuery(CUevent event) {
  const std::lock_guard lock(process().mutex);
  if (const CUresult result = check_event(event); result != CUDA_SUCCESS) return result;
  if (event->sequence == 0) return CUDA_SUCCESS;
  const Packet reply = event->context->device->link.call({.message = PacketType::kQueryStream,
                                                          .stream = event->stream_id,
                                                          .sequence = event->sequence});
  return reply.status == 1 ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event) {
  std::unique_lock lock(process().mutex);
  if (const CUresult result = check_event(event); result != CUDA_SUCCESS) return result;
  if (event->sequence == 0) return CUDA_SUCCESS;
  CUstream_st* const stream = event->stream;
  const std::uint64_t sequence = event->sequence;
  lock.unlock();
  return wait_stream(*stream, sequence);
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(milliseconds, start, end);
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(milliseconds, start, end);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
