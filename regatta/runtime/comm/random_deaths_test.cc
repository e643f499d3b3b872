// Ranks are killed at random moments: while they connect, in collectives of all sizes, while they
// shrink, two at once. The others go on, with right sums, and leave nothing behind.
// --gtest_repeat=50 makes 1,000 rounds of it.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/internal/test_forked_world.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {
namespace {

constexpr int kRanks = 4;
constexpr int kRounds = 20;
// After the last death, for all that is left to do.
constexpr Seconds kEndsWithin{3.0};

struct Leftovers {
  int fds = 0;
  int memory_files = 0;  // mapped here
  bool operator==(const Leftovers&) const = default;
};

int count_entries(const char* folder) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder))
    ++count;
  return count;
}

Leftovers look_round() {
  Leftovers found{.fds = count_entries("/proc/self/fd")};
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("/memfd:regatta") != std::string::npos) ++found.memory_files;
  return found;
}

// The work of one rank. Its input tells in a sum that it took part.
class Worker {
 public:
  Worker(Communicator world, bool has_shared_buffers, std::uint32_t seed)
      : world_(std::make_unique<Communicator>(std::move(world))),
        input_(static_cast<std::int64_t>(1) << (8 * world_->rank().value)),
        has_shared_buffers_(has_shared_buffers),
        seed_(seed) {}

  // "" or what went wrong.
  std::string run(SharedTestState& state) {
    for (;;) {
      const Status status = go_on(state);
      if (status && is_over_) return "";
      if (status) continue;
      if (status.error().code != Code::kUnavailable) return status.error().message;
      ++state.shrinking;
      auto rest = world_->shrink();
      if (!rest) return rest.error().message;
      // The old one may end before or after, whatever is under way elsewhere.
      if (seed_ % 2 == 0) former_ = std::move(world_);
      world_ = std::make_unique<Communicator>(std::move(*rest));
      members_sum_ = 0;
    }
  }

 private:
  // One call of each kind; then the next round of them.
  Status go_on(SharedTestState& state) {
    if (members_sum_ == 0) REGATTA_TRY_DO(look_who_is_here());
    // Some may have ended one round more than others.
    std::int64_t mine[2] = {round_, state.stage.load() >= 100 ? 1 : 0};
    std::int64_t all[2] = {};
    REGATTA_TRY_DO(world_->all_reduce(mine, all, 2, DataType::kI64, ReduceOp::kMin).wait());
    round_ = all[0];
    is_over_ = all[1] == 1;
    constexpr std::size_t kCounts[] = {1, 100, 5000, 40000, 300000};
    const std::size_t count = kCounts[(seed_ + static_cast<std::uint32_t>(round_) * 7) % 5];
    REGATTA_TRY_DO(make_buffers(count));
    std::fill_n(in_.get(), count, input_ + round_);
    Handle sum = world_->all_reduce(in_.get(), out_.get(), count, DataType::kI64, ReduceOp::kSum);
    const Status status = sum.wait();
    for (std::size_t i = 0; i < count; ++i)
      if (in_.get()[i] != input_ + round_) return Error{Code::kConflict, "an input has changed"};
    REGATTA_TRY_DO(status);
    const std::int64_t expected = members_sum_ + round_ * world_->world_size();
    for (std::size_t i = 0; i < count; ++i)
      if (out_.get()[i] != expected) return Error{Code::kConflict, "a sum is wrong"};
    ++round_;
    return {};
  }

  Status look_who_is_here() {
    std::vector<std::int64_t> gifts(static_cast<std::size_t>(world_->world_size()));
    REGATTA_TRY_DO(world_->all_gather(&input_, gifts.data(), 1, DataType::kI64).wait());
    if (!std::is_sorted(gifts.begin(), gifts.end()))
      return Error{Code::kConflict, "the ranks lost their order"};
    for (const std::int64_t input : gifts)
      members_sum_ += input;
    return {};
  }

  Status make_buffers(std::size_t count) {
    const auto make = [&]() -> Result<std::shared_ptr<std::int64_t>> {
      if (!has_shared_buffers_)
        return std::shared_ptr<std::int64_t>(new std::int64_t[count],
                                             [](const std::int64_t* p) { delete[] p; });
      REGATTA_TRY(bytes, world_->allocate(count * sizeof(std::int64_t)));
      return std::shared_ptr<std::int64_t>(bytes, reinterpret_cast<std::int64_t*>(bytes.get()));
    };
    REGATTA_TRY(in, make());
    REGATTA_TRY(out, make());
    in_ = std::move(in);
    out_ = std::move(out);
    return {};
  }

  std::unique_ptr<Communicator> world_;
  std::unique_ptr<Communicator> former_;
  std::int64_t input_;
  bool has_shared_buffers_;
  std::uint32_t seed_;
  std::int64_t round_ = 0;
  bool is_over_ = false;
  std::int64_t members_sum_ = 0;
  std::shared_ptr<std::int64_t> in_;
  std::shared_ptr<std::int64_t> out_;
};

