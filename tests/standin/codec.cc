#include "tests/standin/codec.h"

#include <map>

#include "tests/standin/process.h"

namespace regatta::standin {
namespace {

struct Session {
  CUstream stream = nullptr;
  bool is_encoder = false;
};

std::map<std::uint64_t, Session>& sessions() {
  static auto* const all = new std::map<std::uint64_t, Session>;
  return *all;
}

CUresult open(CUcontext context, int is_encoder, std::uint64_t* session) {
  const std::lock_guard lock(process().mutex);
  if (context == nullptr) {
    if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  } else if (!process().contexts.contains(context)) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *session = ++process().last_id;
  sessions()[*session] = {make_stream(context, StreamKind::kNonBlocking, 0, 0), is_encoder != 0};
  context->device->link.send({.message = PacketType::kOpenSession,
                              .ticket = *session,
                              .engine = is_encoder != 0 ? Engine::kEncode : Engine::kDecode});
  return CUDA_SUCCESS;
}

CUresult close(std::uint64_t session) {
  const std::lock_guard lock(process().mutex);
  const auto at = sessions().find(session);
  if (at == sessions().end()) return CUDA_ERROR_INVALID_HANDLE;
  CUstream const stream = at->second.stream;
  DeviceConnection& link = stream->context->device->link;
  sessions().erase(at);
  link.send({.message = PacketType::kCloseSession, .ticket = session});
  if (process().streams.erase(stream) != 0)
    link.send({.message = PacketType::kCloseStream, .stream = stream->id});
  return CUDA_SUCCESS;
}

CUresult run(std::uint64_t session, std::uint64_t pixels) {
  std::unique_lock lock(process().mutex);
  const auto at = sessions().find(session);
  if (at == sessions().end() || !process().streams.contains(at->second.stream))
    return CUDA_ERROR_INVALID_HANDLE;
  CUstream_st& stream = *at->second.stream;
  const std::uint64_t sequence = submit(
      stream, {.kind = OpKind::kCopy,
               .duration = Time(static_cast<Time::rep>(pixels * 1000 / kPixelsPerMicrosecond + 1)),
               .engine = at->second.is_encoder ? Engine::kEncode : Engine::kDecode});
  lock.unlock();
  return wait_stream(stream, sequence);
}

}  // namespace

const CodecTable* codec_table() {
  static const CodecTable table{sizeof table, open, close, run};
  return &table;
}

}  // namespace regatta::standin
