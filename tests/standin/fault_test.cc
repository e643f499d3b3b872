// Failures that are asked for.
#include <cstring>

#include "regatta/base/os/file.h"
#include "tests/standin/fixture.h"

namespace regatta::standin {
namespace {

class CudaFault : public DriverTest {
 protected:
  void SetUp() override {
    if (is_real_driver()) GTEST_SKIP() << "a real driver does not fail on demand";
    DriverTest::SetUp();
  }
  static std::string results(const std::string& faults) {
    TestClient client("allocate", "6", {"REGATTA_STANDIN_FAULTS=" + faults});
    return client.read_line();
  }
};

TEST_F(CudaFault, FailsTheCallThatIsNamedAndNoOther) {
  EXPECT_EQ(results(""), "0 0 0 0 0 0");
  EXPECT_EQ(results("cuMemAlloc_v2:3=2"), "0 0 2 0 0 0");
  EXPECT_EQ(results("cuMemAlloc_v2:4+=2,cuMemFree_v2:1=1"), "0 0 0 2 2 2");
  EXPECT_EQ(results("cuMemAlloc_v2:1=999,cuMemAlloc_v2:6=2"), "999 0 0 0 0 2");
}

TEST_F(CudaFault, FailsAsTheFileSaysThatIsThereWhenAProgramBegins) {
  const auto folder = os::TempFolder::create("faults");
  const std::string path = folder->path() + "/faults";
  EXPECT_EQ(results("@" + path), "0 0 0 0 0 0") << "there is no file";
  ASSERT_TRUE(os::write_file(path, "cuMemAlloc_v2:3=2").has_value());
  EXPECT_EQ(results("@" + path), "0 0 2 0 0 0");
}

TEST_F(CudaFault, StaysWithTheContextOfAKernelThatFailed) {
  CUdeviceptr address = 0;
  ASSERT_EQ(launch(kernel("spin_1ms_fails_719"), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&address, kMiB), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(launch(reinterpret_cast<CUfunction>(this), nullptr), CUDA_ERROR_LAUNCH_FAILED);
  ASSERT_EQ(CU(cuCtxDestroy_v2)(context_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuCtxCreate_v2)(&context_, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&address, kMiB), CUDA_SUCCESS) << "another context is another one";
}

TEST_F(CudaFault, TellsAllWhoWaitThatTheDeviceIsLost) {
  TestDevice device({});
  TestClient client(device, "wait_for_ever", "");
  EXPECT_EQ(client.read_line(), std::to_string(CUDA_ERROR_NOT_READY));
  device.end();
  EXPECT_EQ(client.read_line(), "999 999");
}

TEST_F(CudaFault, HasTheTablesThatAreKnownWithTheirSizeFirst) {
  const CUuuid known{{'\x6b', '\xd5', '\xfb', '\x6c', '\x5b', '\xf4', '\xe7', '\x4a', '\x89',
                      '\x87', '\xd9', '\x39', '\x12', '\xfd', '\x9d', '\xf9'}};
  const CUuuid unknown{{1, 2, 3}};
  const void* table = nullptr;
  ASSERT_EQ(CU(cuGetExportTable)(&table, &known), CUDA_SUCCESS);
  std::size_t bytes = 0;
  std::memcpy(&bytes, table, sizeof bytes);
  EXPECT_GT(bytes, sizeof bytes);
  CUresult (*call)() = nullptr;
  constexpr int kUnknown = 3;
  std::memcpy(&call, static_cast<const char*>(table) + kUnknown * sizeof bytes, sizeof call);
  EXPECT_EQ(call(), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(CU(cuGetExportTable)(&table, &unknown), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(table, nullptr);
  EXPECT_EQ(CU(cuGetExportTable)(nullptr, &known), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace regatta::standin
