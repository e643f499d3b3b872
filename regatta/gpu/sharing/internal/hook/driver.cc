#include "regatta/gpu/sharing/internal/hook/driver.h"

#include <dlfcn.h>
#include <link.h>

#include "regatta/gpu/sharing/internal/hook/exports.h"

// Where this library lies; the linker says it.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));
// NOLINTEND(bugprone-reserved-identifier)
}

namespace regatta::sharing::hook {
namespace {

struct Row {
  const char* name;
  void* wrapper;  // null: the hook uses it only
  DriverLibrary library;
};
const Row kRows[] = {
#define CUDA(symbol, ...) {#symbol, reinterpret_cast<void*>(&::symbol), DriverLibrary::kCuda},
#define CUDA_REFUSED(symbol, ...) CUDA(symbol, __VA_ARGS__)
#define CUDA_USED(symbol, ...) {#symbol, nullptr, DriverLibrary::kCuda},
#define NVML(symbol, ...) {#symbol, reinterpret_cast<void*>(&::symbol), DriverLibrary::kNvml},
#define NVML_USED(symbol, ...) {#symbol, nullptr, DriverLibrary::kNvml},
#define DECODER(symbol, ...) {#symbol, reinterpret_cast<void*>(&::symbol), DriverLibrary::kDecoder},
#define ENCODER(symbol, ...) {#symbol, reinterpret_cast<void*>(&::symbol), DriverLibrary::kEncoder},
#include "regatta/gpu/sharing/internal/hook/entries.inc"
#undef CUDA
#undef CUDA_REFUSED
#undef CUDA_USED
#undef NVML
#undef NVML_USED
#undef DECODER
#undef ENCODER
};
constexpr std::size_t kCount = static_cast<std::size_t>(DriverEntry::kCount);

// Identifies a library by its names and by functions that only it has.
struct Sign {
  const char* names[2];
  const char* functions[3];
};
constexpr Sign kSigns[] = {
    // The second name is the library's where one of ours has taken its own (replacement.c).
    {{"libcuda.so.1", "libregatta_cuda_real.so"},
     {"cuInit", "cuDriverGetVersion", "cuMemAlloc_v2"}},
    {{"libnvidia-ml.so.1", "libregatta_nvml_real.so"},
     {"nvmlInit_v2", "nvmlShutdown", "nvmlDeviceGetMemoryInfo"}},
    {{"libnvcuvid.so.1", "libnvcuvid.so"},
     {"cuvidCreateDecoder", "cuvidDestroyDecoder", "cuvidDecodePicture"}},
    {{"libnvidia-encode.so.1", "libnvidia-encode.so"},
     {"NvEncodeAPICreateInstance", "NvEncodeAPIGetMaxSupportedVersion",
      "NvEncodeAPICreateInstance"}},
};
const Sign& sign_of(DriverLibrary library) {
  return kSigns[static_cast<std::size_t>(library)];
}

std::atomic<bool> library_signs[std::size(kSigns)] = {};
std::atomic<bool>& known(DriverLibrary library) {
  return library_signs[static_cast<std::size_t>(library)];
}

// The handle of the library that `function` is in.
void* library_of(void* function) {
  Dl_info info{};
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return nullptr;
  return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

void* library_base(void* function) {
  Dl_info info{};
  return dladdr(function, &info) == 0 ? nullptr : info.dli_fbase;
}

// By dlvsym, which the hook does not replace; other libraries that replace dlsym do so without a
// version.
FindSymbol* versioned_dlsym(void* handle) {
  for (const char* const version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"})
    if (void* const found = dlvsym(handle, "dlsym", version); found != nullptr)
      return reinterpret_cast<FindSymbol*>(found);
  return nullptr;
}

// Whether the library is loaded or can be.
bool find(DriverLibrary library) {
  const Sign& sign = sign_of(library);
  if (learn(library, real_dlsym()(RTLD_NEXT, sign.functions[0]))) return true;
  for (const char* const name : sign.names) {
    void* const handle = dlopen(name, RTLD_LAZY);
    if (handle != nullptr && learn(library, real_dlsym()(handle, sign.functions[0]))) return true;
  }
  return false;
}

}  // namespace

std::atomic<void*> driver_functions[kCount];

bool is_own(const void* address) {
  return address >= static_cast<const void*>(__ehdr_start) &&
         address < static_cast<const void*>(_end);
}

// This finds it whatever other library replaces dlsym, and also where the C library comes before
// the hook. A library that replaces dlopen may ask for dlsym before it can answer: a sanitizer's
// runtime does, so dlopen is called only where nothing else finds it.
FindSymbol* real_dlsym() {
  static std::atomic<FindSymbol*> known_address = nullptr;
  FindSymbol* found = known_address.load(std::memory_order_relaxed);
  if (found != nullptr) return found;
  found = versioned_dlsym(RTLD_DEFAULT);
  if (library_base(reinterpret_cast<void*>(found)) !=
      library_base(reinterpret_cast<void*>(&dlvsym)))
    found = nullptr;
  for (const char* const library : {"libc.so.6", "libdl.so.2"}) {
    if (found != nullptr) break;  // a library that is not loaded would be looked for on disk
    void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr) found = versioned_dlsym(handle);
  }
  dlerror();
  known_address.store(found, std::memory_order_relaxed);
  return found;
}

bool learn(DriverLibrary library, void* function) {
  if (known(library).load(std::memory_order_acquire)) return true;
  if (function == nullptr || is_own(function)) return false;
  void* const handle = library_of(function);
  if (handle == nullptr) return false;
  for (const char* const name : sign_of(library).functions) {
    void* const found = real_dlsym()(handle, name);
    if (found == nullptr || is_own(found)) return false;
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    if (kRows[i].library != library) continue;
    void* const found = real_dlsym()(handle, kRows[i].name);
    if (found != nullptr && !is_own(found))
      driver_functions[i].store(found, std::memory_order_release);
  }
  dlerror();  // what was not found is no error of the caller's
  known(library).store(true, std::memory_order_release);
  return true;
}

void* find_driver_function(DriverEntry entry) {
  const auto i = static_cast<std::size_t>(entry);
  const DriverLibrary library = kRows[i].library;
  if (!known(library).load(std::memory_order_acquire) && !find(library)) return nullptr;
  return driver_functions[i].load(std::memory_order_acquire);
}

void* wrapped(void* function) {
  if (function == nullptr) return nullptr;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (kRows[i].wrapper != nullptr &&
        driver_functions[i].load(std::memory_order_relaxed) == function)
      return kRows[i].wrapper;
  }
  return function;
}

bool is_answered(void* wrapper) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (kRows[i].wrapper == wrapper)
      return find_driver_function(static_cast<DriverEntry>(i)) != nullptr;
  }
  return true;
}

}  // namespace regatta::sharing::hook
