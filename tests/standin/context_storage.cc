#include "tests/standin/context_storage.h"

#include <map>
#include <utility>

#include "tests/standin/process.h"

namespace regatta::standin {
namespace {

struct Value {
  void* value = nullptr;
  AtContextEnd at_end = nullptr;
};
using Values = std::map<void*, Value>;

// Under the lock.
std::map<CUcontext, Values>& storage() {
  static auto* const all = new std::map<CUcontext, Values>;
  return *all;
}

CUresult find_context(CUcontext* context) {
  if (*context == nullptr) return current_context(context);
  return process().contexts.contains(*context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

CUresult put_in_context(CUcontext context, void* key, void* value, AtContextEnd at_end) {
  const std::lock_guard lock(process().mutex);
  if (const CUresult found = find_context(&context); found != CUDA_SUCCESS) return found;
  storage()[context][key] = {value, at_end};
  return CUDA_SUCCESS;
}

CUresult remove_from_context(CUcontext context, void* key) {
  const std::lock_guard lock(process().mutex);
  if (const CUresult found = find_context(&context); found != CUDA_SUCCESS) return found;
  return storage()[context].erase(key) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult get_from_context(void** value, CUcontext context, void* key) {
  const std::lock_guard lock(process().mutex);
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult found = find_context(&context); found != CUDA_SUCCESS) return found;
  const Values& values = storage()[context];
  const auto at = values.find(key);
  if (at == values.end()) return CUDA_ERROR_INVALID_HANDLE;
  *value = at->second.value;
  return CUDA_SUCCESS;
}

void end_context_storage(CUcontext context) {
  Values values;
  {
    const std::lock_guard lock(process().mutex);
    const auto at = storage().find(context);
    if (at == storage().end()) return;
    values = std::move(at->second);
    storage().erase(at);
  }
  for (const auto& [key, value] : values)
    if (value.at_end != nullptr) value.at_end(context, key, value.value);
}

}  // namespace regatta::standin
