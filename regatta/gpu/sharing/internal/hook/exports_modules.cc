// Modules. Their memory is reserved before they are loaded, as far as their images say what they
// take, and measured afterwards, as that of contexts is. While one is loaded whose image does not
// say it, no other is.
#include <algorithm>
#include <map>
#include <optional>
#include <shared_mutex>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "regatta/base/core/mutex.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/client/client.h"
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/module_loads.h"

namespace regatta::sharing::hook {
namespace {

struct LoadedModule {
  int device = 0;
  std::uint64_t expected = 0;  // what was counted for it
};
struct ModuleState {
  std::shared_mutex one_unknown;  // whole while a module is loaded that may take any amount
  Mutex mutex;
  std::map<CUmodule, LoadedModule> modules REGATTA_GUARDED_BY(mutex);  // or met
};
ModuleState& module_state() {
  static auto* const only = new ModuleState;
  return *only;
}

class LoadLock {
 public:
  explicit LoadLock(bool is_alone) : is_alone_(is_alone) {
    if (is_alone)
      module_state().one_unknown.lock();
    else
      module_state().one_unknown.lock_shared();
  }
  LoadLock(const LoadLock&) = delete;
  LoadLock& operator=(const LoadLock&) = delete;
  ~LoadLock() {
    if (is_alone_)
      module_state().one_unknown.unlock();
    else
      module_state().one_unknown.unlock_shared();
  }

