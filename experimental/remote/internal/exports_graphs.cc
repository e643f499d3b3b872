// Graphs on the client: additional results of older functions.
#include "experimental/remote/internal/exports.h"

using namespace regatta::remote;  // NOLINT(google-build-using-namespace): nothing else is
                                  // here

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

// The log stays empty.
CUresult cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, CUgraphNode* error_node,
                            char* log, std::size_t log_bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes > 0) *log = '\0';
  return call<CallNumber::cuGraphInstantiateWithFlags>(executable, graph, 0ULL);
}

CUresult cuGraphInstantiate_v2(CUgraphExec* executable, CUgraph graph, CUgraphNode* error_node,
                               char* log, std::size_t log_bytes) {
  return cuGraphInstantiate(executable, graph, error_node, log, log_bytes);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
