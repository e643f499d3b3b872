// tests/standin/fixture.h: the driver under test: the stand-in with a device of its own, or the one
// that REGATTA_CUDA_LIBRARY names, on its own devices.
#pragma once

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <sys/types.h>

#include "tests/standin/api.h"
#include "tests/standin/device.h"

namespace regatta::standin {

constexpr std::uint64_t kMiB = 1ULL << 20;

// A device server of this process; ends with it.
class TestDevice {
 public:
  explicit TestDevice(const std::vector<std::string>& options);
  ~TestDevice();
  const std::string& socket() const { return socket_; }
  std::vector<Usage> usage() const;  // what the device itself counts
  std::vector<Interval> log() const;
  std::vector<EngineInterval> engine_log() const;
  void end();

 private:
  std::string folder_;
  std::string socket_;
  pid_t pid_ = -1;
};

// Another process that uses the device: it does what programs.cc has under `name`, says a line when
// it is ready, and ends when its input does.
class TestClient {
 public:
  TestClient(const TestDevice& device, const std::string& name, const std::string& argument);
  // On the devices of this process.
  TestClient(const std::string& name, const std::string& argument,
             const std::vector<std::string>& environment = {});
  ~TestClient();
  std::string read_line();              // what it says next
  bool has_line(int timeout_ms) const;  // begins to say one within this time
  void write_line(const std::string& text);
  void kill();
  void finish();  // closes its input, and waits for its end
  pid_t pid() const { return pid_; }

 private:
  void start(const std::string& name, const std::string& argument,
             const std::vector<std::string>& environment);

  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
};

// Bytes that travel as a line of text.
std::string to_hex(const void* bytes, std::size_t count);
void from_hex(const std::string& line, void* bytes, std::size_t count);

bool is_real_driver();
void* driver_symbol(const char* name);  // null when it has none
template <typename Function>
Function* driver_function(const char* name) {
  return reinterpret_cast<Function*>(driver_symbol(name));
}
// CU(cuMemAlloc_v2)(&address, bytes)
#define CU(name) (regatta::standin::driver_function<decltype(::name)>(#name))

// The same of libnvidia-ml.so.1, or of the library that REGATTA_NVML_LIBRARY names.
void* nvml_symbol(const char* name);
// NVML(nvmlDeviceGetCount_v2)(&count)
#define NVML(name) (reinterpret_cast<decltype(&::name)>(regatta::standin::nvml_symbol(#name)))

extern const char* const
    kKernels;  // PTX with spin_1us to spin_20ms, spin_ns(nanoseconds) and others
CUresult launch(CUfunction function, CUstream stream, void** parameters = nullptr);

// A context of device 0 that is current, and the kernels.
class DriverTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  CUfunction kernel(const char* name) const;

  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

// Runs in a client process: see TestClient.
int run_client(const std::string& name, const std::string& argument);
// The device of the tests in this process, none with a real driver.
TestDevice* own_device();

}  // namespace regatta::standin
