// Programs that try to get more of the device's memory than their tenant's quota. The device's own
// count says what each got, and the most that it ever had.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include "tests/attacks/attack_path.h"
#include "tests/gpu_time/time_shared_machine.h"

namespace regatta::gpu_time {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1 << 20;

class MemoryAttack : public testing::Test {
 protected:
  explicit MemoryAttack(const MachineOptions& options = {}) : machine_(options) {}

  // Runs the program as a tenant of this name; the first line that it says, "" after `timeout`.
  std::string run(const Tenant& tenant, const std::string& name, std::vector<std::string> words,
                  Time timeout = seconds(20)) {
    words.insert(words.begin(), attack(name));
    auto output = os::make_pipe();
    machine_.run_program(tenant, words, output->write_end.get());
    output->write_end.reset();
    const Time end = clock_now() + timeout;
    std::string line;
    pollfd readable{output->read_end.get(), POLLIN, 0};
    while (clock_now() < end) {
      char letter = 0;
      if (::poll(&readable, 1, 10) == 0) continue;
      if (::read(readable.fd, &letter, 1) != 1 || letter == '\n') return line;
      line += letter;
    }
    return "";
  }
  // As a tenant with a quota of 100 MiB.
  std::string run_attack(const std::string& name, const std::vector<std::string>& words) {
    return run({.name = "attack", .memory = "100MiB", .is_unprivileged = true}, name, words);
  }
  // The daemon's books and the device's own count. Threads that still allocate are counted a moment
  // before the device has it.
  void expect_books_match() {
    long long books = -1;
    long long device = -2;
    for (const Time end = clock_now() + std::chrono::seconds(8);
         books != device && clock_now() < end;) {
      books = machine_.daemon().memory("used_bytes");
      device = static_cast<long long>(machine_.used_bytes());
    }
    EXPECT_EQ(books, device);
  }

