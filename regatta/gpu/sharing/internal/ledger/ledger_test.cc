#include "regatta/gpu/sharing/internal/ledger/ledger.h"

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/gpu/sharing/internal/ledger/lease_counter.h"

namespace regatta::sharing {
namespace {

constexpr unsigned long long kMiB = 1ULL << 20;

TEST(Account, HasRoomUpToItsQuotaToTheByte) {
  regatta_account account = {.quota = 100, .leased = 99};
  EXPECT_EQ(regatta_account_room(&account), 1U);
  account.quota = 50;  // below the leased bytes
  EXPECT_EQ(regatta_account_room(&account), 0U);
}

TEST(LeaseSize, DoublesWhatAClientHoldsWithinAnEighthOfTheRoom) {
  regatta_account account = {.quota = 8000 * kMiB, .leased = 0};
  EXPECT_EQ(regatta_lease_size(&account, 0, 1), 16 * kMiB);
  EXPECT_EQ(regatta_lease_size(&account, 64 * kMiB, 1), 64 * kMiB);
  EXPECT_EQ(regatta_lease_size(&account, 4000 * kMiB, 1), 1000 * kMiB);
  EXPECT_EQ(regatta_lease_size(&account, 0, 7000 * kMiB), 7000 * kMiB);
  account.leased = 8000 * kMiB - 5;
  EXPECT_EQ(regatta_lease_size(&account, 0, 5), 5U);
  EXPECT_EQ(regatta_lease_size(&account, 0, 6), 0U);
}

TEST(LeaseSize, IsEnoughAndFitsTheRoomForAnyRequest) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200'000; ++round) {
    const regatta_account account = {.quota = random() % (2000 * kMiB),
                                     .leased = random() % (1000 * kMiB)};
    const unsigned long long least = 1 + random() % (random() % 2 == 0 ? 300 * kMiB : 100);
    const unsigned long long room = regatta_account_room(&account);
    const unsigned long long size = regatta_lease_size(&account, random() % (500 * kMiB), least);
    ASSERT_EQ(size != 0, least <= room) << round;
    if (size == 0) continue;
    ASSERT_GE(size, least) << round;
    ASSERT_LE(size, room) << round;
  }
}

TEST(LeaseCounter, GivesOutOnlyWhatIsInIt) {
  regatta_lease_counter counter = {regatta_lease_word(7, 100)};
  EXPECT_FALSE(regatta_lease_counter_take(&counter, 101));
  EXPECT_TRUE(regatta_lease_counter_take(&counter, 100));
  EXPECT_FALSE(regatta_lease_counter_take(&counter, 1));
  regatta_lease_counter_give(&counter, 40);
  EXPECT_EQ(regatta_lease_word_spare(regatta_lease_counter_read(&counter)), 40U);
  EXPECT_EQ(regatta_lease_word_generation(regatta_lease_counter_read(&counter)), 7U);
}

TEST(LeaseCounter, IsNotReplacedWhenTheClientWasFaster) {
  regatta_lease_counter counter = {regatta_lease_word(0xffff, 100)};
  const unsigned long long seen = regatta_lease_counter_read(&counter);
  ASSERT_TRUE(regatta_lease_counter_take(&counter, 1));
  EXPECT_FALSE(regatta_lease_counter_replace(&counter, seen, 0x10000, 0));
  EXPECT_TRUE(
      regatta_lease_counter_replace(&counter, regatta_lease_counter_read(&counter), 0x10000, 50));
  EXPECT_EQ(regatta_lease_word_generation(regatta_lease_counter_read(&counter)),
            0U);  // it starts over
  EXPECT_EQ(regatta_lease_word_spare(regatta_lease_counter_read(&counter)), 50U);
}

// Two threads of a client and the daemon's at one word: leased - spare is what is in use.
TEST(LeaseCounter, LosesNothingBetweenClientAndDaemon) {
  regatta_lease_counter counter = {0};
  std::atomic<bool> stop = false;
  unsigned long long leased = 0;
  std::vector<unsigned long long> in_use(2);
  std::vector<std::thread> clients;
  clients.reserve(in_use.size());
  for (std::size_t i = 0; i < in_use.size(); ++i) {
    clients.emplace_back([&, i] {
      std::mt19937_64 random(i);
      while (!stop) {
        const unsigned long long bytes = random() % 1000;
        if (in_use[i] >= bytes && random() % 2 == 0) {
          regatta_lease_counter_give(&counter, bytes);
          in_use[i] -= bytes;
        } else if (regatta_lease_counter_take(&counter, bytes)) {
          in_use[i] += bytes;
        }
      }
    });
  }
  std::mt19937_64 random(5);
  for (unsigned turn = 1; turn < 200'000; ++turn) {
    const unsigned long long word = regatta_lease_counter_read(&counter);
    const unsigned long long spare = regatta_lease_word_spare(word);
    const unsigned long long now = random() % 2 == 0 ? spare + random() % 1000 : spare / 2;
    if (regatta_lease_counter_replace(&counter, word, turn, now)) leased += now - spare;
  }
  stop = true;
  for (std::thread& client : clients)
    client.join();
  EXPECT_EQ(leased - regatta_lease_word_spare(regatta_lease_counter_read(&counter)),
            in_use[0] + in_use[1]);
}

}  // namespace
}  // namespace regatta::sharing
