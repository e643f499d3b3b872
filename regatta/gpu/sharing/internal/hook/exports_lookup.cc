// How programs find functions of the driver: dlsym, and the driver's own search.
#include <cstring>

#include <dlfcn.h>
#include <link.h>

#include "regatta/gpu/sharing/internal/hook/exports.h"

using namespace regatta::sharing::hook;

namespace {

bool is_upper(char letter) {
  return letter >= 'A' && letter <= 'Z';
}
// "cuInit" but not "cudaMalloc" or "cublasCreate".
bool is_of_cuda(const char* name) {
  return name[0] == 'c' && name[1] == 'u' && is_upper(name[2]);
}
bool is_of_nvml(const char* name) {
  return std::strncmp(name, "nvml", 4) == 0 && is_upper(name[4]);
}
bool is_of_decoder(const char* name) {
  return std::strncmp(name, "cuvid", 5) == 0 && is_upper(name[5]);
}
bool is_of_encoder(const char* name) {
  return std::strncmp(name, "NvEncodeAPI", 11) == 0;
}
DriverLibrary library_of_name(const char* name) {
  if (is_of_nvml(name)) return DriverLibrary::kNvml;
  if (is_of_decoder(name)) return DriverLibrary::kDecoder;
  return is_of_encoder(name) ? DriverLibrary::kEncoder : DriverLibrary::kCuda;
}

// A search of all that is loaded finds our exports, as we stand in front of the driver: this is
// what it finds without us.
void* find_behind_us(void* handle, const char* name, void* caller) {
  void* const found = real_dlsym()(RTLD_NEXT, name);
  if (found != nullptr || handle != RTLD_DEFAULT) return found;
  // A library that was loaded apart from the rest also looks among those that came with it.
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(caller, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
      map == nullptr)
    return nullptr;
  // One that another brought has no list of its own to look in before it is opened itself.
  void* const library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* const beside = real_dlsym()(library, name);
  dlclose(library);
  return is_own(beside) ? nullptr : beside;
}

// Whether it stands for all that is loaded: dlopen(nullptr).
bool is_of_program(void* handle) {
  link_map* map = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] == '\0';
}

}  // namespace

extern "C" {

// Non-zero for a name that regatta_gpu_find has to answer. Everything else the C library answers to
// the caller itself, for which it looks at the address that it is to return to.
__attribute__((visibility("hidden"))) int regatta_gpu_watches(void* handle, const char* name) {
  if (name == nullptr) return 0;
  if (is_of_cuda(name) || is_of_nvml(name) || is_of_decoder(name) || is_of_encoder(name)) return 1;
  const bool is_any = handle == RTLD_DEFAULT || handle == RTLD_NEXT;
  return !is_any && std::strcmp(name, "dlsym") == 0 ? 1 : 0;
}

__attribute__((visibility("hidden"))) void* regatta_gpu_real_dlsym() {
  return reinterpret_cast<void*>(real_dlsym());
}

__attribute__((visibility("hidden"))) void* regatta_gpu_find(void* handle, const char* name,
                                                             void* caller) {
  const bool is_any = handle == RTLD_DEFAULT || handle == RTLD_NEXT;
  void* found = nullptr;
  if (!is_any) {
    found = real_dlsym()(handle, name);
    if (found == nullptr) return nullptr;
  }
  // Ours by an open handle is of the program, or of a library that stands for the driver.
  if (is_any || (is_own(found) && is_of_program(handle)))
    found = find_behind_us(is_any ? handle : RTLD_DEFAULT, name, caller);
  if (found == nullptr || (is_own(found) && !is_answered(found))) {
    real_dlsym()(RTLD_NEXT, "");  // leaves an error, as not finding it does
    return nullptr;
  }
  if (is_own(found)) return found;
  if (found == regatta_gpu_real_dlsym()) return reinterpret_cast<void*>(&dlsym);
  learn(library_of_name(name), found);
  dlerror();  // none: it was found
  return wrapped(found);
}

// dlsym: the arguments stay where they are for the function that is called.
#if defined(__x86_64__)
asm(R"(
  .text
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call regatta_gpu_watches
  testl %eax, %eax
  jne 1f
  call regatta_gpu_real_dlsym
  jmp 2f
1:
  leaq regatta_gpu_find(%rip), %rax
2:
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  movq (%rsp), %rdx
  jmpq *%rax
  .cfi_endproc
  .size dlsym, .-dlsym
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl dlsym
  .type dlsym, %function
dlsym:
  .cfi_startproc
  stp x29, x30, [sp, -32]!
  .cfi_adjust_cfa_offset 32
  .cfi_rel_offset x29, 0
  .cfi_rel_offset x30, 8
  stp x0, x1, [sp, 16]
  bl regatta_gpu_watches
  cbnz w0, 1f
  bl regatta_gpu_real_dlsym
  mov x16, x0
  b 2f
1:
  adrp x16, regatta_gpu_find
  add x16, x16, :lo12:regatta_gpu_find
2:
  ldp x0, x1, [sp, 16]
  ldp x29, x30, [sp], 32
  .cfi_adjust_cfa_offset -32
  .cfi_restore x29
  .cfi_restore x30
  mov x2, x30
  br x16
  .cfi_endproc
  .size dlsym, .-dlsym
)");
#else
#error "internal/hook/exports_lookup.cc: write dlsym for this processor"
#endif

}  // extern "C"

namespace regatta::sharing::hook {

CUresult find_function(DriverFunction<DriverEntry::cuGetProcAddress> real, const char* symbol,
                       void** function, int version, std::uint64_t flags) {
  const CUresult result = real(symbol, function, version, flags);
  if (result == CUDA_SUCCESS && function != nullptr) *function = wrapped(*function);
  return result;
}

CUresult find_function(DriverFunction<DriverEntry::cuGetProcAddress_v2> real, const char* symbol,
                       void** function, int version, std::uint64_t flags, int* status) {
  const CUresult result = real(symbol, function, version, flags, status);
  if (result == CUDA_SUCCESS && function != nullptr) *function = wrapped(*function);
  return result;
}

}  // namespace regatta::sharing::hook
