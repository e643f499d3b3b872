// Memory that graphs allocate: the driver takes it when a graph is first launched and keeps it for
// the next launches until it is trimmed. The nodes of an executable graph state its needs.
#include <array>
#include <atomic>
#include <map>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/mutex.h"
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/launch_gate.h"
#include "regatta/gpu/sharing/internal/hook/memory.h"
#include "regatta/gpu/sharing/internal/ledger/ledger.h"

namespace regatta::sharing::hook {

std::atomic<bool> has_graph_memory = false;

namespace {

using Needs = std::map<int, std::uint64_t>;  // bytes of each device

struct Executable {
  Needs needs;
  std::uint64_t trims = ~0ULL;  // how many there had been when it last took its memory
};

struct GraphState {
  std::array<DriverReportedUsage, REGATTA_DEVICES_MAX> memory;
  Mutex mutex;
  std::map<CUgraphExec, Executable> executables
      REGATTA_GUARDED_BY(mutex);  // those that need memory
  std::atomic<std::uint64_t> trims = 0;
};
GraphState& graph_state() {
  static auto* const only = new GraphState;
  return *only;
}

void add_need(std::uint64_t& sum, std::uint64_t bytes) {
  sum = saturated_sum(sum, whole_blocks(bytes));
}

void add_needs(CUgraph graph, Needs& needs) {
  auto* const get_nodes = driver<DriverEntry::cuGraphGetNodes>();
  auto* const get_type = driver<DriverEntry::cuGraphNodeGetType>();
  auto* const get_memory = driver<DriverEntry::cuGraphMemAllocNodeGetParams>();
  auto* const get_child = driver<DriverEntry::cuGraphChildGraphNodeGetGraph>();
  if (get_nodes == nullptr || get_type == nullptr || get_memory == nullptr) return;
  std::size_t count = 0;
  if (get_nodes(graph, nullptr, &count) != CUDA_SUCCESS || count == 0) return;
  std::vector<CUgraphNode> nodes(count);
  if (get_nodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return;
  for (CUgraphNode const node : nodes) {
    int type = -1;
    if (get_type(node, &type) != CUDA_SUCCESS) continue;
    CUDA_MEM_ALLOC_NODE_PARAMS memory{};
    CUgraph child = nullptr;
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && get_memory(node, &memory) == CUDA_SUCCESS)
      add_need(needs[memory.poolProps.location.id], memory.bytesize);
    if (type == CU_GRAPH_NODE_TYPE_GRAPH && get_child != nullptr &&
        get_child(node, &child) == CUDA_SUCCESS)
      add_needs(child, needs);
  }
}

CUresult note(CUresult result, const CUgraphExec* executable, CUgraph graph) {
  if (result != CUDA_SUCCESS) return result;
  Executable made;
  add_needs(graph, made.needs);
  std::erase_if(made.needs, [](const auto& need) {
    return need.first < 0 || need.first >= REGATTA_DEVICES_MAX;
  });
  if (made.needs.empty()) return result;
  const MutexLock lock(graph_state().mutex);
  graph_state().executables[*executable] = std::move(made);
  has_graph_memory = true;
  return result;
}

DriverReportedUsage::Outcome settle_graph(int device, const DriverReportedUsage::Call& call) {
  return graph_state().memory[as_index(device)].settle(
      device, call, [&]() -> std::optional<std::uint64_t> {
        std::uint64_t bytes = 0;
        if (driver<DriverEntry::cuDeviceGetGraphMemAttribute>()(
                device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes) != CUDA_SUCCESS)
          return std::nullopt;
        return bytes;
      });
}

using Calls = std::map<int, DriverReportedUsage::Call>;

bool begin(const Needs& needs, Calls& calls, AccountingGuard& busy) {
  for (const auto& [device, bytes] : needs) {
    // A reservation on one device counts while the call waits for another one.
    AccountingGuard* const pausing = calls.empty() ? &busy : nullptr;
    const auto call = graph_state().memory[as_index(device)].begin(device, bytes, pausing);
    if (!call) return false;
    calls[device] = *call;
  }
  return true;
}

void settle_all(Calls& calls, bool has_failed) {
  for (auto& [device, call] : calls) {
    call.has_failed = has_failed;
    settle_graph(device, call);
  }
  calls.clear();
}

// The memory that graphs have and do not use, back to the devices.
void trim(const Needs& needs) {
  for (const auto& [device, bytes] : needs) {
    driver<DriverEntry::cuDeviceGraphMemTrim>()(device);
    ++graph_state().trims;
    settle_graph(device, {});
  }
}

// `ask` gets the guard of its call, or null where it takes no memory.
template <typename RequestType>
CUresult request_graph_memory(CUgraphExec graph, RequestType&& ask) {
  Executable known;
  {
    const MutexLock lock(graph_state().mutex);
    const auto at = graph_state().executables.find(graph);
    if (at != graph_state().executables.end()) known = at->second;
  }
  const std::uint64_t trims = graph_state().trims;
  if (known.needs.empty()) return ask(nullptr);
  if (known.trims == trims) {
    const CUresult result = ask(nullptr);
    if (trims == graph_state().trims) return result;
    for (const auto& [device, bytes] : known.needs)
      settle_graph(device, {});  // another thread trimmed while this one waited
    return result;
  }
  AccountingGuard busy;
  Calls calls;
  if (!begin(known.needs, calls, busy)) {
    settle_all(calls, true);
    trim(known.needs);
    if (!begin(known.needs, calls, busy)) {
      settle_all(calls, true);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  const CUresult result = ask(&busy);
  settle_all(calls, result != CUDA_SUCCESS);
  return result;
}

}  // namespace

// The memory comes before the turn: who waits for memory in a turn keeps its own on the device, for
// which the others may wait.
CUresult launch_with_memory(DriverFunction<DriverEntry::cuGraphLaunch> real, CUgraphExec graph,
                            CUstream stream, CUstream gate_stream) {
  const std::uint64_t trims = graph_state().trims;
  const CUresult result = request_graph_memory(graph, [&](AccountingGuard* busy) {
    if (busy != nullptr) busy->pause();
    const CUresult launched = pass_gate(KernelDurations::key_of(graph, 0), gate_stream, [&] {
      if (busy != nullptr) busy->go_on();
      const CUresult outcome = real(graph, stream);
      if (busy != nullptr) busy->pause();
      return outcome;
    });
    if (busy != nullptr) busy->go_on();
    return launched;
  });
  if (result != CUDA_SUCCESS) return result;
  const MutexLock lock(graph_state().mutex);
  const auto at = graph_state().executables.find(graph);
  if (at != graph_state().executables.end()) at->second.trims = trims;
  return result;
}

CUresult upload(DriverFunction<DriverEntry::cuGraphUpload> real, CUgraphExec graph,
                CUstream stream) {
  return request_graph_memory(graph, [&](AccountingGuard*) { return real(graph, stream); });
}

CUresult instantiate(DriverFunction<DriverEntry::cuGraphInstantiate> real, CUgraphExec* executable,
                     CUgraph graph, CUgraphNode* error_node, char* log, std::size_t log_bytes) {
  return note(real(executable, graph, error_node, log, log_bytes), executable, graph);
}

CUresult instantiate(DriverFunction<DriverEntry::cuGraphInstantiateWithFlags> real,
                     CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  return note(real(executable, graph, flags), executable, graph);
}

CUresult instantiate(DriverFunction<DriverEntry::cuGraphInstantiateWithParams> real,
                     CUgraphExec* executable, CUgraph graph, void* parameters) {
  return note(real(executable, graph, parameters), executable, graph);
}

CUresult destroy_executable(DriverFunction<DriverEntry::cuGraphExecDestroy> real,
                            CUgraphExec executable) {
  {
    const MutexLock lock(graph_state().mutex);
    graph_state().executables.erase(executable);
  }
  forget_launches(KernelDurations::key_of(executable, 0));
  return real(executable);
}

CUresult trim_graphs(DriverFunction<DriverEntry::cuDeviceGraphMemTrim> real, CUdevice device) {
  const CUresult result = real(device);
  ++graph_state().trims;
  if (device >= 0 && device < REGATTA_DEVICES_MAX) settle_graph(device, {});
  return result;
}

}  // namespace regatta::sharing::hook