  TimeSharedMachine machine_;
};

class ModuleAttack : public MemoryAttack, public testing::WithParamInterface<std::string> {};

TEST_P(ModuleAttack, OfSixGiBIsRefusedBeforeItIsLoaded) {
  EXPECT_EQ(run_attack("modules", {"1", "6144", GetParam()}), "0 loaded, then 2");
  EXPECT_EQ(machine_.most_used_bytes(), 0U);
  expect_books_match();
}

TEST_P(ModuleAttack, OneAfterTheOtherEndsAtTheQuota) {
  EXPECT_EQ(run_attack("modules", {"126", "8", GetParam()}), "12 loaded, then 2");
  EXPECT_EQ(machine_.most_used_bytes(), 96 * kMiB);
  expect_books_match();
}

TEST_P(ModuleAttack, BesideThreadsThatAllocateEndsAtTheQuota) {
  EXPECT_THAT(run_attack("modules", {"126", "8", GetParam(), "3"}), testing::EndsWith("then 2"));
  EXPECT_LE(machine_.most_used_bytes(), 100 * kMiB);
  expect_books_match();
}

INSTANTIATE_TEST_SUITE_P(Ways, ModuleAttack,
                         testing::Values("data", "data-ex", "fat", "file", "library",
                                         "library-file"),
                         [](const auto& way) {
                           std::string name = way.param;
                           std::erase(name, '-');
                           return name;
                         });

// Where nobody can say what a module takes it is loaded alone, measured, and taken back.
TEST_F(MemoryAttack, ModulesThatOnlyTheDriverCanReadEndAtTheQuota) {
  EXPECT_EQ(run_attack("modules", {"126", "8", "hidden"}), "12 loaded, then 2");
  EXPECT_EQ(machine_.used_bytes(), 96 * kMiB);
  EXPECT_EQ(machine_.most_used_bytes(), 104 * kMiB) << "one more, for a moment";
  expect_books_match();
}

TEST_F(MemoryAttack, ModulesThatOnlyTheDriverCanReadEndAtTheQuotaBesideThreads) {
  EXPECT_THAT(run_attack("modules", {"126", "8", "hidden", "3"}), testing::EndsWith("then 2"));
  EXPECT_LE(machine_.used_bytes(), 100 * kMiB);
  expect_books_match();
}

// The runtime library loads its modules through a table of its own: they are measured when
// something in them is looked up. Nobody can undo that, so nothing else is to be had.
TEST_F(MemoryAttack, ModulesByTheTableOfTheRuntimeEndWithTheFirstThatIsTooMuch) {
  EXPECT_EQ(run_attack("modules", {"126", "8", "table"}), "12 loaded, then 2");
  EXPECT_EQ(machine_.used_bytes(), 104 * kMiB);
  EXPECT_EQ(machine_.daemon().memory("used_bytes"), static_cast<long long>(100 * kMiB));
}

class ComparedMemoryAttack : public MemoryAttack {
 protected:
  ComparedMemoryAttack() : MemoryAttack({.has_nvml = true}) {}
};

TEST_F(ComparedMemoryAttack, WhatIsBeyondTheBooksIsShown) {
  EXPECT_EQ(run_attack("modules", {"1", "600", "table"}), "0 loaded, then 2");
  EXPECT_EQ(machine_.daemon().memory("used_bytes"), static_cast<long long>(100 * kMiB));
  Result<nlohmann::json> shown = nlohmann::json();
  for (int i = 0; i < 10; ++i) {  // NVML answers when it likes
    shown = machine_.daemon().query({{"request", "ps"}});
    if (shown && (*shown)["tenants"][0]["memory"][0].value("uncounted_bytes", 0) != 0) break;
    os::sleep_for(Seconds{0.5});
  }
  ASSERT_TRUE(shown);
  EXPECT_EQ((*shown)["tenants"][0]["memory"][0]["uncounted_bytes"], 500 * kMiB);
  const auto& process = (*shown)["tenants"][0]["processes"][0]["memory"][0];
  EXPECT_EQ(process["device_bytes"], 600 * kMiB);
  EXPECT_EQ(process["uncounted_bytes"], 500 * kMiB);
  EXPECT_EQ((*shown)["gpus"][0]["outside_bytes"], 0);
  const auto metrics =
      sharing::send_control_request(machine_.daemon().socket(), R"({"request":"metrics"})");
  ASSERT_TRUE(metrics);
  EXPECT_THAT(*metrics,
              testing::HasSubstr("regatta_gpu_memory_uncounted_bytes{tenant=\"attack\",gpu=\"0\"} "
                                 "524288000"));
}

// NVML lists the processes, and what they have is not available.
class UnmeasuredMemoryAttack : public MemoryAttack {
 protected:
  UnmeasuredMemoryAttack() : MemoryAttack(options()) {}
  ~UnmeasuredMemoryAttack() override { ::unsetenv(kVariable); }

 private:
  static constexpr const char* kVariable = "REGATTA_STANDIN_NO_PROCESS_MEMORY";
  static MachineOptions options() {
    ::setenv(kVariable, "1", 1);
    return {.has_nvml = true};
  }
};

// A text's code counts too, in whole blocks.
TEST_F(UnmeasuredMemoryAttack, ModulesCountAsFarAsTheirImagesSay) {
  EXPECT_EQ(run_attack("modules", {"126", "8", "data"}), "10 loaded, then 2");
  EXPECT_EQ(machine_.used_bytes(), 80 * kMiB);
  Result<nlohmann::json> shown = nlohmann::json();
  for (int i = 0; i < 10; ++i) {  // NVML answers when it likes
    shown = machine_.daemon().query({{"request", "ps"}});
    if (shown && !(*shown)["gpus"][0]["outside_bytes"].is_null()) break;
    os::sleep_for(Seconds{0.5});
  }
  ASSERT_TRUE(shown);
  EXPECT_EQ((*shown)["gpus"][0]["outside_bytes"], 0);
  ASSERT_FALSE((*shown)["tenants"].empty());
  EXPECT_EQ((*shown)["tenants"][0]["memory"][0].value("uncounted_bytes", 0ULL), 0U);
  EXPECT_FALSE((*shown)["tenants"][0]["processes"][0]["memory"][0].contains("device_bytes"));
}

// Opened once, by the driver: what is in it is there once.
TEST_F(MemoryAttack, ModulesFromAPipeEndAtTheQuota) {
  EXPECT_EQ(run_attack("modules", {"126", "8", "pipe"}), "12 loaded, then 2");
  EXPECT_EQ(machine_.used_bytes(), 96 * kMiB);
  expect_books_match();
}

// Each too small to be placed when it is loaded: the driver does that at the launch.
TEST_F(MemoryAttack, LibrariesWithSmallVariablesEndAtTheQuotaTogether) {
  EXPECT_THAT(run_attack("modules", {"1000", "500", "small-library"}), testing::EndsWith("then 2"));
  EXPECT_LE(machine_.most_used_bytes(), 102 * kMiB);
  EXPECT_GE(machine_.used_bytes(), 90 * kMiB);
  expect_books_match();
}

class FaultyMemoryAttack : public MemoryAttack {
 protected:
  ~FaultyMemoryAttack() override { ::unsetenv(kVariable); }
  std::string run_with(const std::string& faults, const std::vector<std::string>& words) {
    ::setenv(kVariable, faults.c_str(), 1);
    return run_attack("kept_library", words);
  }

