// Libraries: one image for all contexts, which the driver places into a context when something of
// it is first used there, by which call ever. So one with large variables, or one of many with
// small ones, is placed at once, into each context that is there and each that is made.
#include <map>
#include <optional>
#include <set>
#include <shared_mutex>

#include "regatta/base/core/mutex.h"
#include "regatta/gpu/sharing/internal/client/client.h"
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/module_loads.h"

namespace regatta::sharing::hook {
namespace {

struct PlacedLibrary {
  ModuleMemory memory;
  std::set<CUcontext> contexts;  // in which it lies
};
struct LibraryState {
  std::shared_mutex unloads;  // whole while one is unloaded, shared while some are placed
  Mutex mutex;
  std::map<CUlibrary, PlacedLibrary> libraries REGATTA_GUARDED_BY(mutex);
  std::uint64_t left_to_driver REGATTA_GUARDED_BY(mutex) = 0;  // bytes of variables
};
LibraryState& library_state() {
  static auto* const only = new LibraryState;
  return *only;
}

// A child of fork() may have inherited a lock that nobody gives back.
bool is_joined() {
  const Client* const client = tenant_client();
  return client == nullptr || client->is_joined_process();
}

// No library is unloaded by another thread while it lives. To place one may be to meet a context,
// and so to place all.
class PlacingLock {
 public:
  PlacingLock() : lock_(library_state().unloads, std::defer_lock) {
    if (depth()++ == 0 && is_joined()) lock_.lock();
  }
  PlacingLock(const PlacingLock&) = delete;
  PlacingLock& operator=(const PlacingLock&) = delete;
  ~PlacingLock() { --depth(); }

 private:
  static int& depth() {
    static thread_local int of_thread = 0;
    return of_thread;
  }
  std::shared_lock<std::shared_mutex> lock_;
};

// An unknown one is measured when it is placed. Those with small variables are left to the driver
// as far as half a block holds all of them, whether they are unloaded later or not.
bool is_placed_at_once(const ModuleMemory& memory) {
  constexpr std::uint64_t kLeftMost = kBlockBytes / 2;
  if (memory.variables >= kLeftMost || !memory.is_known) return true;
  const MutexLock lock(library_state().mutex);
  std::uint64_t& left = library_state().left_to_driver;
  if (memory.variables > kLeftMost - left) return true;
  left += memory.variables;
  return false;
}

// False: another thread places it there, or did.
bool begin_place(CUlibrary library, CUcontext context) {
  const MutexLock lock(library_state().mutex);
  const auto at = library_state().libraries.find(library);
  return at != library_state().libraries.end() && at->second.contexts.insert(context).second;
}

CUresult place_one(CUlibrary library, const ModuleMemory& memory, CUcontext context) {
  auto* const get_module = driver<DriverEntry::cuLibraryGetModule>();
  if (get_module == nullptr || !begin_place(library, context) ||
      driver<DriverEntry::cuCtxPushCurrent_v2>()(context) != CUDA_SUCCESS)
    return CUDA_SUCCESS;  // the context may have ended
  CUmodule module = nullptr;
  // Undone by those who ask, with the library or the context.
  const CUresult result = load_counted(
      memory, [&] { return get_module(&module, library); }, [] {});
  driver<DriverEntry::cuCtxPopCurrent_v2>()(nullptr);
  return result == CUDA_ERROR_OUT_OF_MEMORY ? result : CUDA_SUCCESS;
}

// In the current context, whether it is known or not, and in all others.
bool place_everywhere(CUlibrary library, const ModuleMemory& memory) {
  const PlacingLock lock;
  const auto place = current_device_context();
  if (place && place_one(library, memory, place->context) != CUDA_SUCCESS) return false;
  for (const DeviceContext& other : known_contexts()) {
    if (place && other.context == place->context) continue;
    if (place_one(library, memory, other.context) != CUDA_SUCCESS) return false;
  }
  return true;
}

// Forgotten before the driver has unloaded it: then another may get the same handle.
CUresult unload(DriverFunction<DriverEntry::cuLibraryUnload> real, CUlibrary library) {
  std::unique_lock unloading(library_state().unloads, std::defer_lock);
  if (is_joined()) unloading.lock();
  std::optional<PlacedLibrary> known;
  {
    const MutexLock lock(library_state().mutex);
    if (auto node = library_state().libraries.extract(library)) known = std::move(node.mapped());
  }
  const CUresult result = real(library);
  if (result != CUDA_SUCCESS && known) {
    const MutexLock lock(library_state().mutex);
    library_state().libraries[library] = std::move(*known);
  }
  return result;
}

CUresult load(const ModuleMemory& memory, CUlibrary* library,
              const std::function<CUresult()>& ask) {
  if (library == nullptr || !is_placed_at_once(memory)) return ask();
  const CUresult result = ask();
  if (result != CUDA_SUCCESS) return result;
  {
    const MutexLock lock(library_state().mutex);
    library_state().libraries[*library] = {memory, {}};
  }
  if (place_everywhere(*library, memory)) return result;
  unload(driver<DriverEntry::cuLibraryUnload>(), *library);
  settle_here();
  return CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace

bool place_libraries(const DeviceContext& place) {
  const PlacingLock placing;
  std::map<CUlibrary, PlacedLibrary> all;
  {
    const MutexLock reading(library_state().mutex);
    all = library_state().libraries;
  }
  for (const auto& [library, placed] : all)
    if (place_one(library, placed.memory, place.context) != CUDA_SUCCESS) return false;
  return true;
}

void forget_placed(CUcontext context) {
  const MutexLock lock(library_state().mutex);
  for (auto& [library, placed] : library_state().libraries)
    placed.contexts.erase(context);
}

CUresult load_library(DriverFunction<DriverEntry::cuLibraryLoadData> real, CUlibrary* library,
                      const void* image, int* jit_options, void** jit_values, unsigned jit_count,
                      int* options, void** values, unsigned count) {
  return load(memory_of_image_at(image), library, [&] {
    return real(library, image, jit_options, jit_values, jit_count, options, values, count);
  });
}

CUresult load_library(DriverFunction<DriverEntry::cuLibraryLoadFromFile> real, CUlibrary* library,
                      const char* path, int* jit_options, void** jit_values, unsigned jit_count,
                      int* options, void** values, unsigned count) {
  return load(memory_of_file(path), library, [&] {
    return real(library, path, jit_options, jit_values, jit_count, options, values, count);
  });
}

CUresult unload_library(DriverFunction<DriverEntry::cuLibraryUnload> real, CUlibrary library) {
  const CUresult result = unload(real, library);
  if (result == CUDA_SUCCESS) settle_here();
  return result;
}

}  // namespace regatta::sharing::hook
