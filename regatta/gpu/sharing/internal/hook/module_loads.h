// sharing/internal/hook/module_loads.h: accounting shared by the files about modules and libraries.
#pragma once

#include <functional>

#include "regatta/gpu/sharing/internal/hook/contexts.h"
#include "regatta/gpu/sharing/internal/hook/module_image.h"

namespace regatta::sharing::hook {

// The memory that the image at this address, or in this file, asks for.
ModuleMemory memory_of_image_at(const void* image);
ModuleMemory memory_of_file(const char* path);

// Calls the driver by `ask` for a module of the current context, after its memory was reserved, and
// undoes it by `undo` where it took more than the tenant may have.
CUresult load_counted(const ModuleMemory& memory, const std::function<CUresult()>& ask,
                      const std::function<void()>& undo);

}  // namespace regatta::sharing::hook
