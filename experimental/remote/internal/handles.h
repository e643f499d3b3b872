// experimental/remote/internal/handles.h: the handles that the driver gave a remote program. They
// are pointers into the host process, so a handle that was never given is refused before the driver
// follows it. The driver refuses a destroyed one.
#pragma once

#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <type_traits>
#include <unordered_set>

#include "regatta/gpu/device/abi/cuda_sharing.h"

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {
using CUlibrary = struct CUlib_st*;
using CUkernel = struct CUkern_st*;
}
// NOLINTEND(readability-identifier-naming)

namespace regatta::remote {

class Handles {
 public:
  template <typename T>
  void add(T handle) {
    if (handle == T{}) return;
    const std::unique_lock lock(mutex_);
    known_.insert(entry<T>(handle));
  }
  // Null handles and the streams 1 and 2 have meanings of their own; a kernel stands for a
  // function.
  template <typename T>
  CUresult check(T handle) const {
    if (handle == T{}) return CUDA_SUCCESS;
    const auto number = (std::uint64_t)(handle);  // NOLINT: of a pointer or a number
    if (std::is_same_v<T, CUstream> && number <= 2) return CUDA_SUCCESS;
    const std::shared_lock lock(mutex_);
    if (known_.contains(entry<T>(handle))) return CUDA_SUCCESS;
    if (std::is_same_v<T, CUfunction> && known_.contains({kind<CUkernel>(), number}))
      return CUDA_SUCCESS;
    return std::is_same_v<T, CUcontext> ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
  }
  bool is_kernel(std::uint64_t number) const {
    const std::shared_lock lock(mutex_);
    return known_.contains({kind<CUkernel>(), number});
  }

 private:
  struct Entry {
    const void* kind;
    std::uint64_t number;
    bool operator==(const Entry&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Entry& entry) const {
      return std::hash<std::uint64_t>()(entry.number * 31 +
                                        reinterpret_cast<std::uintptr_t>(entry.kind));
    }
  };
  template <typename T>
  static const void* kind() {
    static const char here = 0;
    return &here;
  }
  template <typename T>
  static Entry entry(T handle) {
    return {kind<T>(), (std::uint64_t)(handle)};  // NOLINT: of a pointer or a number
  }

  mutable std::shared_mutex mutex_;
  std::unordered_set<Entry, Hash> known_;  // guarded by mutex_
};

}  // namespace regatta::remote