 private:
  static constexpr const char* kVariable = "REGATTA_STANDIN_FAULTS";
};

// It is still there, so the next context has to have room for it.
TEST_F(FaultyMemoryAttack, ALibraryThatTheDriverDoesNotUnloadIsPlacedIntoEachContext) {
  EXPECT_EQ(run_with("cuLibraryUnload:1=999", {"60"}), "unload 999, context 2");
  EXPECT_EQ(machine_.used_bytes(), 60 * kMiB);
  expect_books_match();
}

// The driver would meet a handle that is no library any more.
TEST_F(FaultyMemoryAttack, ALibraryIsNotUnloadedWhileItIsPlaced) {
  EXPECT_EQ(run_with("cuLibraryGetModule:2~600000", {"8", "meanwhile"}),
            "unloaded after the library was placed");
  expect_books_match();
}

TEST_F(MemoryAttack, FunctionsOfTheFirstVersionCountAsThoseOfTodayOrAreRefused) {
  EXPECT_EQ(run_attack("first_version", {}),
            "cuMemAlloc 801, cuMemAllocPitch 801, cuMemcpyHtoD 801, cuMemcpyDtoH 801, "
            "cuArrayCreate 2, cuArray3DCreate 2, cuArrayCreate 0, free 96 of 100 MiB, "
            "total 100 MiB, cuLaunch 0, cuLaunchGrid 0, cuLaunchGridAsync 0, on one device 0, "
            "on two devices 801, 4 launches");
  EXPECT_EQ(machine_.used_bytes(), 4 * kMiB);
  expect_books_match();
}

TEST_F(MemoryAttack, SizesThatWrapAreRefused) {
  EXPECT_EQ(run_attack("wrapping_sizes", {}), "got 0");
  EXPECT_EQ(machine_.most_used_bytes(), 0U);
  expect_books_match();
}

MachineOptions overcommitted() {
  MachineOptions options{.memory = "512MiB"};
  options.daemon.gpus = {Bytes{512LL << 20}};
  options.daemon.host_memory = Bytes{4LL << 30};
  options.daemon.residency.timeout = Seconds{0.5};
  return options;
}

class ResidencyAttack : public MemoryAttack, public testing::WithParamInterface<const char*> {
 protected:
  ResidencyAttack() : MemoryAttack(overcommitted()) {}
};

// A client may say anything of itself in its page: nobody else's memory moves for it.
TEST_P(ResidencyAttack, ByNonsenseInThePageStopsNobodyElse) {
  EXPECT_EQ(
      run({.name = "attack", .memory = "384MiB", .is_overcommitted = true, .is_unprivileged = true},
          "resident_word", {GetParam()}),
      "writes");
  EXPECT_EQ(run({.name = "honest", .memory = "384MiB", .is_overcommitted = true}, "fill", {"320"}),
            "filled");
  EXPECT_EQ(run({.name = "other", .memory = "384MiB", .is_overcommitted = true}, "fill", {"320"}),
            "filled");
}

INSTANTIATE_TEST_SUITE_P(Words, ResidencyAttack,
                         testing::Values("18446744073709551615", "9223372036854775808", "402653184",
                                         "0"));

}  // namespace
}  // namespace regatta::gpu_time
