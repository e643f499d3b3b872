#include "tests/standin/process.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include <sys/mman.h>

#include "tests/standin/array.h"
#include "tests/standin/graph.h"
#include "tests/standin/module.h"
#include "tests/standin/share.h"

namespace regatta::standin {
namespace {

// Room for the device, not for more: what a launch beyond it does is wait.
constexpr std::uint64_t kQueueHalf = 512;

thread_local std::map<std::uint64_t, CUstream> own_streams;  // by context

std::uint64_t ticket_of(DeviceState& device, Work& work) {
  if (work.kind == OpKind::kMark) return work.mark;
  // Also for nothing: the device waits for the answer to this one.
  return work.kind == OpKind::kKernel ? 0 : device.link.add_action(std::move(work.action));
}

CUstream own_stream(CUcontext context) {
  CUstream& stream = own_streams[context->id];
  if (stream == nullptr || !process().streams.contains(stream))
    stream = make_stream(context, StreamKind::kBlocking, 0, 0);
  return stream;
}

// The mapped region that an address lies in, or end.
std::map<CUdeviceptr, Region>::iterator region_at(CUdeviceptr address) {
  auto& regions = process().regions;
  auto at = regions.upper_bound(address);
  if (at == regions.begin()) return regions.end();
  --at;
  return address - at->first < at->second.bytes ? at : regions.end();
}

CUresult error_of(const CUctx_st& context) {
  return context.device->link.is_lost() ? CUDA_ERROR_UNKNOWN : context.error;
}

std::byte* content_of(CUdeviceptr address, const Region& region, std::uint64_t begin) {
  if (region.opened) return region.opened->content + begin;
  switch (region.kind) {
    case RegionKind::kHost:
    case RegionKind::kRegistered:
    case RegionKind::kManaged:
      return reinterpret_cast<std::byte*>(address);
    default:
      return region.device->arena.content(region.offset + begin);
  }
}

}  // namespace

Process& process() {
  static Process* const only = new Process;  // threads use it until the very end
  return *only;
}

std::vector<CUcontext>& context_stack() {
  thread_local std::vector<CUcontext> stack;
  return stack;
}

bool& per_thread_default() {
  thread_local bool is_on = false;
  return is_on;
}

CUresult current_context(CUcontext* context) {
  Process& all = process();
  if (!all.is_started || all.is_forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (context_stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = context_stack().back();
  return all.contexts.contains(*context) ? error_of(**context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult find_stream(CUstream handle, CUstream* stream) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number > 2) {
    *stream = handle;
    return process().streams.contains(handle) ? error_of(*handle->context)
                                              : CUDA_ERROR_INVALID_HANDLE;
  }
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  const bool own = number == 2 || (number == 0 && per_thread_default());
  *stream = own ? own_stream(context) : context->legacy;
  return CUDA_SUCCESS;
}

std::uint64_t submit(CUstream_st& stream, Work work) {
  DeviceState& device = *stream.context->device;
  device.link.send({.message = PacketType::kSubmit,
                    .stream = stream.id,
                    .bytes = work.bytes,
                    .time_ns = work.duration.count(),
                    .ticket = ticket_of(device, work),
                    .after_stream = work.after.stream,
                    .after_sequence = work.after.sequence,
                    .width = work.width,
                    .op = work.kind,
                    .engine = work.engine});
  ++stream.submitted;
  if (work.fails != CUDA_SUCCESS) {
    const auto fail = [context = stream.context, code = work.fails] {
      const std::lock_guard lock(process().mutex);
      if (context->error == CUDA_SUCCESS) context->error = code;
    };
    submit(stream, {.kind = OpKind::kCall, .action = fail});
  }
  return stream.submitted;
}

CUresult enqueue(CUstream handle, Work work) {
  std::unique_lock lock(process().mutex);
  CUstream stream = nullptr;
  if (const CUresult result = find_stream(handle, &stream); result != CUDA_SUCCESS) return result;
  if (stream->capture != nullptr) {
    NodeBody body{.type = work.node_type, .kernel = work.kernel};
    body.work = std::move(work);
    return capture_body(*stream, std::move(body));
  }
  if (const CUresult result = check_legacy(*stream); result != CUDA_SUCCESS) return result;
  const std::uint64_t sequence = submit(*stream, std::move(work));
  lock.unlock();
  return sequence % kQueueHalf == 0 ? wait_stream(*stream, sequence - kQueueHalf) : CUDA_SUCCESS;
}

CUresult wait_stream(CUstream_st& stream, std::uint64_t sequence) {
  DeviceState& device = *stream.context->device;
  const Packet reply = device.link.call(
      {.message = PacketType::kWaitStream, .stream = stream.id, .sequence = sequence});
  if (reply.status != 1) return CUDA_ERROR_UNKNOWN;
  const std::lock_guard lock(process().mutex);
  stream.known_done = std::max(stream.known_done, sequence);
  trim_pools(device);
  return stream.context->error;
}

CUresult wait_context(CUcontext context) {
  std::map<CUstream, std::uint64_t> submitted;
  {
    const std::lock_guard lock(process().mutex);
    for (const CUstream stream : process().streams)
      if (stream->context == context) submitted[stream] = stream->submitted;
  }
  const Packet reply =
      context->device->link.call({.message = PacketType::kWaitContext, .context = context->id});
  if (reply.status != 1) return CUDA_ERROR_UNKNOWN;
  const std::lock_guard lock(process().mutex);
  for (const auto& [stream, sequence] : submitted)
    if (process().streams.contains(stream))
      stream->known_done = std::max(stream->known_done, sequence);
  trim_pools(*context->device);
  return context->error;
}

CUstream make_stream(CUcontext context, StreamKind kind, unsigned flags, int priority) {
  auto* const stream = new CUstream_st{.context = context,
                                       .id = ++process().last_id,
                                       .kind = kind,
                                       .flags = flags,
                                       .priority = priority};
  process().streams.insert(stream);
  process().all_streams.push_back(stream);
  context->device->link.send({.message = PacketType::kOpenStream,
                              .context = context->id,
                              .stream = stream->id,
                              .time_ns = priority,
                              .stream_kind = kind});
  return stream;
}

CUresult make_context(DeviceState& device, unsigned flags, CUcontext* context) {
  const std::uint64_t id = ++process().last_id;
  if (device.link.call({.message = PacketType::kOpenContext, .context = id}).status != 1)
    return device.link.is_lost() ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_OUT_OF_MEMORY;
  *context = new CUctx_st{.device = &device, .id = id, .flags = flags};
  process().contexts.insert(*context);
  process().all_contexts.push_back(*context);
  (*context)->legacy = make_stream(*context, StreamKind::kLegacy, 0, 0);
  return CUDA_SUCCESS;
}

void destroy_context(CUcontext context) {
  Process& all = process();
  drop_modules(context);
  drop_arrays(context);
  for (auto at = all.regions.begin(); at != all.regions.end();) {
    const auto region = at++;
    if (region->second.context == context) free_region(region);
  }
  std::erase_if(all.streams, [&](CUstream stream) { return stream->context == context; });
  std::erase_if(all.events, [&](CUevent event) {
    if (event->context != context) return false;
    delete event;
    return true;
  });
  all.contexts.erase(context);
  context->device->link.send({.message = PacketType::kCloseContext, .context = context->id});
  context->device->link.call({.message = PacketType::kMemory});  // its memory is free for everybody
}

bool for_each_part(CUdeviceptr address, std::uint64_t bytes,
                   const std::function<void(std::byte*, std::uint64_t)>& each) {
  while (bytes > 0) {
    const auto at = region_at(address);
    if (at == process().regions.end() || at->second.kind == RegionKind::kReserved ||
        !at->second.is_accessible)
      return false;
    const Region& region = at->second;
    const std::uint64_t begin = address - at->first;
    const std::uint64_t part = std::min(bytes, region.bytes - begin);
    if (part < bytes && region.kind != RegionKind::kMapped) return false;
    each(content_of(address, region, begin), part);
    address += part;
    bytes -= part;
  }
  return true;
}

std::map<CUdeviceptr, Region>::iterator region_of(CUdeviceptr address) {
  const auto at = region_at(address);
  const bool is_named = at != process().regions.end() && at->second.kind != RegionKind::kArray;
  return is_named ? at : process().regions.end();
}

// Memory of graphs has its bytes only when a launch takes them.
bool is_device_range(CUdeviceptr address, std::uint64_t bytes) {
  const auto at = region_at(address);
  if (at != process().regions.end() && at->second.kind == RegionKind::kGraph)
    return address + bytes <= at->first + at->second.bytes;
  return for_each_part(address, bytes, [](std::byte*, std::uint64_t) {});
}

void copy_bytes(CUdeviceptr to, CUdeviceptr from, std::uint64_t bytes) {
  using Parts = std::vector<std::pair<std::byte*, std::uint64_t>>;
  const auto parts_of = [&](CUdeviceptr address) {
    Parts parts;
    const bool is_known = for_each_part(address, bytes, [&](std::byte* part, std::uint64_t size) {
      parts.emplace_back(part, size);
    });
    if (!is_known) parts = {{reinterpret_cast<std::byte*>(address), bytes}};
    return parts;
  };
  std::unique_lock lock(process().mutex);
  Parts targets = parts_of(to);
  Parts sources = parts_of(from);
  lock.unlock();
  for (std::size_t t = 0, s = 0; t < targets.size() && s < sources.size();) {
    const std::uint64_t part = std::min(targets[t].second, sources[s].second);
    std::memmove(targets[t].first, sources[s].first, part);
    for (auto* const piece : {&targets[t], &sources[s]}) {
      piece->first += part;
      piece->second -= part;
    }
    if (targets[t].second == 0) ++t;
    if (sources[s].second == 0) ++s;
  }
}

}  // namespace regatta::standin
