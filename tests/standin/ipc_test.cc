// Memory that processes share.
#include <algorithm>
#include <string>
#include <vector>

#include <unistd.h>

#include "tests/standin/fixture.h"

namespace regatta::standin {
namespace {

class CudaIpc : public DriverTest {
 protected:
  static std::size_t free_bytes() {
    std::size_t bytes = 0;
    EXPECT_EQ(CU(cuMemGetInfo_v2)(&bytes, nullptr), CUDA_SUCCESS);
    return bytes;
  }
  static CUipcMemHandle handle_of(const std::string& line) {
    CUipcMemHandle handle{};
    from_hex(line, handle.reserved, sizeof handle);
    return handle;
  }
  static unsigned word_at(CUdeviceptr address) {
    unsigned word = 0;
    EXPECT_EQ(CU(cuMemcpyDtoH_v2)(&word, address, 4), CUDA_SUCCESS);
    return word;
  }
};

TEST_F(CudaIpc, OpensTheMemoryOfAnotherProcess) {
  TestClient other("show", "0x1234");
  const CUipcMemHandle handle = handle_of(other.read_line());
  CUdeviceptr address = 0;
  CUdeviceptr again = 0;
  ASSERT_EQ(CU(cuIpcOpenMemHandle_v2)(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
            CUDA_SUCCESS);
  EXPECT_EQ(word_at(address), 0x1234U);
  ASSERT_EQ(CU(cuMemsetD32_v2)(address, 0x4321, 1), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS) << "a set may come later than its call";
  other.write_line("read");
  EXPECT_EQ(other.read_line(), "0x4321") << "both write the same memory";
  ASSERT_EQ(CU(cuIpcOpenMemHandle_v2)(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
            CUDA_SUCCESS);
  EXPECT_EQ(again, address) << "it is open already";
  EXPECT_EQ(CU(cuMemFree_v2)(address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuIpcCloseMemHandle)(address), CUDA_SUCCESS);
  EXPECT_EQ(word_at(address), 0x4321U) << "it was opened twice";
  EXPECT_EQ(CU(cuIpcCloseMemHandle)(address), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuIpcCloseMemHandle)(address), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaIpc, CannotBeOpenedWhereItIsFromNorBeMadeOfPartsOrHostMemory) {
  CUdeviceptr address = 0;
  CUdeviceptr opened = 0;
  void* pinned = nullptr;
  CUipcMemHandle handle{};
  ASSERT_EQ(CU(cuMemAlloc_v2)(&address, kMiB), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAllocHost_v2)(&pinned, kMiB), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuIpcGetMemHandle)(&handle, address), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuIpcOpenMemHandle_v2)(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
            CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(CU(cuIpcGetMemHandle)(&handle, reinterpret_cast<CUdeviceptr>(pinned)),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuIpcOpenMemHandle_v2)(&opened, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemFree_v2)(address), CUDA_SUCCESS);
}

TEST_F(CudaIpc, KeepsTheMemoryOfAKilledProcessWhileItIsOpen) {
  if (is_real_driver()) GTEST_SKIP() << "what becomes of it is not stated";
  const std::size_t before = free_bytes();
  TestClient other("show", "0x77");
  const CUipcMemHandle handle = handle_of(other.read_line());
  CUdeviceptr address = 0;
  ASSERT_EQ(CU(cuIpcOpenMemHandle_v2)(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
            CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before - 4 * kMiB) << "opened memory is charged once";
  const auto pid = static_cast<std::uint32_t>(other.pid());
  other.kill();
  const auto is_known = [&] {
    const std::vector<Usage> usage = own_device()->usage();
    return std::ranges::find(usage, pid, &Usage::pid) != usage.end();
  };
  for (int i = 0; i < 6000 && is_known(); ++i)
    usleep(10'000);
  EXPECT_EQ(word_at(address), 0x77U);
  EXPECT_EQ(free_bytes(), before - 4 * kMiB);
  ASSERT_EQ(CU(cuIpcCloseMemHandle)(address), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(CU(cuIpcOpenMemHandle_v2)(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
            CUDA_ERROR_INVALID_HANDLE);
}

// Both ends in one process: what travels is a file descriptor.
TEST_F(CudaIpc, ExportsMappableMemoryAsAFile) {
  const std::size_t before = free_bytes();
  CUmemAllocationProp properties{.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemGenericAllocationHandle plain = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUmemGenericAllocationHandle imported = 0;
  int file = -1;
  constexpr int kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  ASSERT_EQ(CU(cuMemCreate)(&plain, 2 * kMiB, &properties, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemExportToShareableHandle)(&file, plain, kFile, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(CU(cuMemRelease)(plain), CUDA_SUCCESS);
  properties.requestedHandleTypes = kFile;
  ASSERT_EQ(CU(cuMemCreate)(&handle, 2 * kMiB, &properties, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemExportToShareableHandle)(&file, handle, kFile, 0), CUDA_SUCCESS);
  const auto travels = reinterpret_cast<void*>(static_cast<std::intptr_t>(file));
  ASSERT_EQ(CU(cuMemImportFromShareableHandle)(&imported, travels, kFile), CUDA_SUCCESS);
  EXPECT_EQ(close(file), 0);
  CUdeviceptr range = 0;
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ASSERT_EQ(CU(cuMemAddressReserve)(&range, 4 * kMiB, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemMap)(range, 2 * kMiB, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemMap)(range + 2 * kMiB, 2 * kMiB, 0, imported, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemSetAccess)(range, 4 * kMiB, &access, 1), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemsetD32_v2)(range, 42, 100), CUDA_SUCCESS);
  EXPECT_EQ(word_at(range + 2 * kMiB), 42U);
  CUmemGenericAllocationHandle retained = 0;
  ASSERT_EQ(CU(cuMemRetainAllocationHandle)(&retained, reinterpret_cast<void*>(range)),
            CUDA_SUCCESS);
  EXPECT_EQ(retained, handle);
  for (const auto each : {retained, handle, imported})
    ASSERT_EQ(CU(cuMemRelease)(each), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemUnmap)(range, 2 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(word_at(range + 2 * kMiB), 42U) << "the other end holds it";
  EXPECT_EQ(free_bytes(), before - 2 * kMiB);
  ASSERT_EQ(CU(cuMemUnmap)(range + 2 * kMiB, 2 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(CudaIpc, SharesAPoolAndItsPointers) {
  constexpr int kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const CUmemPoolProps properties{.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .handleTypes = kFile,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemoryPool pool = nullptr;
  CUmemoryPool imported = nullptr;
  CUdeviceptr address = 0;
  CUdeviceptr other = 0;
  CUmemPoolPtrExportData data{};
  int file = -1;
  ASSERT_EQ(CU(cuMemPoolCreate)(&pool, &properties), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemPoolExportToShareableHandle)(&file, pool, kFile, 0), CUDA_SUCCESS);
  const auto travels = reinterpret_cast<void*>(static_cast<std::intptr_t>(file));
  ASSERT_EQ(CU(cuMemPoolImportFromShareableHandle)(&imported, travels, kFile, 0), CUDA_SUCCESS);
  close(file);
  ASSERT_EQ(CU(cuMemAllocFromPoolAsync)(&address, 1000, pool, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemsetD32Async)(address, 9, 10, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemPoolExportPointer)(&data, address), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemAllocFromPoolAsync)(&other, 1000, imported, nullptr), CUDA_ERROR_INVALID_VALUE);
  if (is_real_driver()) GTEST_SKIP() << "the pointer may be for other processes only";
  ASSERT_EQ(CU(cuMemPoolImportPointer)(&other, imported, &data), CUDA_SUCCESS);
  EXPECT_NE(other, address);
  EXPECT_EQ(word_at(other), 9U);
  EXPECT_EQ(CU(cuMemFreeAsync)(other, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFreeAsync)(address, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
}

}  // namespace
}  // namespace regatta::standin
