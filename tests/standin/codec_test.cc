// Encoders and decoders: engines that pictures of all processes take in turns.
#include "tests/standin/codec.h"

#include <chrono>

#include <dlfcn.h>
#include <unistd.h>

#include "regatta/gpu/device/abi/codec.h"
#include "tests/standin/fixture.h"
#include "tests/standin/nvml_abi.h"

namespace regatta::standin {
namespace {

class Codec : public DriverTest {
 protected:
  void SetUp() override {
    if (is_real_driver()) GTEST_SKIP() << "pictures of the stand-in are no pictures";
    DriverTest::SetUp();
    ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
    ASSERT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device_), NVML_SUCCESS);
  }
  void TearDown() override {
    if (device_ == nullptr) return;
    EXPECT_EQ(NVML(nvmlShutdown)(), NVML_SUCCESS);
    DriverTest::TearDown();
  }
  template <typename Function>
  static Function* find(const char* library, const char* name) {
    void* const opened =
        dlopen((std::string(REGATTA_STANDIN_FOLDER) + library).c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(opened, nullptr) << dlerror();
    return opened == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(opened, name));
  }
  static NV_ENCODE_API_FUNCTION_LIST encoder_functions() {
    NV_ENCODE_API_FUNCTION_LIST list{};
    const auto create = find<decltype(NvEncodeAPICreateInstance)>("/libnvidia-encode.so.1",
                                                                  "NvEncodeAPICreateInstance");
    EXPECT_EQ(create(&list), NV_ENC_SUCCESS);
    return list;
  }
  unsigned sessions() const {
    unsigned count = 64;
    nvmlEncoderSessionInfo_t infos[64];
    EXPECT_EQ(NVML(nvmlDeviceGetEncoderSessions)(device_, &count, infos), NVML_SUCCESS);
    for (unsigned i = 0; i < count; ++i)
      EXPECT_EQ(infos[i].pid, static_cast<unsigned>(getpid()));
    return count;
  }

  nvmlDevice_t device_ = nullptr;
};

TEST_F(Codec, EncodesInTheTimeThatAPictureTakesAndIsCounted) {
  const NV_ENCODE_API_FUNCTION_LIST list = encoder_functions();
  const auto open_session =
      reinterpret_cast<NVENCSTATUS (*)(NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS*, void**)>(
          list.functions[kNvEncOpenEncodeSessionEx]);
  const auto initialize = reinterpret_cast<NVENCSTATUS (*)(void*, NV_ENC_INITIALIZE_PARAMS*)>(
      list.functions[kNvEncInitializeEncoder]);
  const auto encode = reinterpret_cast<NVENCSTATUS (*)(void*, NV_ENC_PIC_PARAMS*)>(
      list.functions[kNvEncEncodePicture]);
  const auto destroy =
      reinterpret_cast<NVENCSTATUS (*)(void*)>(list.functions[kNvEncDestroyEncoder]);
  void* encoder = nullptr;
  NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS wanted{.deviceType = 7, .device = context_};
  EXPECT_EQ(open_session(&wanted, &encoder), NV_ENC_ERR_INVALID_DEVICE);
  wanted.deviceType = NV_ENC_DEVICE_TYPE_CUDA;
  ASSERT_EQ(open_session(&wanted, &encoder), NV_ENC_SUCCESS);
  EXPECT_EQ(sessions(), 1U);
  NV_ENC_PIC_PARAMS picture{};
  EXPECT_EQ(encode(encoder, &picture), NV_ENC_ERR_ENCODER_NOT_INITIALIZED);
  NV_ENC_INITIALIZE_PARAMS size{};
  size.encodeWidth = 1920;
  size.encodeHeight = 1080;
  ASSERT_EQ(initialize(encoder, &size), NV_ENC_SUCCESS);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(encode(encoder, &picture), NV_ENC_SUCCESS);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(19));
  Time encoding{};
  for (const EngineInterval& interval : own_device()->engine_log())
    if (interval.engine == Engine::kEncode && interval.pid == static_cast<unsigned>(getpid()))
      encoding += interval.end - interval.start;
  constexpr std::uint64_t kPicture = 1920ULL * 1080 * 1000 / kPixelsPerMicrosecond + 1;
  EXPECT_EQ(encoding, 20 * Time(static_cast<Time::rep>(kPicture)));
  EXPECT_EQ(destroy(encoder), NV_ENC_SUCCESS);
  EXPECT_EQ(sessions(), 0U);
  unsigned percent = 0;
  unsigned period_us = 0;
  for (int i = 0; i < 100 && percent == 0; ++i) {
    usleep(50'000);
    ASSERT_EQ(NVML(nvmlDeviceGetEncoderUtilization)(device_, &percent, &period_us), NVML_SUCCESS);
  }
  EXPECT_GE(percent, 1U);
  EXPECT_EQ(period_us, 500'000U);
}

TEST_F(Codec, DecodesAndRefusesWhatIsNoPicture) {
  const auto create = find<decltype(cuvidCreateDecoder)>("/libnvcuvid.so.1", "cuvidCreateDecoder");
  const auto decode = find<decltype(cuvidDecodePicture)>("/libnvcuvid.so.1", "cuvidDecodePicture");
  const auto destroy =
      find<decltype(cuvidDestroyDecoder)>("/libnvcuvid.so.1", "cuvidDestroyDecoder");
  CUvideodecoder decoder = nullptr;
  CUVIDDECODECREATEINFO wanted{1920, 0};
  EXPECT_EQ(create(&decoder, &wanted), CUDA_ERROR_INVALID_VALUE);
  wanted.ulHeight = 1080;
  ASSERT_EQ(create(&decoder, &wanted), CUDA_SUCCESS);
  CUVIDPICPARAMS picture{120, 68};
  EXPECT_EQ(decode(decoder, &picture), CUDA_SUCCESS);
  picture.PicWidthInMbs = 0;
  EXPECT_EQ(decode(decoder, &picture), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(destroy(decoder), CUDA_SUCCESS);
  EXPECT_EQ(destroy(nullptr), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace regatta::standin