enum class Fate { kKilled, kStopped };
enum class Moment { kConnect, kCollective, kShrink, kTwoAtOnce };

bool wait_for(const std::atomic<int>& counter, int target) {
  const Seconds deadline = os::monotonic_now() + Seconds{1};
  while (counter.load() < target) {
    if (os::monotonic_now() > deadline) return false;
    os::sleep_for(Seconds{0.0002});
  }
  return true;
}

// Kills or stops ranks; returns them.
std::vector<int> strike(ForkedWorld& world, Fate fate, Moment moment, std::mt19937& random) {
  const int signal = fate == Fate::kKilled ? SIGKILL : SIGSTOP;
  std::vector<int> victims{0, 1, 2, 3};
  std::shuffle(victims.begin(), victims.end(), random);
  victims.resize(moment == Moment::kShrink || moment == Moment::kTwoAtOnce ? 2 : 1);
  const auto pause = [&](double seconds_max) {
    os::sleep_for({std::uniform_real_distribution<double>(0, seconds_max)(random)});
  };
  if (moment == Moment::kConnect) {
    wait_for(world.state().given, std::uniform_int_distribution<int>(1, kRanks)(random));
    pause(0.01);
  } else {
    wait_for(world.state().stage, kRanks);
    pause(0.03);
  }
  kill(world.pid(victims[0]), signal);
  if (moment == Moment::kShrink) {
    wait_for(world.state().shrinking, 1);
    pause(0.006);
  }
  if (victims.size() == 2) kill(world.pid(victims[1]), signal);
  return victims;
}

void run_round(Fate fate, Seconds peer_timeout, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto layout = static_cast<TestLayout>(random() % 3);
  auto moment = static_cast<Moment>(random() % 4);
  // A rank that is stopped while it connects is waited for.
  if (fate == Fate::kStopped && moment == Moment::kConnect) moment = Moment::kShrink;
  const bool has_shared_buffers = random() % 3 == 0;
  SCOPED_TRACE("seed " + std::to_string(seed) + " layout " +
               std::to_string(static_cast<int>(layout)) + " moment " +
               std::to_string(static_cast<int>(moment)));
  const int files = count_entries("/dev/shm");
  const Leftovers before = look_round();
  ForkedWorld world(kRanks);
  world.start(
      layout,
      [&](Communicator& ranks, SharedTestState& state) -> std::string {
        ++state.stage;
        std::string result = Worker(std::move(ranks), has_shared_buffers, seed).run(state);
        if (result.empty() && look_round() != before) result = "something is left over";
        return result;
      },
      [&](CommunicatorOptions& options) { options.peer_timeout = peer_timeout; });
  const std::vector<int> victims = strike(world, fate, moment, random);
  const Seconds struck_at = os::monotonic_now();
  os::sleep_for(Seconds{0.005});
  world.state().stage += 100;
  const bool is_stop = fate == Fate::kStopped;
  ASSERT_TRUE(world.wait(Seconds{20}, is_stop ? victims : std::vector<int>{})) << "it hangs";
  if (is_stop) {
    for (const int victim : victims)
      kill(world.pid(victim), SIGCONT);
    ASSERT_TRUE(world.wait(Seconds{20})) << "a rank that was stopped hangs";
    // It may have been through before it was stopped; it never goes on alone.
    for (const int victim : victims)
      EXPECT_THAT(world.result(victim),
                  testing::AnyOf("", testing::HasSubstr("the others go on without this rank")));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    if (std::find(victims.begin(), victims.end(), rank) != victims.end()) continue;
    const std::string result = world.result(rank);
    const Seconds limit = kEndsWithin + (is_stop ? peer_timeout * 3 : Seconds{0});
    EXPECT_LT(world.ended_at(rank) - struck_at, limit) << rank << ": " << result;
    const bool is_unconnected = moment == Moment::kConnect && result.starts_with("connect: ");
    EXPECT_TRUE(result.empty() || is_unconnected) << rank << ": " << result;
  }
  EXPECT_EQ(count_entries("/dev/shm"), files);
  EXPECT_EQ(look_round(), before);
}

TEST(RandomDeaths, LeaveTheOthersWithRightSumsAndNothingElse) {
  const std::uint32_t seed = std::random_device{}();
  Seconds slowest{0};
  for (std::uint32_t round = 0; round < kRounds && !HasFailure(); ++round) {
    const Seconds start = os::monotonic_now();
    run_round(Fate::kKilled, Seconds{5}, seed + round);
    slowest = std::max(slowest, os::monotonic_now() - start);
  }
  RecordProperty("slowest_s", std::to_string(slowest.value));
  std::printf("%d rounds, the slowest took %.3f s\n", kRounds, slowest.value);
}

TEST(RandomStops, LeaveOutTheRanksThatHang) {
  const std::uint32_t seed = std::random_device{}();
  for (std::uint32_t round = 0; round < 3 && !HasFailure(); ++round)
    run_round(Fate::kStopped, Seconds{1.5}, seed + round);
}

}  // namespace
}  // namespace regatta::comm
