// Makes a function for programs out of each row of calls.inc, and finds them by name.
#include "experimental/remote/internal/exports.h"

#include <string_view>

using namespace regatta::remote;  // NOLINT(google-build-using-namespace): nothing else is
                                  // here

namespace {

struct Entry {
  std::string_view base;
  void* function;
  int since;
  bool is_twin;
};
const Entry kEntries[] = {
#define ENTRY(base, symbol, since, is_twin) \
  {#base, reinterpret_cast<void*>(&symbol), since, is_twin},
#define CALL(base, symbol, since, ...) ENTRY(base, symbol, since, false)
#define TWIN(base, symbol, since, ...) ENTRY(base, symbol, since, true)
#define HAND CALL
#define LOCAL CALL
#define LOCAL_TWIN TWIN
#define REFUSED(base, symbol, since) ENTRY(base, symbol, since, false)
#define REFUSED_TWIN(base, symbol, since) ENTRY(base, symbol, since, true)
#include "experimental/remote/internal/calls.inc"
};

// The newest variant for the version; among those, the one of the thread's own stream when
// requested.
const Entry* find_entry(std::string_view base, int version, bool own_stream, bool& is_known) {
  const Entry* best = nullptr;
  for (const Entry& entry : kEntries) {
    if (entry.base != base || (entry.is_twin && !own_stream)) continue;
    is_known = true;
    if (entry.since > version) continue;
    if (best == nullptr || entry.is_twin > best->is_twin ||
        (entry.is_twin == best->is_twin && entry.since > best->since))
      best = &entry;
  }
  return best;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

// A function made by a template has no driver's name: the linker resolves its address once, before
// sanitizers are ready.
#define WITHOUT_SANITIZERS \
  __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))
#define CALL(base, symbol, ...)                                                   \
  WITHOUT_SANITIZERS decltype(&symbol) resolve_##symbol() {                       \
    return &Caller<CallNumber::symbol, Row<CallNumber::symbol>::Arguments>::call; \
  }                                                                               \
  decltype(symbol) symbol __attribute__((ifunc("resolve_" #symbol)));
#define TWIN CALL
#define REFUSED(base, symbol, since) \
  CUresult symbol() {                \
    return kNotSupported;            \
  }
#define REFUSED_TWIN REFUSED
#include "experimental/remote/internal/calls.inc"

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, std::uint64_t flags,
                             int* status) {
  static std::atomic<int> servers = 0;
  int newest = servers;
  if (newest == 0) {
    if (const CUresult asked = cuDriverGetVersion(&newest); asked != CUDA_SUCCESS) return asked;
    servers = newest;
  }
  if (symbol == nullptr || function == nullptr || version > newest ||
      flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
    return CUDA_ERROR_INVALID_VALUE;
  bool is_known = false;
  const Entry* const found =
      find_entry(symbol, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, is_known);
  *function = found == nullptr ? nullptr : found->function;
  if (status != nullptr)
    *status = found != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : is_known       ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                               : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, std::uint64_t flags) {
  const CUresult result = cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
  if (result != CUDA_SUCCESS) return result;
  return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

// Private tables contain functions of the server's process.
CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
