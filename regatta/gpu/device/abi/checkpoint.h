// device/abi/checkpoint.h: the part of the CUDA driver's interface that takes another process off
// the GPU and brings it back (CUDA 12.8 and later). Source: CUDA driver API, "CUDA Checkpointing".
#pragma once

#include <cstdint>

#include "regatta/gpu/device/abi/cuda_sharing.h"

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {
using CUprocessState = int;
inline constexpr CUprocessState CU_PROCESS_STATE_RUNNING = 0;
inline constexpr CUprocessState CU_PROCESS_STATE_LOCKED = 1;
inline constexpr CUprocessState CU_PROCESS_STATE_CHECKPOINTED = 2;
inline constexpr CUprocessState CU_PROCESS_STATE_FAILED = 3;

struct CUcheckpointLockArgs {
  unsigned timeoutMs;  // 0: none
  unsigned reserved0;
  std::uint64_t reserved1[7];
};
static_assert(sizeof(CUcheckpointLockArgs) == 64);
struct CUcheckpointCheckpointArgs {
  std::uint64_t reserved[8];
};
struct CUcheckpointGpuPair {
  CUuuid oldUuid;
  CUuuid newUuid;
};
struct CUcheckpointRestoreArgs {
  CUcheckpointGpuPair* gpuPairs;
  unsigned gpuPairsCount;
  char reserved[52 - sizeof(CUcheckpointGpuPair*)];
  std::uint64_t reserved1;
};
static_assert(sizeof(CUcheckpointRestoreArgs) == 64);
struct CUcheckpointUnlockArgs {
  std::uint64_t reserved[8];
};

// The signatures, for those who find the functions by name.
using CheckpointGetState = CUresult(int pid, CUprocessState*);
using CheckpointGetThread = CUresult(int pid, int* tid);
using CheckpointLock = CUresult(int pid, CUcheckpointLockArgs*);
using CheckpointOut = CUresult(int pid, CUcheckpointCheckpointArgs*);
using CheckpointRestore = CUresult(int pid, CUcheckpointRestoreArgs*);
using CheckpointUnlock = CUresult(int pid, CUcheckpointUnlockArgs*);
}
// NOLINTEND(readability-identifier-naming)
