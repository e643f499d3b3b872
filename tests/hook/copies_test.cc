// Copies of unchanged programs between host and device: each tenant has its part of the link, and
// what is cut arrives whole.
#include <memory>
#include <string>
#include <vector>

#include "tests/hook/tenant.h"

namespace regatta::hook_test {
namespace {

const std::string kProgram = REGATTA_PROGRAM;
constexpr double kLink = 400e6;  // bytes a second: so little that a test's machine has no trouble

class Copies : public testing::Test {
 protected:
  Device device_{{"--memory", "1GiB", "--copy-speed", "400MB/s"}};
  vgpu::TestDaemon daemon_{{Bytes{0}},
                           {.engine_rates = {static_cast<std::uint64_t>(kLink),
                                             static_cast<std::uint64_t>(kLink), 0, 0}}};

  std::unique_ptr<TenantProgram> start(const std::string& name, int compute_ppm,
                                       const std::vector<std::string>& words) {
    auto program = std::make_unique<TenantProgram>(daemon_, name, 256 * kMiB, words,
                                                   on(device_, How::kPreloaded));
    EXPECT_EQ(program->read_line(), "ready");
    set(name, compute_ppm);
    return program;
  }
  void set(const std::string& name, int compute_ppm) {
    EXPECT_TRUE(daemon_.ask({{"ask", "set"}, {"name", name}, {"compute_ppm", compute_ppm}}));
  }
  // What it copied in each second, as a part of the link.
  static std::vector<double> parts(TenantProgram& program) {
    std::vector<double> parts;
    double before = 0;
    for (std::string line = program.read_line(); !line.empty(); line = program.read_line()) {
      parts.push_back((std::stod(line) - before) / kLink);
      before = std::stod(line);
    }
    return parts;
  }
  double total(const std::string& engine) {
    const auto books = daemon_.ask({{"ask", "ps"}});
    for (const auto& one : (*books)["tenants"][0]["engines"])
      if (one["engine"] == engine) return one["total"];
    return 0;
  }
};

const std::vector<std::string> kCopyIn = {kProgram, "copy-for", "4", "2097152", "in"};
const std::vector<std::string> kCopyOut = {kProgram, "copy-for", "4", "2097152", "out"};

TEST_F(Copies, ArriveWholeWhenTheyAreCut) {
  const auto program = start("a", 500'000, {kProgram, "copy"});
  program->go_on();
  for (const char* const way : {"now", "later", "between"})
    EXPECT_EQ(program->read_line(), std::string(way) + " the same");
  EXPECT_EQ(program->finish(), 0);
}

TEST_F(Copies, OfTwoTenantsHaveTheirPartsOfTheLink) {
  const auto small = start("small", 300'000, kCopyIn);
  const auto large = start("large", 700'000, kCopyIn);
  small->go_on();
  large->go_on();
  const auto of_small = parts(*small);
  const auto of_large = parts(*large);
  ASSERT_EQ(of_small.size(), 4U);
  ASSERT_EQ(of_large.size(), 4U);
  for (std::size_t second = 1; second < 4; ++second) {
    // What they may have is exact; what the machine of the test gets done in time is its own
    // matter.
    EXPECT_LT(of_small[second], 0.3 + 0.02);
    EXPECT_LT(of_large[second], 0.7 + 0.02);
    EXPECT_GT(of_small[second], 0.3 * 0.7);
    EXPECT_GT(of_large[second], 0.7 * 0.7);
  }
}

TEST_F(Copies, OfOneTenantAloneHaveNoMoreThanItsPartUnlessThePolicyGivesIt) {
  const auto alone = start("a", 250'000, kCopyOut);
  alone->go_on();
  EXPECT_GT(std::stod(alone->read_line()), 0);
  ::usleep(1'000'000);
  ASSERT_TRUE(daemon_.ask({{"ask", "policy"}, {"policy", "burst-weight"}}));
  const auto rest = parts(*alone);
  ASSERT_EQ(rest.size(), 3U);
  EXPECT_LT(rest.front() / 2, 0.3);  // of two seconds
  EXPECT_GT(rest.back(), 0.6);
}

TEST_F(Copies, AreCountedForTheirTenant) {
  const auto program = start("a", 1'000'000, {kProgram, "copy"});
  program->go_on();
  double in = 0;
  double out = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(program->read_line(), "");
    in = total("copy_to_device");
    out = total("copy_from_device");
  }
  EXPECT_EQ(program->finish(), 0);
  constexpr double kEach = 3 * ((40 << 20) + 7);
  EXPECT_DOUBLE_EQ(in, kEach);
  EXPECT_DOUBLE_EQ(out, kEach);
}

}  // namespace
}  // namespace regatta::hook_test
