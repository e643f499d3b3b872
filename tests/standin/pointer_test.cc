// Attributes of addresses.
#include <vector>

#include "tests/standin/fixture.h"

namespace regatta::standin {
namespace {

class CudaPointer : public DriverTest {
 protected:
  template <typename Value>
  static Value get(int attribute, CUdeviceptr address, CUresult expected = CUDA_SUCCESS) {
    Value value{};
    EXPECT_EQ(CU(cuPointerGetAttribute)(&value, attribute, address), expected) << attribute;
    return value;
  }
};

TEST_F(CudaPointer, KnowsTheContextDeviceAndRangeOfAnAllocation) {
  CUdeviceptr address = 0;
  CUdeviceptr other = 0;
  ASSERT_EQ(CU(cuMemAlloc_v2)(&address, 1000), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAlloc_v2)(&other, 1000), CUDA_SUCCESS);
  const CUdeviceptr inner = address + 10;
  EXPECT_EQ(get<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inner), CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(get<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, inner), context_);
  EXPECT_EQ(get<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inner), inner);
  get<void*>(CU_POINTER_ATTRIBUTE_HOST_POINTER, inner, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(get<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inner), 0);
  EXPECT_FALSE(get<bool>(CU_POINTER_ATTRIBUTE_IS_MANAGED, inner));
  EXPECT_EQ(get<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inner), address);
  EXPECT_EQ(get<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, inner), 1000U);
  EXPECT_EQ(get<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, inner), nullptr);
  EXPECT_NE(get<std::uint64_t>(CU_POINTER_ATTRIBUTE_BUFFER_ID, inner),
            get<std::uint64_t>(CU_POINTER_ATTRIBUTE_BUFFER_ID, other));
  get<int>(1000, inner, CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(CU(cuMemFree_v2)(address), CUDA_SUCCESS);
  get<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inner, CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaPointer, TellsManagedPinnedAndPoolMemoryApart) {
  CUdeviceptr managed = 0;
  CUdeviceptr pooled = 0;
  void* pinned = nullptr;
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(CU(cuMemAllocManaged)(&managed, 4096, 1), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemHostAlloc)(&pinned, 4096, 1), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuDeviceGetDefaultMemPool)(&pool, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAllocAsync)(&pooled, 4096, nullptr), CUDA_SUCCESS);
  const auto pinned_address = reinterpret_cast<CUdeviceptr>(pinned);
  EXPECT_TRUE(get<bool>(CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
  EXPECT_EQ(get<CUdeviceptr>(CU_POINTER_ATTRIBUTE_HOST_POINTER, managed), managed);
  EXPECT_EQ(get<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pinned_address), CU_MEMORYTYPE_HOST);
  EXPECT_EQ(get<void*>(CU_POINTER_ATTRIBUTE_HOST_POINTER, pinned_address), pinned);
  EXPECT_EQ(get<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pooled), pool);
  CUdeviceptr seen = 0;
  unsigned flags = 0;
  ASSERT_EQ(CU(cuMemHostGetDevicePointer_v2)(&seen, pinned, 0), CUDA_SUCCESS);
  EXPECT_EQ(seen, pinned_address);
  ASSERT_EQ(CU(cuMemHostGetFlags)(&flags, pinned), CUDA_SUCCESS);
  EXPECT_EQ(flags & 1U, 1U);
  ASSERT_EQ(CU(cuMemFreeAsync)(pooled, nullptr), CUDA_SUCCESS);
}

TEST_F(CudaPointer, AnswersManyQuestionsAtOnceAlsoOfMemoryThatItDoesNotKnow) {
  CUdeviceptr address = 0;
  ASSERT_EQ(CU(cuMemAlloc_v2)(&address, 1000), CUDA_SUCCESS);
  CUcontext context = nullptr;
  unsigned type = 99;
  unsigned is_managed = 1;  // driver 580 writes four bytes
  void* host = this;
  int attributes[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                      CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* data[] = {&context, &type, &is_managed, &host};
  ASSERT_EQ(CU(cuPointerGetAttributes)(4, attributes, data, address), CUDA_SUCCESS);
  EXPECT_EQ(context, context_);
  EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(is_managed, 0U);
  EXPECT_EQ(host, nullptr);
  ASSERT_EQ(CU(cuPointerGetAttributes)(3, attributes, data, reinterpret_cast<CUdeviceptr>(&host)),
            CUDA_SUCCESS);
  EXPECT_EQ(context, nullptr);
  EXPECT_EQ(type, 0U);
  EXPECT_EQ(CU(cuPointerGetAttributes)(0, attributes, data, address), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaPointer, RegistersMemoryOfTheProgram) {
  std::vector<char> memory(10'000);
  const auto address = reinterpret_cast<CUdeviceptr>(memory.data());
  ASSERT_EQ(CU(cuMemHostRegister_v2)(memory.data(), memory.size(), 0), CUDA_SUCCESS);
  EXPECT_EQ(get<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 5), CU_MEMORYTYPE_HOST);
  EXPECT_EQ(CU(cuMemHostRegister_v2)(memory.data(), memory.size(), 0),
            CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(CU(cuMemHostUnregister)(memory.data()), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemHostUnregister)(memory.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  memory[0] = 1;
}

TEST_F(CudaPointer, RemembersWhatWasAdvisedOfManagedMemory) {
  CUdeviceptr managed = 0;
  CUdeviceptr plain = 0;
  int value = -9;
  ASSERT_EQ(CU(cuMemAllocManaged)(&managed, kMiB, 1), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAlloc_v2)(&plain, kMiB), CUDA_SUCCESS);
  const auto attribute = [&](int which) {
    EXPECT_EQ(CU(cuMemRangeGetAttribute)(&value, 4, which, managed, kMiB), CUDA_SUCCESS);
    return value;
  };
  EXPECT_EQ(attribute(1), 0);
  EXPECT_EQ(attribute(2), CU_DEVICE_INVALID);
  EXPECT_EQ(CU(cuMemAdvise)(managed, kMiB, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemAdvise_v2)(managed, kMiB, 3, {CU_MEM_LOCATION_TYPE_DEVICE, 0}), CUDA_SUCCESS);
  EXPECT_EQ(attribute(1), 1);
  EXPECT_EQ(attribute(2), 0);
  EXPECT_EQ(CU(cuMemPrefetchAsync)(managed, kMiB, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(attribute(4), 0);
  EXPECT_EQ(CU(cuMemPrefetchAsync_v2)(managed, kMiB, {CU_MEM_LOCATION_TYPE_HOST, 0}, 0, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(attribute(4), CU_DEVICE_CPU);
  EXPECT_EQ(CU(cuMemPrefetchAsync)(plain, kMiB, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemAdvise)(managed, kMiB, 77, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
}

}  // namespace
}  // namespace regatta::standin
