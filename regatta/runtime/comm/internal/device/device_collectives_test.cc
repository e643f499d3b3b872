// Collectives of buffers in device memory. On two devices and a driver of our own
// (tests/standin/README.md), or on real ones where REGATTA_TEST_CUDA names the driver's library:
// scripts/gpu-check.sh.
#include "regatta/runtime/comm/internal/device/device_collectives.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/base/os/process.h"
#include "regatta/runtime/comm/internal/test_forked_world.h"
#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_status.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {
namespace {

// Two devices of our own while tests run that use some; ranks that are processes share them.
class Devices : public testing::Environment {
 public:
  void SetUp() override {
    const auto& tests = *testing::UnitTest::GetInstance();
    bool is_wanted = false;
    for (int i = 0; i < tests.total_test_suite_count(); ++i) {
      const testing::TestSuite& suite = *tests.GetTestSuite(i);
      is_wanted |= suite.should_run() && std::string(suite.name()).starts_with("Device");
    }
    if (!is_wanted || std::getenv("REGATTA_TEST_CUDA") != nullptr) return;
    std::string folder = "/tmp/regatta-devices-XXXXXX";
    folder_ = mkdtemp(folder.data());
    std::string sockets;
    for (const char* const name : {"/0", "/1"}) {
      start(folder_ + name);
      sockets += (sockets.empty() ? "" : ":") + folder_ + name;
    }
    setenv("REGATTA_STANDIN", sockets.c_str(), 1);
  }
  void TearDown() override {
    for (const pid_t pid : pids_)
      (void)os::terminate(pid);
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

 private:
  // Copies take their time: bytes that nobody waited for are seen to be missing.
  void start(const std::string& socket) {
    const auto pid = os::spawn({REGATTA_STANDIN_DEVICE, "--socket", socket, "--memory", "256MiB",
                                "--copy-speed", "200MB/s"},
                               {});
    ASSERT_TRUE(pid) << pid.error().message;
    pids_.push_back(*pid);
    for (int i = 0; i < 60'000 && access(socket.c_str(), F_OK) != 0; ++i)
      usleep(1000);
  }

  std::string folder_;
  std::vector<pid_t> pids_;
};
const testing::Environment* const kDevices = testing::AddGlobalTestEnvironment(new Devices);

const device::CudaDriver& driver() {
  static const device::CudaDriver loaded = [] {
    const char* real = std::getenv("REGATTA_TEST_CUDA");
    auto driver = device::load_cuda_driver(real != nullptr ? real : REGATTA_STANDIN_CUDA);
    EXPECT_TRUE(driver) << (driver ? "" : driver.error().message);
    return *driver;
  }();
  return loaded;
}

// Memory of a device, filled and read by copies that wait.
template <typename T>
class DeviceVector {
 public:
  explicit DeviceVector(const std::vector<T>& values, int device = 0)
      : count_(values.size()), queue_(std::move(*DeviceStream::open(driver(), device))) {
    CUcontext popped = nullptr;
    EXPECT_EQ(driver().primary_context_retain(&context_, device), CUDA_SUCCESS);
    EXPECT_EQ(driver().context_push(context_), CUDA_SUCCESS);
    EXPECT_EQ(driver().alloc(&address_, std::max<std::size_t>(count_, 1) * sizeof(T)),
              CUDA_SUCCESS);
    EXPECT_EQ(driver().context_pop(&popped), CUDA_SUCCESS);
    if (count_ == 0) return;
    const auto copied = queue_->to_device(data(), values.data(), count_ * sizeof(T));
    EXPECT_TRUE(copied && queue_->wait(*copied));
  }
  DeviceVector(const DeviceVector&) = delete;
  DeviceVector& operator=(const DeviceVector&) = delete;
  ~DeviceVector() {
    CUcontext popped = nullptr;
    driver().context_push(context_);
    driver().free(address_);
    driver().context_pop(&popped);
  }

  T* data() const { return reinterpret_cast<T*>(address_); }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    if (count_ == 0) return values;
    const auto copied = queue_->to_host(values.data(), data(), count_ * sizeof(T));
    EXPECT_TRUE(copied && queue_->wait(*copied));
    return values;
  }

 private:
  std::size_t count_;
  std::unique_ptr<DeviceStream> queue_;
  CUcontext context_ = nullptr;
  CUdeviceptr address_ = 0;
};

std::vector<std::int32_t> numbers(std::size_t count, int seed) {
  std::vector<std::int32_t> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<std::int32_t>(i * 13 + static_cast<std::size_t>(seed) * 7);
  return values;
}

constexpr Bytes kSmallPiece{4096};

TEST(DeviceMemory, IsToldFromMemoryOfTheHost) {
  const DeviceVector<int> on_device({1, 2, 3});
  const int on_host = 0;
  EXPECT_EQ(device_of(driver(), on_device.data() + 2), 0);
  EXPECT_EQ(device_of(driver(), &on_host), std::nullopt);
  EXPECT_EQ(device_of(driver(), nullptr), std::nullopt);
}

TEST(DeviceMemory, OfADeviceThatIsNotThereIsAnError) {
  const auto stream = DeviceStream::open(driver(), 77);
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().message, "cannot use device 77: invalid device ordinal");
}

TEST(CudaDriver, ThatIsMissingOrIsNoneIsAnError) {
  EXPECT_EQ(device::load_cuda_driver("libno-such-driver.so").error().message,
            "there is no CUDA driver on this machine (libno-such-driver.so)");
  EXPECT_EQ(device::load_cuda_driver("libc.so.6").error().message,
            "libc.so.6 is too old: CUDA 11 or later is needed");
}

// Less than a piece, whole pieces, many pieces and a rest; two ranks' buffers on devices, one's on
// the host.
TEST(DeviceCollectives, AllReduceSumsWhereverTheBuffersLie) {
  for (const std::size_t count : {0UL, 1UL, 1024UL, 3 * 1024UL, 12345UL}) {
    run_all(TestLayout::kTcp, 3, [&](Communicator& world) {
      DeviceCollectives calls(world, driver(), kSmallPiece);
      const int rank = world.rank().value;
      const auto in = numbers(count, rank);
      std::vector<std::int32_t> out(count);
      if (rank == 2) {
        expect_ok(calls.all_reduce(in.data(), out.data(), count, DataType::kI32, ReduceOp::kSum));
      } else {
        const DeviceVector<std::int32_t> device_in(in);
        const DeviceVector<std::int32_t> device_out(out);
        expect_ok(calls.all_reduce(device_in.data(), device_out.data(), count, DataType::kI32,
                                   ReduceOp::kSum));
        out = device_out.read();
        EXPECT_EQ(device_in.read(), in);
      }
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(out[i], numbers(count, 0)[i] + numbers(count, 1)[i] + numbers(count, 2)[i]);
    });
  }
}

TEST(DeviceCollectives, AllReduceInPlaceAndBroadcastFromEveryRoot) {
  run_all(TestLayout::kShm, 2, [](Communicator& world) {
    constexpr std::size_t kCount = 5000;
    DeviceCollectives calls(world, driver(), kSmallPiece);
    const DeviceVector<std::int32_t> data(std::vector<std::int32_t>(kCount, 3));
    expect_ok(
        calls.all_reduce(data.data(), data.data(), kCount, DataType::kI32, ReduceOp::kProduct));
    EXPECT_EQ(data.read(), std::vector<std::int32_t>(kCount, 9));
    for (int root = 0; root < 2; ++root) {
      const DeviceVector<std::int32_t> told(numbers(kCount, world.rank().value));
      expect_ok(calls.broadcast(told.data(), kCount, DataType::kI32, Rank{root}));
      EXPECT_EQ(told.read(), numbers(kCount, root));
    }
  });
}

// Runs `call` with buffers of rank 2 on the host and of the others on a device; returns the output.
template <typename F>
std::vector<std::int32_t> with_buffers(int rank, const std::vector<std::int32_t>& in,
                                       std::size_t out_count, const F& call) {
  std::vector<std::int32_t> out(out_count, -1);
  if (rank == 2) {
    expect_ok(call(in.data(), out.data()));
    return out;
  }
  const DeviceVector<std::int32_t> device_in(in);
  const DeviceVector<std::int32_t> device_out(out);
  expect_ok(call(device_in.data(), device_out.data()));
  return device_out.read();
}

std::int32_t number(std::size_t i, int seed) {
  return static_cast<std::int32_t>(i * 13 + static_cast<std::size_t>(seed) * 7);
}

TEST(DeviceCollectives, PartsComeFromAndGoToEveryRank) {
  for (const std::size_t count : {0UL, 1UL, 170UL, 171UL, 5000UL}) {
    run_all(TestLayout::kTcp, 3, [&](Communicator& world) {
      DeviceCollectives calls(world, driver(), kSmallPiece);
      const int rank = world.rank().value;
      const auto mine = static_cast<std::size_t>(rank) * count;
      const auto gathered =
          with_buffers(rank, numbers(count, rank), 3 * count, [&](const void* in, void* out) {
            return calls.all_gather(in, out, count, DataType::kI32);
          });
      const auto exchanged =
          with_buffers(rank, numbers(3 * count, rank), 3 * count, [&](const void* in, void* out) {
            return calls.all_to_all(in, out, count, DataType::kI32);
          });
      const auto summed =
          with_buffers(rank, numbers(3 * count, rank), count, [&](const void* in, void* out) {
            return calls.reduce_scatter(in, out, count, DataType::kI32, ReduceOp::kSum);
          });
      for (std::size_t i = 0; i < count; ++i) {
        for (int from = 0; from < 3; ++from) {
          const std::size_t at = static_cast<std::size_t>(from) * count + i;
          ASSERT_EQ(gathered[at], number(i, from));
          ASSERT_EQ(exchanged[at], number(mine + i, from));
        }
        ASSERT_EQ(summed[i], number(mine + i, 0) + number(mine + i, 1) + number(mine + i, 2));
      }
    });
  }
}

// The smallest piece there is holds less than an element of every part.
TEST(DeviceCollectives, PartsOfManyRanksFitInTheirStages) {
  run_all(TestLayout::kShm, 9, [](Communicator& world) {
    DeviceCollectives calls(world, driver(), Bytes{64});
    const double in[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    double out[9] = {};
    expect_ok(calls.all_to_all(in, out, 1, DataType::kF64));
    for (const double value : out)
      EXPECT_EQ(value, world.rank().value + 1);
  });
}

TEST(DeviceCollectives, BuffersOnTwoDevicesAreRefused) {
  run_all(TestLayout::kShm, 1, [](Communicator& world) {
    DeviceCollectives calls(world, driver());
    const DeviceVector<std::int32_t> in({1});
    std::int32_t out = 0;
    const Status status = calls.all_reduce(in.data(), &out, 1, DataType::kI32, ReduceOp::kSum);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kInvalidInput);
  });
}

// They wait for the other ranks, and a group begins with its end.
TEST(DeviceCollectives, InsideAGroupAreRefused) {
  run_all(TestLayout::kShm, 2, [](Communicator& world) {
    DeviceCollectives calls(world, driver());
    const Rank peer{1 - world.rank().value};
    const std::int32_t in[2] = {1, 2};
    std::int32_t out[2] = {};
    constexpr auto kI32 = DataType::kI32;
    std::vector<Status> ends;
    expect_ok(group_calls([&] {
                ends.push_back(calls.all_reduce(in, out, 1, kI32, ReduceOp::kSum));
                ends.push_back(calls.all_gather(in, out, 1, kI32));
                ends.push_back(calls.reduce_scatter(in, out, 1, kI32, ReduceOp::kSum));
                ends.push_back(calls.all_to_all(in, out, 1, kI32));
                ends.push_back(calls.broadcast(out, 1, kI32, Rank{0}));
                ends.push_back(calls.send(in, 1, kI32, peer));
                ends.push_back(calls.recv(out, 1, kI32, peer));
              }).wait());
    ASSERT_EQ(ends.size(), 7U);
    for (const Status& end : ends) {
      ASSERT_FALSE(end);
      EXPECT_EQ(end.error().code, Code::kInvalidInput);
    }
    expect_ok(calls.all_reduce(in, out, 1, kI32, ReduceOp::kSum));
    EXPECT_EQ(out[0], 2);
  });
}

// A device whose host has no pages to lock, at the sender, then at the receiver.
TEST(DeviceCollectives, AMessageFailsOnBothRanksWhereOneCannotUseItsDevice) {
  device::CudaDriver broken = driver();
  broken.alloc_host = [](void**, std::size_t) { return CUresult{2}; };  // out of memory
  for (const int bad : {0, 1})
    run_all(TestLayout::kTcp, 2, [&](Communicator& world) {
      const int rank = world.rank().value;
      DeviceCollectives calls(world, rank == bad ? broken : driver());
      const DeviceVector<std::int32_t> data({1, 2, 3});
      const Status end = rank == 0 ? calls.send(data.data(), 3, DataType::kI32, Rank{1})
                                   : calls.recv(data.data(), 3, DataType::kI32, Rank{0});
      ASSERT_FALSE(end);
      EXPECT_THAT(end.error().message,
                  testing::HasSubstr(rank == bad ? "lock pages for device 0"
                                                 : "cannot use its device; see its own error"));
    });
}

// A rank's process sends to another's; returns what that one has to say.
std::string receive_numbers(TestLayout layout, bool is_peer_copy) {
  ForkedWorld world(2);
  world.start(layout, [&](Communicator& ranks, SharedTestState&) -> std::string {
    constexpr std::size_t kCount = 30000;
    constexpr std::size_t kSkipped = 100;  // the message begins inside of an allocation
    DeviceCollectives calls(ranks, driver(), kSmallPiece);
    if (ranks.rank().value == 0) {
      const DeviceVector<std::int32_t> data(numbers(kCount + kSkipped, 5));
      const Status sent = calls.send(data.data() + kSkipped, kCount, DataType::kI32, Rank{1});
      return sent ? "" : sent.error().message;
    }
    if (!is_peer_copy) {
      std::vector<std::int32_t> data(kCount);
      const Status got = calls.recv(data.data(), kCount, DataType::kI32, Rank{0});
      if (!got) return got.error().message;
      if (calls.peer_bytes() != 0) return "came straight from the device";
      return data.back() == numbers(kCount + kSkipped, 5).back() ? "" : "wrong numbers";
    }
    const DeviceVector<std::int32_t> data(std::vector<std::int32_t>(kCount, -1));
    const Status got = calls.recv(data.data(), kCount, DataType::kI32, Rank{0});
    if (!got) return got.error().message;
    if (calls.peer_bytes() != kCount * 4) return "did not come straight from the device";
    auto wanted = numbers(kCount + kSkipped, 5);
    wanted.erase(wanted.begin(), wanted.begin() + kSkipped);
    return data.read() == wanted ? "" : "wrong numbers";
  });
  EXPECT_TRUE(world.wait(Seconds{60}));
  EXPECT_EQ(world.result(0), "");
  return world.result(1);
}

TEST(DeviceCollectives, AMessageInsideAServerGoesFromDeviceToDevice) {
  EXPECT_EQ(receive_numbers(TestLayout::kShm, true), "");
}

TEST(DeviceCollectives, AMessageToMemoryOfTheHostGoesThroughStages) {
  EXPECT_EQ(receive_numbers(TestLayout::kTcp, false), "");
}

}  // namespace
}  // namespace regatta::comm
