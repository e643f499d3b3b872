#include "tests/standin/fixture.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "tests/standin/device_connection.h"

namespace regatta::standin {
namespace {

std::unique_ptr<TestDevice> device_of_tests;

std::string library_path() {
  const char* const named = std::getenv("REGATTA_CUDA_LIBRARY");
  return named == nullptr ? REGATTA_STANDIN_CUDA : named;
}

std::vector<Packet> ask(const std::string& socket, PacketType question) {
  // Its threads live on: the link is never freed.
  static auto* const links = new std::map<std::string, DeviceConnection*>;
  DeviceConnection*& link = (*links)[socket];
  if (link == nullptr) {
    link = new DeviceConnection;
    if (!link->connect(socket)) return {};
  }
  std::vector<Packet> lines;
  link->call({.message = question}, &lines);
  return lines;
}

class Environment : public testing::Environment {
 public:
  void SetUp() override {
    if (is_real_driver()) return;
    device_of_tests = std::make_unique<TestDevice>(std::vector<std::string>{"--memory", "256MiB"});
    setenv("REGATTA_STANDIN", device_of_tests->socket().c_str(), 1);
  }
  void TearDown() override { device_of_tests.reset(); }
};

}  // namespace

TestDevice::TestDevice(const std::vector<std::string>& options) {
  std::string folder = "/tmp/standin-XXXXXX";
  folder_ = mkdtemp(folder.data());
  socket_ = folder_ + "/device";
  std::vector<std::string> arguments = {REGATTA_STANDIN_DEVICE, "--socket", socket_};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const auto pid = os::spawn(arguments, {});
  if (!pid) {
    ADD_FAILURE() << pid.error().message;
    return;
  }
  pid_ = *pid;
  for (int i = 0; i < 60'000 && access(socket_.c_str(), F_OK) != 0; ++i)
    usleep(1000);
}

void TestDevice::end() {
  if (pid_ > 0) (void)os::terminate(pid_);
  pid_ = -1;
}

TestDevice::~TestDevice() {
  end();
  std::filesystem::remove_all(folder_);
}

std::vector<Usage> TestDevice::usage() const {
  std::vector<Usage> usage;
  for (const Packet& line : ask(socket_, PacketType::kUsage))
    usage.push_back({line.width, line.bytes, Time(line.time_ns), line.sequence});
  return usage;
}

std::vector<Interval> TestDevice::log() const {
  std::vector<Interval> log;
  for (const Packet& line : ask(socket_, PacketType::kLog))
    log.push_back({line.width, line.context, Time(line.time_ns), Time(line.end_time_ns)});
  return log;
}

std::vector<EngineInterval> TestDevice::engine_log() const {
  std::vector<EngineInterval> log;
  for (const Packet& line : ask(socket_, PacketType::kEngineLog))
    log.push_back({.pid = line.width,
                   .engine = line.engine,
                   .start = Time(line.time_ns),
                   .end = Time(line.end_time_ns),
                   .bytes = line.bytes});
  return log;
}

TestClient::TestClient(const TestDevice& device, const std::string& name,
                       const std::string& argument) {
  start(name, argument, {"REGATTA_STANDIN=" + device.socket()});
}

TestClient::TestClient(const std::string& name, const std::string& argument,
                       const std::vector<std::string>& environment) {
  start(name, argument, environment);
}

void TestClient::start(const std::string& name, const std::string& argument,
                       const std::vector<std::string>& environment) {
  auto input = os::make_pipe();
  auto output = os::make_pipe();
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto pid =
      os::spawn({self, "--client", name, argument}, {.environment = environment,
                                                     .stdin_fd = input->read_end.get(),
                                                     .stdout_fd = output->write_end.get()});
  if (!pid) ADD_FAILURE() << pid.error().message;
  pid_ = pid ? *pid : -1;
  input_ = input->write_end.release();
  output_ = output->read_end.release();
}

TestClient::~TestClient() {
  if (pid_ > 0) kill();
  close(input_);
  close(output_);
}

std::string TestClient::read_line() {
  std::string line;
  for (char letter = 0; read(output_, &letter, 1) == 1 && letter != '\n';)
    line += letter;
  return line;
}

bool TestClient::has_line(int timeout_ms) const {
  pollfd entry{output_, POLLIN, 0};
  return poll(&entry, 1, timeout_ms) == 1;
}

void TestClient::write_line(const std::string& text) {
  const std::string line = text + "\n";
  EXPECT_EQ(write(input_, line.data(), line.size()), static_cast<ssize_t>(line.size()));
}

void TestClient::kill() {
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void TestClient::finish() {
  close(input_);
  input_ = -1;
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::string to_hex(const void* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<const unsigned char*>(bytes)[i]);
    text += digits;
  }
  return text;
}

void from_hex(const std::string& line, void* bytes, std::size_t count) {
  ASSERT_EQ(line.size(), 2 * count) << line;
  for (std::size_t i = 0; i < count; ++i)
    static_cast<unsigned char*>(bytes)[i] =
        static_cast<unsigned char>(std::stoi(line.substr(2 * i, 2), nullptr, 16));
}

bool is_real_driver() {
  return std::getenv("REGATTA_CUDA_LIBRARY") != nullptr;
}

void* driver_symbol(const char* name) {
  static void* const library = dlopen(library_path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    ADD_FAILURE() << dlerror();
    std::abort();
  }
  return dlsym(library, name);
}

void* nvml_symbol(const char* name) {
  const char* const named = std::getenv("REGATTA_NVML_LIBRARY");
  const char* const path = named != nullptr   ? named
                           : is_real_driver() ? "libnvidia-ml.so.1"
                                              : REGATTA_STANDIN_NVML;
  static void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    ADD_FAILURE() << dlerror();
    std::abort();
  }
  return dlsym(library, name);
}

TestDevice* own_device() {
  return device_of_tests.get();
}

const char* const kKernels = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry spin_1us() { ret; }
.visible .entry spin_200us() { ret; }
.visible .entry spin_5ms() { ret; }
.visible .entry spin_20ms() { ret; }
.visible .entry spin_1ms_fails_719() { ret; }
.visible .entry spin_forever() { ret; }
.visible .entry spin_ns(.param .u64 spin_ns_param_0) { ret; }
)";

CUresult launch(CUfunction function, CUstream stream, void** parameters) {
  return CU(cuLaunchKernel)(function, 1024, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr);
}

void DriverTest::SetUp() {
  ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuCtxCreate_v2)(&context_, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuModuleLoadData)(&module_, kKernels), CUDA_SUCCESS);
}

void DriverTest::TearDown() {
  if (context_ == nullptr) return;
  EXPECT_EQ(CU(cuCtxDestroy_v2)(context_), CUDA_SUCCESS);
}

CUfunction DriverTest::kernel(const char* name) const {
  CUfunction function = nullptr;
  EXPECT_EQ(CU(cuModuleGetFunction)(&function, module_, name), CUDA_SUCCESS);
  return function;
}

}  // namespace regatta::standin

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--client")
    return regatta::standin::run_client(argv[2], argv[3]);
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new regatta::standin::Environment);
  return RUN_ALL_TESTS();
}
