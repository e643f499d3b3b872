// Messages as the server takes them apart, with a driver that notes what it is asked.
#include "experimental/remote/internal/host_process.h"

#include <cstring>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::remote {
namespace {

CUstream const kStream = reinterpret_cast<CUstream>(0x1234560);  // NOLINT: a handle
int set_calls = 0;

CUresult create_stream(CUstream* stream, unsigned) {
  *stream = kStream;
  return CUDA_SUCCESS;
}
CUresult set_memory(CUdeviceptr, unsigned char, std::size_t, CUstream) {
  ++set_calls;
  return CUDA_SUCCESS;
}
CUresult get_name(char* name, int size, CUdevice) {
  std::memset(name, 'x', static_cast<std::size_t>(size));
  return CUDA_SUCCESS;
}
CUresult set_access(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) {
  return CUDA_SUCCESS;
}

class NotingDriver : public DriverFunctions {
 public:
  void* find(const char* symbol) override {
    static const std::map<std::string, void*> known = {
        {"cuStreamCreate", reinterpret_cast<void*>(&create_stream)},
        {"cuMemsetD8Async", reinterpret_cast<void*>(&set_memory)},
        {"cuDeviceGetName", reinterpret_cast<void*>(&get_name)},
        {"cuMemSetAccess", reinterpret_cast<void*>(&set_access)}};
    const auto at = known.find(symbol);
    return at == known.end() ? nullptr : at->second;
  }
};

class HostProcessTest : public testing::Test {
 protected:
  template <typename... T>
  CUresult run(CallNumber number, const T&... parts) {
    Buffer message;
    MessageWriter writer(message);
    (writer.put(parts), ...);
    answer_.clear();
    return run_call(host_, static_cast<std::uint16_t>(number), message, answer_);
  }
  CUresult set(CUstream stream) {
    return run(CallNumber::cuMemsetD8Async, CUdeviceptr{16}, std::uint8_t{1}, std::size_t{8},
               stream);
  }

  NotingDriver driver_;
  HostProcess host_{driver_};
  Buffer answer_;
};

TEST_F(HostProcessTest, RefusesHandlesThatItNeverGave) {
  set_calls = 0;
  EXPECT_EQ(set(kStream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(set_calls, 0);
  ASSERT_EQ(run(CallNumber::cuStreamCreate, std::uint8_t{1}, 0U), CUDA_SUCCESS);
  EXPECT_EQ(set(kStream), CUDA_SUCCESS);
  EXPECT_EQ(set(nullptr), CUDA_SUCCESS) << "the default stream";
  EXPECT_EQ(set_calls, 2);
}

TEST_F(HostProcessTest, TakesMessagesOfOneLengthOnly) {
  EXPECT_EQ(run(CallNumber::cuStreamCreate, std::uint8_t{1}), kBroken);
  EXPECT_EQ(run(CallNumber::cuStreamCreate, std::uint8_t{1}, 0U, 0U), kBroken);
  EXPECT_EQ(run(CallNumber::cuStreamCreate, std::uint8_t{2}, 0U), kBroken) << "neither yes nor no";
  EXPECT_EQ(run(CallNumber::kCount), kBroken);
}

TEST_F(HostProcessTest, SaysWhatItsDriverHasNot) {
  EXPECT_EQ(run(CallNumber::cuCtxSynchronize), kNotSupported);
}

TEST_F(HostProcessTest, GivesNoMoreRoomThanThereIs) {
  EXPECT_EQ(run(CallNumber::cuDeviceGetName, std::uint8_t{1}, 8, 0), CUDA_SUCCESS);
  EXPECT_EQ(answer_.size(), 8 + 8U);
  EXPECT_EQ(run(CallNumber::cuDeviceGetName, std::uint8_t{1}, 1 << 30, 0),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(HostProcessTest, WantsAsManyElementsAsAreStated) {
  const CUmemAccessDesc one{};
  const auto access = [&](std::size_t stated) {
    return run(CallNumber::cuMemSetAccess, CUdeviceptr{0}, std::size_t{0}, std::uint8_t{1},
               std::uint64_t{sizeof one}, one, stated);
  };
  EXPECT_EQ(access(1), CUDA_SUCCESS);
  EXPECT_EQ(access(2), CUDA_ERROR_INVALID_VALUE) << "the driver would read what did not come";
}

TEST(HoldsImage, TakesAnImageOnlyWithAllThatItsHeaderSays) {
  struct {
    std::uint32_t magic = 0xba55ed50;
    std::uint16_t version = 1;
    std::uint16_t header_bytes = 16;
    std::uint64_t bytes = 100;
  } header;
  std::vector<std::byte> bytes(sizeof header + 1);
  header.bytes = 0;
  std::memcpy(bytes.data(), &header, sizeof header);
  EXPECT_TRUE(holds_image(bytes));
  header.bytes = 1;
  std::memcpy(bytes.data(), &header, sizeof header);
  EXPECT_FALSE(holds_image(bytes));
}

TEST_F(HostProcessTest, WaitsForNoConnectionThatNeverWas) {
  EXPECT_FALSE(host_.wait_for({7, 1}));
  host_.note_start(7);
  host_.note_progress(7, 3);
  EXPECT_TRUE(host_.wait_for({7, 3}));
  host_.note_end(7);
  EXPECT_TRUE(host_.wait_for({7, 1'000}));
}

}  // namespace
}  // namespace regatta::remote
