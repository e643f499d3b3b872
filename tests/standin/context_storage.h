// tests/standin/context_storage.h: what the runtime library keeps with a context: a value for each
// key, and whom to call before the context ends.
#pragma once

#include "regatta/gpu/device/abi/cuda_sharing.h"

namespace regatta::standin {

using AtContextEnd = void (*)(CUcontext, void* key, void* value);

// A null context is the current one. Not under the lock.
CUresult put_in_context(CUcontext context, void* key, void* value, AtContextEnd at_end);
CUresult remove_from_context(CUcontext context, void* key);
CUresult get_from_context(void** value, CUcontext context, void* key);
// Calls all whom a context that ends has to call, and forgets its values.
void end_context_storage(CUcontext context);

}  // namespace regatta::standin
