// Functions of a driver that the CUDA runtime library needs beside the documented ones.
#include <cstring>
#include <string>

#include "tests/standin/export_table.h"
#include "tests/standin/fat_binary.h"
#include "tests/standin/fixture.h"

namespace regatta::standin {
namespace {

const char* const kCode =
    ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry spin_1us() { ret; }\n";

const void* const* table(const CUuuid& id) {
  const void* found = nullptr;
  EXPECT_EQ(CU(cuGetExportTable)(&found, &id), CUDA_SUCCESS);
  return static_cast<const void* const*>(found);
}

template <typename Function>
Function* function_in(const CUuuid& id, std::size_t slot) {
  return reinterpret_cast<Function*>(const_cast<void*>(table(id)[slot]));
}

class CudaRuntime : public DriverTest {
 protected:
  void SetUp() override {
    if (is_real_driver()) GTEST_SKIP() << "the tables are its own matter";
    DriverTest::SetUp();
  }
  void TearDown() override {
    if (!is_real_driver()) DriverTest::TearDown();
  }
};

bool is_primary_active() {
  unsigned flags = 0;
  int is_active = 0;
  EXPECT_EQ(CU(cuDevicePrimaryCtxGetState)(0, &flags, &is_active), CUDA_SUCCESS);
  return is_active != 0;
}

TEST_F(CudaRuntime, RetainsThePrimaryContextByItsTable) {
  auto* const retain =
      function_in<CUresult(CUcontext*, CUdevice)>(kRuntimeTable, kRuntimeGetPrimary);
  CUcontext by_table = nullptr;
  CUcontext by_name = nullptr;
  ASSERT_EQ(retain(&by_table, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&by_name, 0), CUDA_SUCCESS);
  EXPECT_EQ(by_table, by_name);
  EXPECT_EQ(retain(&by_table, 77), CUDA_ERROR_INVALID_DEVICE);
  ASSERT_EQ(CU(cuDevicePrimaryCtxRelease_v2)(0), CUDA_SUCCESS);
  EXPECT_TRUE(is_primary_active());
  ASSERT_EQ(CU(cuDevicePrimaryCtxRelease)(0), CUDA_SUCCESS) << "as it was before CUDA 11";
  EXPECT_FALSE(is_primary_active());
}

TEST_F(CudaRuntime, EndsThePrimaryContextByTheResetOfBeforeCuda11) {
  CUcontext primary = nullptr;
  ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&primary, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuDevicePrimaryCtxReset)(0), CUDA_SUCCESS);
  EXPECT_FALSE(is_primary_active());
}

TEST_F(CudaRuntime, LoadsWhatCompilersLeaveInPrograms) {
  const std::string fat = fat_binary_of(kCode, 75);
  const FatBinaryWrapper wrapper{.fat_binary = fat.data()};
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  const auto expect_kernel = [&](CUresult loaded) {
    ASSERT_EQ(loaded, CUDA_SUCCESS);
    ASSERT_EQ(CU(cuModuleGetFunction)(&function, module, "spin_1us"), CUDA_SUCCESS);
    EXPECT_EQ(launch(function, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuModuleUnload)(module), CUDA_SUCCESS);
  };
  expect_kernel(CU(cuModuleLoadData)(&module, fat.data()));
  expect_kernel(CU(cuModuleLoadFatBinary)(&module, &wrapper));
  using Load = CUresult(CUmodule*, const void*);
  using LoadMore = CUresult(CUmodule*, const void*, void*, void*, unsigned);
  using LoadUnwrapped = CUresult(const void*, CUmodule*, void*, void*, unsigned);
  expect_kernel(function_in<Load>(kRuntimeTable, kRuntimeLoad)(&module, &wrapper));
  expect_kernel(function_in<LoadMore>(kRuntimeTable, kRuntimeLoadMore)(&module, &wrapper, nullptr,
                                                                       nullptr, 0));
  expect_kernel(function_in<LoadUnwrapped>(kRuntimeTable, kRuntimeLoadUnwrapped)(
      fat.data(), &module, nullptr, nullptr, 0));
}

TEST_F(CudaRuntime, RefusesFatBinariesWithoutAPartThatItCanRead) {
  const std::string fat = fat_binary_of(kCode, 75);
  CUmodule module = nullptr;
  std::string machine_code = fat;
  machine_code[16] = 2;
  EXPECT_EQ(CU(cuModuleLoadData)(&module, machine_code.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
  std::string compressed = fat;
  compressed[16 + 41] = '\x80';
  EXPECT_EQ(CU(cuModuleLoadData)(&module, compressed.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
  std::string cut_short = fat;
  cut_short[8] = 90;
  cut_short[9] = 0;
  EXPECT_EQ(CU(cuModuleLoadData)(&module, cut_short.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
  const FatBinaryWrapper of_text{.fat_binary = kCode};
  const FatBinaryWrapper of_nothing{};
  EXPECT_EQ(CU(cuModuleLoadFatBinary)(&module, &of_text), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(CU(cuModuleLoadFatBinary)(&module, &of_nothing), CUDA_ERROR_INVALID_IMAGE);
}

int ends = 0;
void note_end(CUcontext, void* key, void* value) {
  if (*static_cast<int*>(key) + 1 == *static_cast<int*>(value)) ++ends;
}

TEST_F(CudaRuntime, KeepsValuesWithAContextAndCallsBackAtItsEnd) {
  using Put = CUresult(CUcontext, void*, void*, void (*)(CUcontext, void*, void*));
  using Remove = CUresult(CUcontext, void*);
  using Get = CUresult(void**, CUcontext, void*);
  auto* const put = function_in<Put>(kStorageTable, kStoragePut);
  auto* const remove = function_in<Remove>(kStorageTable, kStorageRemove);
  auto* const get = function_in<Get>(kStorageTable, kStorageGet);
  int numbers[] = {1, 2, 3, 4};
  CUcontext other = nullptr;
  void* found = nullptr;
  ASSERT_EQ(CU(cuCtxCreate_v2)(&other, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(put(other, &numbers[0], &numbers[1], note_end), CUDA_SUCCESS);
  ASSERT_EQ(put(nullptr, &numbers[2], &numbers[3], note_end), CUDA_SUCCESS) << "the current one";
  EXPECT_EQ(get(&found, other, &numbers[2]), CUDA_SUCCESS);
  EXPECT_EQ(found, &numbers[3]);
  EXPECT_EQ(get(&found, context_, &numbers[0]), CUDA_ERROR_INVALID_HANDLE) << "of another context";
  EXPECT_EQ(remove(other, &numbers[2]), CUDA_SUCCESS);
  EXPECT_EQ(remove(other, &numbers[2]), CUDA_ERROR_INVALID_HANDLE);
  ends = 0;
  ASSERT_EQ(CU(cuCtxDestroy_v2)(other), CUDA_SUCCESS);
  EXPECT_EQ(ends, 1) << "what was removed is not called";
  EXPECT_EQ(put(other, &numbers[0], &numbers[1], note_end), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(CudaRuntime, FindsPlacesForToolsThatItMayWriteTo) {
  using Show = void(void**, std::size_t*);
  for (const std::size_t slot : {2, 6}) {
    void* place = nullptr;
    std::size_t count = 0;
    function_in<Show>(kToolsTable, slot)(&place, &count);
    ASSERT_NE(place, nullptr);
    ASSERT_GT(count, 0U);
    std::memset(place, 0, count);
  }
  const auto bytes = reinterpret_cast<std::size_t>(table(kToolsOfThreadsTable)[0]);
  EXPECT_GT(bytes, sizeof bytes);
}

}  // namespace
}  // namespace regatta::standin