 private:
  const bool is_alone_;
};

std::uint64_t most_of(const ModuleMemory& memory) {
  const std::uint64_t all =
      memory.variables + std::min(memory.code, ~memory.variables);  // 64 bits at most
  return whole_blocks(all);
}

// Room for the module; what earlier ones really took is measured before it is refused. A module
// without large variables may find room in blocks that the context has: then it is tried.
std::optional<DriverReportedUsage::Call> make_room(CUdevice device, const ModuleMemory& memory) {
  auto call = begin_uncounted(device, most_of(memory));
  if (call) return call;
  const bool is_within = settle_uncounted(device, {}).is_within;
  call = begin_uncounted(device, most_of(memory));
  if (!call && is_within && memory.variables < kBlockBytes) return DriverReportedUsage::Call{};
  return call;
}

CUresult load_alone_or_not(CUdevice device, const ModuleMemory& memory,
                           const std::function<CUresult()>& ask, const std::function<void()>& undo,
                           bool is_alone) {
  const LoadLock lock(is_alone);
  auto call = make_room(device, memory);
  if (!call) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = ask();
  call->has_failed = result != CUDA_SUCCESS;
  const bool is_sure = memory.is_known && !memory.is_compiled && call->expected != 0;
  if (result == CUDA_SUCCESS && is_sure && complete_uncounted(device, *call)) return result;
  if (settle_uncounted(device, *call).is_within || result != CUDA_SUCCESS) return result;
  undo();
  settle_uncounted(device, {.freed = call->expected});
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// The handle of a loaded module is known from now on.
CUresult note_module(CUresult result, const CUmodule* module, LoadedModule loaded) {
  if (result != CUDA_SUCCESS) return result;
  const MutexLock lock(module_state().mutex);
  module_state().modules[*module] = loaded;
  return result;
}

bool is_met(CUmodule module) {
  const MutexLock lock(module_state().mutex);
  return module_state().modules.contains(module);
}

CUresult load(const ModuleMemory& memory, CUmodule* module, const std::function<CUresult()>& ask) {
  if (module == nullptr) return ask();
  const auto place = current_device_context();
  const CUresult result =
      load_counted(memory, ask, [module] { driver<DriverEntry::cuModuleUnload>()(*module); });
  return place ? note_module(result, module, {place->device, most_of(memory)}) : result;
}

// A module in which the program looks something up may have been loaded past us: the runtime
// library has a table for that, too. Such a module is measured when it is met; if it is too much,
// nothing in it is to be had, so what the driver found is handed over only afterwards.
CUresult find_in(CUmodule module, CUresult result) {
  if (result != CUDA_SUCCESS) return result;
  const auto place = current_device_context();
  if (!place || !is_known(place->device)) return result;
  const bool is_new = !is_met(module);
  if (!is_new && !is_measurement_due(place->device)) return result;
  if (!settle_uncounted(place->device, {}).is_within) return CUDA_ERROR_OUT_OF_MEMORY;
  return is_new ? note_module(result, &module, {place->device, 0}) : result;
}

}  // namespace

ModuleMemory memory_of_image_at(const void* image) {
  if (image == nullptr) return {};  // the driver refuses it
  const auto bytes = image_at(image);
  return bytes ? memory_of_image(*bytes) : ModuleMemory{.is_known = false};
}

ModuleMemory memory_of_file(const char* path) {
  struct stat facts {};
  if (path == nullptr || ::stat(path, &facts) != 0) return {};  // the driver refuses it
  // To open a pipe is to take its contents from the driver.
  if (!S_ISREG(facts.st_mode)) return {.is_known = false};
  const os::UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  // Files of the kernel have contents and no size.
  if (file.get() < 0 || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
      facts.st_size <= 0)
    return {.is_known = false};
  const auto bytes = static_cast<std::size_t>(facts.st_size);
  void* const image = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (image == MAP_FAILED) return {.is_known = false};
  const ModuleMemory memory = memory_of_image({static_cast<const char*>(image), bytes});
  ::munmap(image, bytes);
  return memory;
}

CUresult load_counted(const ModuleMemory& memory, const std::function<CUresult()>& ask,
                      const std::function<void()>& undo) {
  const auto place = current_device_context();
  if (!place || !is_known(place->device)) return ask();
  // The driver does not serve a child of fork(), which may have inherited a lock that nobody gives
  // back.
  const Client* const client = tenant_client();
  if (client != nullptr && !client->is_joined_process()) return ask();
  if (!account_context(*place)) return CUDA_ERROR_OUT_OF_MEMORY;
  return load_alone_or_not(place->device, memory, ask, undo, !memory.is_known);
}

CUresult load_module(DriverFunction<DriverEntry::cuModuleLoad> real, CUmodule* module,
                     const char* path) {
  return load(memory_of_file(path), module, [&] { return real(module, path); });
}

CUresult load_module(DriverFunction<DriverEntry::cuModuleLoadData> real, CUmodule* module,
                     const void* image) {
  return load(memory_of_image_at(image), module, [&] { return real(module, image); });
}

CUresult load_module(DriverFunction<DriverEntry::cuModuleLoadDataEx> real, CUmodule* module,
                     const void* image, unsigned options, int* names, void** values) {
  return load(memory_of_image_at(image), module,
              [&] { return real(module, image, options, names, values); });
}

CUresult unload_module(DriverFunction<DriverEntry::cuModuleUnload> real, CUmodule module) {
  std::optional<LoadedModule> known;
  {
    // Taken out first: as soon as it is free, another thread may get the same handle.
    const MutexLock lock(module_state().mutex);
    if (const auto node = module_state().modules.extract(module)) known = node.mapped();
  }
  const CUresult result = real(module);
  if (result == CUDA_SUCCESS && !known)
    settle_here();
  else if (result == CUDA_SUCCESS && is_known(known->device))
    settle_uncounted(known->device, {.freed = known->expected});
  else if (known)
    note_module(CUDA_SUCCESS, &module, *known);
  return result;
}

CUresult find_kernel(DriverFunction<DriverEntry::cuModuleGetFunction> real, CUfunction* function,
                     CUmodule module, const char* name) {
  CUfunction found = nullptr;
  const CUresult result =
      find_in(module, real(function == nullptr ? nullptr : &found, module, name));
  if (result == CUDA_SUCCESS && function != nullptr) *function = found;
  return result;
}

CUresult find_variable(DriverFunction<DriverEntry::cuModuleGetGlobal_v2> real, CUdeviceptr* address,
                       std::size_t* bytes, CUmodule module, const char* name) {
  CUdeviceptr found = 0;
  std::size_t size = 0;
  const CUresult result = find_in(module, real(address == nullptr ? nullptr : &found,
                                               bytes == nullptr ? nullptr : &size, module, name));
  if (result == CUDA_SUCCESS && address != nullptr) *address = found;
  if (result == CUDA_SUCCESS && bytes != nullptr) *bytes = size;
  return result;
}

}  // namespace regatta::sharing::hook
