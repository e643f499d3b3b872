// experimental/remote/internal/frames.h: the messages between a program and its host process on the
// server: docs/formats/gpu_remote.md.
#pragma once

#include <cstdint>

#include "regatta/gpu/device/abi/cuda_sharing.h"

namespace regatta::remote {

// Precedes each message to the server; `bytes` follow.
struct Frame {
  std::uint32_t bytes = 0;
  std::uint16_t number = 0;  // CallNumber of table.h, or ControlMessage
  std::uint16_t wants_answer = 0;
};
static_assert(sizeof(Frame) == 8);

// Precedes each answer; `bytes` follow.
struct CallReplyHeader {
  std::uint32_t bytes = 0;
  CUresult status = CUDA_SUCCESS;
};
static_assert(sizeof(CallReplyHeader) == 8);

enum class ControlMessage : std::uint16_t {
  kFence = 0xff00,  // Fence
  kLayout,          // handle of a function: its parameters as KernelParameter
  kCopyIn,          // CopyIn and the bytes
  kCopyOut,         // CopyOut; one answer for each piece until all are sent or one fails
};

// Waits until connection `connection` of this process has run `count` messages.
struct Fence {
  std::uint64_t connection = 0;
  std::uint64_t count = 0;
};

struct KernelParameter {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

enum class CopyMode : std::uint32_t { kNow, kNowOwnStream, kInStream, kInStreamOrOwn };
struct CopyIn {
  CUdeviceptr to = 0;
  std::uint64_t stream = 0;
  CopyMode route = CopyMode::kNow;
  std::uint32_t unused = 0;
};
struct CopyOut {
  CUdeviceptr from = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
  CopyMode route = CopyMode::kNow;
  std::uint32_t unused = 0;
};

inline constexpr std::uint32_t kPiece = 1U << 20;             // of a copy
inline constexpr std::uint32_t kLongestMessage = 256U << 20;  // modules are long
inline constexpr std::uint64_t kMostElements = 1U << 20;      // of an array in an answer

inline constexpr CUresult kNotSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED
inline constexpr CUresult kServerLost = 46;     // CUDA_ERROR_DEVICE_UNAVAILABLE

}  // namespace regatta::remote
