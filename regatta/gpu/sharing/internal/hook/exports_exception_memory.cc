// Memory for exceptions, in place of the C++ library's, which takes 72 KB from the host program's
// allocator when it is loaded. Ours takes nothing before something is thrown.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace {

// Before the exception there is a header; that is its size in the C++ ABI of 64-bit processors.
constexpr std::size_t kHeaderBytes = 128;

// For when there is no memory at all, which is what is then thrown.
struct alignas(16) Slot {
  std::atomic<bool> is_used = false;
  alignas(16) char bytes[kHeaderBytes + 256];
};
Slot slots[8];

void* allocate_slot(std::size_t bytes) {
  for (Slot& slot : slots)
    if (bytes <= sizeof slot.bytes && !slot.is_used.exchange(true)) return slot.bytes;
  return nullptr;
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the ABI's names
extern "C" {

void* __cxa_allocate_exception(std::size_t bytes) noexcept {
  const std::size_t all = bytes + kHeaderBytes;
  void* memory = std::malloc(all);
  if (memory == nullptr) memory = allocate_slot(all);
  if (memory == nullptr) std::terminate();
  std::memset(memory, 0, kHeaderBytes);
  return static_cast<char*>(memory) + kHeaderBytes;
}

void __cxa_free_exception(void* exception) noexcept {
  void* const memory = static_cast<char*>(exception) - kHeaderBytes;
  for (Slot& slot : slots) {
    if (memory != slot.bytes) continue;
    slot.is_used = false;
    return;
  }
  std::free(memory);
}

void* __cxa_allocate_dependent_exception() noexcept {
  return static_cast<char*>(__cxa_allocate_exception(kHeaderBytes)) - kHeaderBytes;
}

void __cxa_free_dependent_exception(void* exception) noexcept {
  __cxa_free_exception(static_cast<char*>(exception) + kHeaderBytes);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
