#include "regatta/runtime/comm/internal/transport/registration_cache.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

// Counts what is registered, and can have enough.
class FakeRegistrar : public MemoryRegistrar {
 public:
  Result<Registered> add(const MemoryRange& range) override {
    if (refuses) return Error{Code::kExhausted, "no memory may be pinned"};
    ranges[++made] = range;
    return Registered{.keys = {made, made + 1000},
                      .handle = reinterpret_cast<void*>(std::uintptr_t{made})};
  }
  void remove(void* handle) override {
    EXPECT_EQ(ranges.erase(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle))),
              1U);
  }

  std::uint32_t made = 0;
  bool refuses = false;
  std::map<std::uint32_t, MemoryRange> ranges;
};

std::array<std::byte, 4096> memory;

MemoryRange part(std::size_t from, std::size_t bytes, bool is_writable = false) {
  return {memory.data() + from, bytes, is_writable};
}
MessageKey call(std::uint32_t operation, std::uint32_t step = 0, std::uint64_t group = 1) {
  return {group, operation, step};
}

TEST(RegistrationCache, RegistersOnceForAllMessagesOfACall) {
  FakeRegistrar device;
  RegistrationCache cache(device);
  {
    const auto received = cache.take(part(0, 100, true), call(7, 0));
    EXPECT_EQ(received->keys().remote, 1001U);
  }
  const auto sent = cache.take(part(0, 100), call(7, 1));
  const auto shorter = cache.take(part(0, 50), call(7, 2));
  EXPECT_EQ(sent->keys().local, 1U);
  EXPECT_EQ(shorter->keys().local, 1U);
  EXPECT_EQ(device.made, 1U);
}

TEST(RegistrationCache, RegistersAgainForMoreMemoryOrMoreRights) {
  FakeRegistrar device;
  RegistrationCache cache(device);
  (void)cache.take(part(0, 100), call(7));
  EXPECT_EQ(cache.take(part(0, 101), call(7))->keys().local, 2U);
  EXPECT_EQ(cache.take(part(0, 100, true), call(7))->keys().local, 3U);
  EXPECT_EQ(cache.take(part(8, 10), call(7))->keys().local, 4U);
}

TEST(RegistrationCache, NeverServesAnotherCall) {
  FakeRegistrar device;
  RegistrationCache cache(device);
  (void)cache.take(part(0, 100), call(7));
  EXPECT_EQ(cache.take(part(0, 100), call(8))->keys().local, 2U);
  EXPECT_EQ(device.ranges.size(), 1U) << "the one of the call before went with the next call";
  EXPECT_EQ(cache.take(part(0, 100), call(8, 0, 2))->keys().local, 3U);
}

TEST(RegistrationCache, DropsThoseOfSendsAndReceivesAtOnce) {
  FakeRegistrar device;
  RegistrationCache cache(device);
  {
    const auto lease = cache.take(part(0, 100), call(7 | kPointToPoint));
    EXPECT_EQ(device.ranges.size(), 1U);
  }
  EXPECT_TRUE(device.ranges.empty());
}

TEST(RegistrationCache, ExpiresWhatIsIdleButNotWhatIsUsed) {
  FakeRegistrar device;
  RegistrationCache cache(device);
  (void)cache.take(part(0, 100), call(7));
  const auto used = cache.take(part(200, 100), call(7));
  cache.expire();
  EXPECT_EQ(cache.size(), 2U) << "it was used a moment ago";
  cache.expire();
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_EQ(device.ranges.begin()->second.data, memory.data() + 200);
}

TEST(RegistrationCache, TellsWhenTheDeviceRefuses) {
  FakeRegistrar device;
  RegistrationCache cache(device);
  device.refuses = true;
  EXPECT_EQ(cache.take(part(0, 1), call(7)).error().code, Code::kExhausted);
  device.refuses = false;
  EXPECT_TRUE(cache.take(part(0, 1), call(7)));
}

// A lease always covers its memory, belongs to its call and stays registered.
TEST(RegistrationCache, KeepsItsPromiseUnderRandomUse) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    FakeRegistrar device;
    RegistrationCache cache(device);
    std::vector<std::pair<RegistrationCache::Lease, MemoryRange>> held;
    for (int round = 0; round < 3000; ++round) {
      if (random() % 50 == 0) cache.expire();
      if (!held.empty() && random() % 2 == 0) {
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(random() % held.size()));
        continue;
      }
      const MemoryRange range = part(random() % 8 * 64, 64 + random() % 4 * 64, random() % 2 == 0);
      const auto any = [&random](std::uint32_t below) {
        return static_cast<std::uint32_t>(random()) % below;
      };
      const std::uint32_t operation = any(3) | (any(4) == 0 ? kPointToPoint : 0);
      auto lease = cache.take(range, call(operation, any(5), any(2)));
      ASSERT_TRUE(lease);
      held.emplace_back(std::move(*lease), range);
      for (const auto& [one, wanted] : held) {
        const auto registered = device.ranges.find(one.keys().local);
        ASSERT_NE(registered, device.ranges.end());
        ASSERT_LE(registered->second.data, wanted.data);
        ASSERT_GE(registered->second.data + registered->second.bytes, wanted.data + wanted.bytes);
        ASSERT_GE(registered->second.is_writable, wanted.is_writable);
      }
    }
    held.clear();
    cache.expire();
    cache.expire();
    EXPECT_TRUE(device.ranges.empty());
  }
}

}  // namespace
}  // namespace regatta::comm
