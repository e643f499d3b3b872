// Copies and pictures of unchanged programs: each tenant has its part of the link and of the
// codecs, and what is cut arrives whole.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/hook/tenant.h"

namespace regatta::hook_test {
namespace {

const std::string kProgram = REGATTA_PROGRAM;
constexpr std::uint64_t kLink = 400'000'000;  // bytes a second: no trouble for a test's machine
// Pictures of full HD a second. The stand-in's engines do a thousand.
constexpr double kPictures = 900;
constexpr std::uint64_t kEncoder = 900 * 1920 * 1080;
constexpr std::uint64_t kDecoder = 900 * 1920 * 1088;

class Engines : public testing::Test {
 protected:
  DeviceProcess device_{{"--memory", "1GiB", "--copy-speed", "400MB/s"}};
  sharing::TestDaemon daemon_{
      {Bytes{0}},
      {.engine_rates = {kLink, kLink, kEncoder, kDecoder}, .engine_sessions = {0, 0, 10, 4}}};

  std::unique_ptr<TenantProgram> start(const std::string& name, int compute_ppm,
                                       std::vector<std::string> words) {
    words.insert(words.begin(), kProgram);
    auto program = std::make_unique<TenantProgram>(daemon_, name, 256 * kMiB, words,
                                                   environment_on(device_, HookMode::kPreloaded));
    EXPECT_EQ(program->read_line(), "ready");
    EXPECT_TRUE(daemon_.query({{"request", "set"}, {"name", name}, {"compute_ppm", compute_ppm}}));
    return program;
  }
  // Its share of `whole` in each second; a program that had to wait for a processor reports longer
  // ones.
  static std::vector<double> parts(TenantProgram& program, double whole) {
    std::vector<double> parts;
    double units_before = 0;
    double time_before = 0;
    for (std::string line = program.read_line(); !line.empty(); line = program.read_line()) {
      const double units = std::stod(line);
      const double time = std::stod(line.substr(line.find(' ')));
      parts.push_back((units - units_before) / (time - time_before) / whole);
      units_before = units;
      time_before = time;
    }
    return parts;
  }
  // Runs the words in a tenant of 30 and in one of 70 %.
  void expect_30_and_70(const std::vector<std::string>& words, double whole) {
    const auto small = start("small", 300'000, words);
    const auto large = start("large", 700'000, words);
    small->go_on();
    large->go_on();
    const auto of_small = parts(*small, whole);
    const auto of_large = parts(*large, whole);
    ASSERT_EQ(of_small.size(), 4U);
    ASSERT_EQ(of_large.size(), 4U);
    for (std::size_t second = 1; second < 4; ++second) {
      // The allowed rate is exact; how much of it the test machine achieves is not tested.
      EXPECT_LT(of_small[second], 0.3 + 0.02);
      EXPECT_LT(of_large[second], 0.7 + 0.02);
      EXPECT_GT(of_small[second], 0.3 * 0.5);
      EXPECT_GT(of_large[second], 0.7 * 0.5);
    }
  }
  double total(const std::string& engine) {
    const auto listing = daemon_.query({{"request", "ps"}});
    for (const auto& one : (*listing)["tenants"][0]["engines"])
      if (one["engine"] == engine) return one["total"];
    return 0;
  }
};

const std::vector<std::string> kCopyIn = {"copy-for", "4", "2097152", "in"};
const std::vector<std::string> kCopyOut = {"copy-for", "4", "2097152", "out"};

TEST_F(Engines, CarryCopiesThatArriveWholeWhenTheyAreCut) {
  const auto program = start("a", 500'000, {"copy"});
  program->go_on();
  for (const char* const way : {"now", "later", "rows", "boxes", "batches", "between"})
    EXPECT_EQ(program->read_line(), std::string(way) + " the same");
  EXPECT_EQ(program->finish(), 0);
}

TEST_F(Engines, GiveTwoTenantsTheirPartsOfTheLink) {
  expect_30_and_70(kCopyIn, kLink);
}

TEST_F(Engines, GiveTwoTenantsTheirPartsOfTheEncoder) {
  expect_30_and_70({"code-for", "4", "encode"}, kPictures);
}

TEST_F(Engines, GiveTwoTenantsTheirPartsOfTheDecoder) {
  expect_30_and_70({"code-for", "4", "decode"}, kPictures);
}

TEST_F(Engines, GiveOneTenantNoMoreThanItsPartUnlessThePolicyDoes) {
  const auto alone = start("a", 250'000, kCopyOut);
  alone->go_on();
  EXPECT_GT(std::stod(alone->read_line()), 0);
  ::usleep(1'000'000);
  ASSERT_TRUE(daemon_.query({{"request", "policy"}, {"policy", "burst-weight"}}));
  const auto rest = parts(*alone, kLink);
  ASSERT_EQ(rest.size(), 3U);
  EXPECT_LT(rest.front(), 0.3);  // of two seconds
  EXPECT_GT(rest.back(), 0.4);
}

TEST_F(Engines, CountCopiesForTheirTenant) {
  const auto program = start("a", 1'000'000, {"copy"});
  program->go_on();
  double in = 0;
  double out = 0;
  for (int i = 0; i < 6; ++i) {
    EXPECT_NE(program->read_line(), "");
    in = total("copy_to_device");
    out = total("copy_from_device");
  }
  EXPECT_EQ(program->finish(), 0);
  // Rows and boxes are without the seven.
  constexpr double kEach = 6.0 * (40 << 20) + 4 * 7;
  EXPECT_DOUBLE_EQ(in, kEach);
  EXPECT_DOUBLE_EQ(out, kEach);
}

TEST_F(Engines, OpenAsManySessionsAsATenantsPartAndTheSameAgainAfterTheyWereClosed) {
  const auto program = start("a", 300'000, {"sessions"});
  program->go_on();
  EXPECT_EQ(program->read_line(), "3 encoders, then 10");  // NV_ENC_ERR_OUT_OF_MEMORY
  EXPECT_EQ(program->read_line(), "3 encoders, then 10");
  EXPECT_EQ(program->read_line(), "1 decoders, then 2");  // CUDA_ERROR_OUT_OF_MEMORY
  EXPECT_EQ(program->finish(), 0);
}

// They are not counted later, as memory is.
TEST_F(Engines, OpenSessionsUncountedWithoutADaemonWhereTheTenantIsOpenOnFault) {
  testing::internal::CaptureStderr();
  const auto program = start("a", 300'000, {"sessions"});
  EXPECT_TRUE(daemon_.query({{"request", "set"}, {"name", "a"}, {"on_fault", "open"}}));
  daemon_.kill();
  program->go_on();
  EXPECT_EQ(program->read_line(), "100 encoders, then 0");
  program->kill();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::HasSubstr("; sessions of codecs are not counted\n"));
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("memory")));
}

}  // namespace
}  // namespace regatta::hook_test
