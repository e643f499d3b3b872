// tests/gpu_swap/swap_calls.h: the functions of the driver under test as sharing/swap takes them.
#pragma once

#include "regatta/gpu/sharing/internal/swap/cuda_swap.h"
#include "tests/standin/fixture.h"

namespace regatta::gpu_swap {

inline sharing::SwapCalls swap_calls() {
  return {.address_reserve = CU(cuMemAddressReserve),
          .address_free = CU(cuMemAddressFree),
          .create = CU(cuMemCreate),
          .release = CU(cuMemRelease),
          .map = CU(cuMemMap),
          .unmap = CU(cuMemUnmap),
          .set_access = CU(cuMemSetAccess),
          .host_alloc = CU(cuMemHostAlloc),
          .host_free = CU(cuMemFreeHost),
          .copy_to_device = CU(cuMemcpyHtoDAsync_v2),
          .copy_to_host = CU(cuMemcpyDtoHAsync_v2),
          .stream_create = CU(cuStreamCreate),
          .stream_destroy = CU(cuStreamDestroy_v2),
          .event_create = CU(cuEventCreate),
          .event_record = CU(cuEventRecord),
          .event_wait = CU(cuEventSynchronize),
          .event_destroy = CU(cuEventDestroy_v2),
          .context_push = CU(cuCtxPushCurrent_v2),
          .context_pop = CU(cuCtxPopCurrent_v2),
          .context_wait = CU(cuCtxSynchronize),
          .may_exchange_capture_mode = CU(cuThreadExchangeStreamCaptureMode)};
}

}  // namespace regatta::gpu_swap
