// Captures: streams whose work becomes the nodes of a graph.
#include <algorithm>
#include <set>

#include "tests/standin/api.h"
#include "tests/standin/graph.h"
#include "tests/standin/process.h"

using namespace regatta::standin;

namespace {

// Every stream that joined has to be waited for by the one that the capture began in.
bool is_joined(const CUgraph_st& graph, const std::vector<CUgraphNode>& frontier) {
  std::set<CUgraphNode> leaves;
  for (const auto& node : graph.nodes)
    leaves.insert(node.get());
  for (const auto& node : graph.nodes)
    for (const CUgraphNode before : node->after)
      leaves.erase(before);
  return std::ranges::all_of(leaves, [&](CUgraphNode leaf) {
    return std::ranges::find(frontier, leaf) != frontier.end();
  });
}

// Under the lock.
CUresult find_idle_stream(CUstream handle, CUstream* stream) {
  if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
  // The default stream cannot be captured, nor a stream twice.
  if ((*stream)->kind == StreamKind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return (*stream)->capture == nullptr ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

void begin(CUstream_st& stream, CUgraph graph, int mode) {
  Process& all = process();
  graph->capture_id = ++all.last_id;
  graph->capture_mode = mode;
  graph->capture_thread = std::this_thread::get_id();
  graph->is_invalid = false;
  stream.capture = graph;
  stream.is_origin = true;
  ++all.captures;
}

// All streams and events leave the capture.
void end(CUgraph graph) {
  for (const CUstream stream : process().streams)
    if (stream->capture == graph) {
      stream->capture = nullptr;
      stream->is_origin = false;
      stream->frontier.clear();
    }
  for (const CUevent event : process().events)
    if (event->capture == graph) event->capture = nullptr;
  graph->capture_id = 0;
  --process().captures;
}

struct Info {
  int* status = nullptr;
  std::uint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** after = nullptr;
  const CUgraphEdgeData** edges = nullptr;
  std::size_t* count = nullptr;
};

CUresult capture_info(CUstream handle, const Info& wanted) {
  if (wanted.status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUstream stream = nullptr;
  if (const CUresult result = find_stream(handle, &stream); result != CUDA_SUCCESS) return result;
  if (const CUresult result = check_legacy(*stream); result != CUDA_SUCCESS) return result;
  const CUgraph graph = stream->capture;
  *wanted.status = graph == nullptr    ? CU_STREAM_CAPTURE_STATUS_NONE
                   : graph->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (*wanted.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  stream->edges.assign(stream->frontier.size(), {});
  if (wanted.id != nullptr) *wanted.id = graph->capture_id;
  if (wanted.graph != nullptr) *wanted.graph = graph;
  if (wanted.after != nullptr) *wanted.after = stream->frontier.data();
  if (wanted.edges != nullptr) *wanted.edges = stream->edges.data();
  if (wanted.count != nullptr) *wanted.count = stream->frontier.size();
  return CUDA_SUCCESS;
}

}  // namespace

namespace regatta::standin {

int& thread_capture_mode() {
  thread_local int mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

// A thread's own capture forbids what might wait unless it began relaxed; that of another thread
// does when both are global.
CUresult check_no_capture() {
  const int mode = thread_capture_mode();
  if (process().captures == 0 || mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  bool is_forbidden = false;
  for (const CUstream stream : process().streams) {
    if (!stream->is_origin) continue;
    CUgraph_st& graph = *stream->capture;
    const bool is_own = graph.capture_thread == std::this_thread::get_id() &&
                        graph.capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool is_everybodys = mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                               graph.capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!is_own && !is_everybodys) continue;
    graph.is_invalid = true;
    is_forbidden = true;
  }
  return is_forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult check_legacy(const CUstream_st& stream) {
  if (process().captures == 0 || stream.kind != StreamKind::kLegacy) return CUDA_SUCCESS;
  bool is_forbidden = false;
  for (const CUstream other : process().streams)
    if (other->capture != nullptr && other->context == stream.context &&
        other->kind == StreamKind::kBlocking) {
      other->capture->is_invalid = true;
      is_forbidden = true;
    }
  return is_forbidden ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuStreamBeginCapture_v2(CUstream handle, int mode) {
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUstream stream = nullptr;
  if (const CUresult result = find_idle_stream(handle, &stream); result != CUDA_SUCCESS)
    return result;
  CUgraph const graph = make_graph();
  graph->is_made_by_capture = true;
  stream->frontier.clear();
  begin(*stream, graph, mode);
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream handle) {
  return cuStreamBeginCapture_v2(handle, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode* after,
                                     const CUgraphEdgeData*, std::size_t count, int mode) {
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED ||
      (count > 0 && after == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUstream stream = nullptr;
  if (const CUresult result = find_idle_stream(handle, &stream); result != CUDA_SUCCESS)
    return result;
  if (!is_graph(graph) || graph->capture_id != 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i)
    if (!has_node(*graph, after[i])) return CUDA_ERROR_INVALID_VALUE;
  stream->frontier.assign(after, after + count);
  begin(*stream, graph, mode);
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUstream stream = nullptr;
  if (const CUresult result = find_stream(handle, &stream); result != CUDA_SUCCESS) return result;
  CUgraph const captured = stream->capture;
  if (captured == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (!stream->is_origin) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  const bool is_of_another = captured->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
                             captured->capture_thread != std::this_thread::get_id();
  const CUresult result = is_of_another          ? CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
                          : captured->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                          : is_joined(*captured, stream->frontier)
                              ? CUDA_SUCCESS
                              : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  end(captured);
  *graph = result == CUDA_SUCCESS ? captured : nullptr;
  if (result != CUDA_SUCCESS && captured->is_made_by_capture) drop_graph(captured);
  return result;
}

CUresult cuStreamIsCapturing(CUstream handle, int* status) {
  return capture_info(handle, {.status = status});
}

CUresult cuStreamGetCaptureInfo(CUstream handle, int* status, std::uint64_t* id) {
  return capture_info(handle, {.status = status, .id = id});
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, int* status, std::uint64_t* id, CUgraph* graph,
                                   const CUgraphNode** after, std::size_t* count) {
  return capture_info(handle,
                      {.status = status, .id = id, .graph = graph, .after = after, .count = count});
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, int* status, std::uint64_t* id, CUgraph* graph,
                                   const CUgraphNode** after, const CUgraphEdgeData** edges,
                                   std::size_t* count) {
  return capture_info(handle, {status, id, graph, after, edges, count});
}

CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode* after, std::size_t count,
                                           unsigned flags) {
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count > 0 && after == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUstream stream = nullptr;
  if (const CUresult result = find_stream(handle, &stream); result != CUDA_SUCCESS) return result;
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (stream->capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  for (std::size_t i = 0; i < count; ++i)
    if (!has_node(*stream->capture, after[i])) return CUDA_ERROR_INVALID_VALUE;
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->frontier.clear();
  stream->frontier.insert(stream->frontier.end(), after, after + count);
  return CUDA_SUCCESS;
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* after,
                                              const CUgraphEdgeData*, std::size_t count,
                                              unsigned flags) {
  return cuStreamUpdateCaptureDependencies(stream, after, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(int* mode) {
  if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
      *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, thread_capture_mode());
  return CUDA_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
