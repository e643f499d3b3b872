// Steps of random programs: memory that processes show to each other, of their own tenant or
// another. A message about it goes into a pair of sockets from which all receive.
#include <memory>

#include <unistd.h>

#include "tests/attacks/random_program.h"
#include "tests/attacks/random_steps.h"
#include "tests/standin/message_with_file.h"

namespace regatta::attacks {
namespace {

constexpr int kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

struct Shown {
  enum Kind : std::uint32_t { kAddress, kPhysical, kPool } kind = kAddress;
  std::uint32_t value = 0;  // what its owner wrote; 0: nothing that stays
  std::uint64_t bytes = 0;
  CUipcMemHandle handle{};
  CUmemPoolPtrExportData pointer{};
};

// When nobody receives, nobody is told.
void show(const RandomProgram& program, const Shown& shown, int file = -1) {
  standin::send_with_file(static_cast<int>(program.options().sender), &shown, sizeof shown, file,
                          MSG_DONTWAIT);
  if (file >= 0) ::close(file);
}

// Whole blocks keep what was written there while others have them open.
void show_address(RandomProgram& program) {
  const auto* const range = program.any_range([](const auto& one) { return one.is_block; });
  if (range == nullptr) return;
  Shown shown{.kind = Shown::kAddress, .value = range->value, .bytes = range->bytes};
  const CUresult result = CU(cuIpcGetMemHandle)(&shown.handle, range->address);
  if (result == CUDA_SUCCESS) show(program, shown);
  expect(result == CUDA_SUCCESS || program.options().is_swappable != 0, "an address can be shown");
}

void show_physical(RandomProgram& program) {
  const CUmemAllocationProp properties = {
      .type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = kFile, .location = kHere};
  CUmemGenericAllocationHandle handle = 0;
  const std::uint64_t bytes = (1 + program.below(4)) * 2 * kMiB;
  const CUresult result = CU(cuMemCreate)(&handle, bytes, &properties, 0);
  if (!program.hold(result, [=] { return CU(cuMemRelease)(handle); })) return;
  int file = -1;
  if (CU(cuMemExportToShareableHandle)(&file, handle, kFile, 0) == CUDA_SUCCESS)
    show(program, {.kind = Shown::kPhysical, .bytes = bytes}, file);
}

void show_pool(RandomProgram& program) {
  const CUmemPoolProps properties = {
      .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .handleTypes = kFile, .location = kHere};
  CUmemoryPool pool = nullptr;
  CUdeviceptr address = 0;
  CUstream const stream = program.stream();
  Shown shown{.kind = Shown::kPool, .bytes = (1 + program.below(4)) * 2 * kMiB};
  MUST(CU(cuMemPoolCreate)(&pool, &properties));
  const CUresult result = CU(cuMemAllocFromPoolAsync)(&address, shown.bytes, pool, stream);
  const auto give = [=] {
    const CUresult freed = CU(cuMemFreeAsync)(address, stream);
    MUST(CU(cuMemPoolDestroy)(pool));
    MUST(CU(cuCtxSynchronize)());
    return freed;
  };
  if (!program.hold(result, give)) {
    MUST(CU(cuMemPoolDestroy)(pool));
    return;
  }
  MUST(CU(cuStreamSynchronize)(stream));
  int file = -1;
  if (CU(cuMemPoolExportPointer)(&shown.pointer, address) == CUDA_SUCCESS &&
      CU(cuMemPoolExportToShareableHandle)(&file, pool, kFile, 0) == CUDA_SUCCESS)
    show(program, shown, file);
}

// Its owner may have freed it meanwhile: then there is nothing to open.
void open_address(RandomProgram& program, const Shown& shown) {
  CUdeviceptr address = 0;
  if (CU(cuIpcOpenMemHandle_v2)(&address, shown.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) !=
      CUDA_SUCCESS)
    return;
  const WrittenRange range{.address = address, .bytes = shown.bytes, .value = shown.value};
  if (shown.value != 0) RandomProgram::check(range, program.below(shown.bytes));
  program.note_opened(shown.bytes);
  program.hold(CUDA_SUCCESS, [&program, address, bytes = shown.bytes] {
    const CUresult result = CU(cuIpcCloseMemHandle)(address);
    program.note_closed(bytes);
    return result;
  });
}

void open_physical(RandomProgram& program, const Shown& shown, int file) {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr range = 0;
  const std::uint64_t bytes = shown.bytes;
  void* const from = reinterpret_cast<void*>(static_cast<std::intptr_t>(file));
  if (CU(cuMemImportFromShareableHandle)(&handle, from, kFile) != CUDA_SUCCESS) return;
  program.note_opened(bytes);
  const bool is_mapped = program.below(2) == 0;
  if (is_mapped) {
    MUST(CU(cuMemAddressReserve)(&range, bytes, 0, 0, 0));
    MUST(CU(cuMemMap)(range, bytes, 0, handle, 0));
    MUST(CU(cuMemRelease)(handle));
  }
  program.hold(CUDA_SUCCESS, [=, &program] {
    const CUresult result = is_mapped ? CU(cuMemUnmap)(range, bytes) : CU(cuMemRelease)(handle);
    if (is_mapped) MUST(CU(cuMemAddressFree)(range, bytes));
    program.note_closed(bytes);
    return result;
  });
}

void open_pool(RandomProgram& program, Shown shown, int file) {
  CUmemoryPool pool = nullptr;
  CUdeviceptr address = 0;
  void* const from = reinterpret_cast<void*>(static_cast<std::intptr_t>(file));
  if (CU(cuMemPoolImportFromShareableHandle)(&pool, from, kFile, 0) != CUDA_SUCCESS) return;
  if (CU(cuMemPoolImportPointer)(&address, pool, &shown.pointer) != CUDA_SUCCESS) {
    MUST(CU(cuMemPoolDestroy)(pool));
    return;
  }
  program.note_opened(shown.bytes);
  program.hold(CUDA_SUCCESS, [=, &program, bytes = shown.bytes] {
    const CUresult result = CU(cuMemFreeAsync)(address, nullptr);
    MUST(CU(cuMemPoolDestroy)(pool));
    MUST(CU(cuCtxSynchronize)());
    program.note_closed(bytes);
    return result;
  });
}

void open_shown(RandomProgram& program) {
  Shown shown;
  int file = -1;
  if (standin::receive_with_file(static_cast<int>(program.options().receiver), &shown, sizeof shown,
                                 file, MSG_DONTWAIT) != sizeof shown)
    return;
  switch (shown.kind) {
    case Shown::kAddress:
      open_address(program, shown);
      break;
    case Shown::kPhysical:
      open_physical(program, shown, file);
      break;
    case Shown::kPool:
      open_pool(program, shown, file);
      break;
  }
  if (file >= 0) ::close(file);
}

}  // namespace

std::span<const RandomStep> share_steps() {
  static constexpr RandomStep kSteps[] = {{"cuIpcGetMemHandle", show_address},
                                          {"cuIpcGetMemHandle", show_address},
                                          {"cuMemExportToShareableHandle", show_physical},
                                          {"cuMemPoolExportPointer", show_pool},
                                          {"memory of another process", open_shown},
                                          {"memory of another process", open_shown},
                                          {"memory of another process", open_shown}};
  return kSteps;
}

}  // namespace regatta::attacks
