// tests/standin/context_storage.h: values that the runtime library keeps with a context: one for
// each key, and a function to call before the context ends.
#pragma once

#include "regatta/gpu/device/abi/cuda_sharing.h"

namespace regatta::standin {

using AtContextEnd = void (*)(CUcontext, void* key, void* value);

// A null context is the current one. Not under the lock.
CUresult put_in_context(CUcontext context, void* key, void* value, AtContextEnd at_end);
CUresult remove_from_context(CUcontext context, void* key);
CUresult get_from_context(void** value, CUcontext context, void* key);
// Calls the functions of a context that ends, and forgets its values.
void end_context_storage(CUcontext context);

}  // namespace regatta::standin
