#include "regatta/runtime/comm/c_api.h"

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Brings the endpoints of ranks that are threads together.
class Table {
 public:
  explicit Table(int ranks) : texts_(static_cast<std::size_t>(ranks)) {}

  void put_and_wait(int rank, const char* text) {
    std::unique_lock lock(mutex_);
    regatta::at(texts_, rank) = text;
    ++given_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return given_ == texts_.size(); });
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> texts_;
  std::size_t given_ = 0;
};

struct RankContext {
  Table* table;
  int rank;
};

std::int32_t exchange(void* context, const char* mine, regatta_coll_endpoints* all,
                      regatta_coll_error* error) {
  const RankContext& context_of_rank = *static_cast<const RankContext*>(context);
  context_of_rank.table->put_and_wait(context_of_rank.rank, mine);
  for (std::size_t rank = 0; rank < context_of_rank.table->texts().size(); ++rank)
    if (regatta_coll_endpoints_set(all, static_cast<std::int32_t>(rank),
                                   context_of_rank.table->texts()[rank].c_str(), error) != 0)
      return 1;
  return 0;
}

std::int32_t refuse(void*, const char*, regatta_coll_endpoints*, regatta_coll_error* error) {
  std::strcpy(error->text, "the store is closed");
  return 7;
}

std::int32_t forget(void*, const char*, regatta_coll_endpoints*, regatta_coll_error*) {
  return 0;
}

using Body = std::function<void(regatta_coll_comm*, int)>;

// Connects `ranks` threads through shared memory, or TCP, and runs `body(comm, rank)` on each.
void run_ranks(int ranks, bool is_shared, const Body& body) {
  Table table(ranks);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      regatta_coll_options options;
      regatta_coll_options_init(&options, sizeof options);
      const std::string server = is_shared ? "s" : "s" + std::to_string(rank);
      options.server = server.c_str();
      options.connections = 1;
      RankContext context_of_rank{&table, rank};
      regatta_coll_comm* comm = nullptr;
      regatta_coll_error error{};
      ASSERT_EQ(
          regatta_coll_connect(rank, ranks, exchange, &context_of_rank, &options, &comm, &error), 0)
          << error.text;
      body(comm, rank);
      regatta_coll_comm_free(comm);
    });
  for (std::thread& thread : threads)
    thread.join();
}

class CApi : public testing::TestWithParam<bool> {};

TEST_P(CApi, ReducesEveryTypeWithEveryOperation) {
  run_ranks(2, GetParam(), [](regatta_coll_comm* comm, int rank) {
    const double expected[] = {6, 8, 2, 4, 3};
    for (std::int32_t type = REGATTA_COLL_I8; type <= REGATTA_COLL_I64; ++type)
      for (std::int32_t op = REGATTA_COLL_SUM; op <= REGATTA_COLL_AVERAGE; ++op) {
        std::int64_t value = rank == 0 ? 2 : 4;  // little endian: its first bytes are any integer
        ASSERT_EQ(regatta_coll_all_reduce(comm, &value, &value, 1, type, op, nullptr, nullptr), 0);
        EXPECT_EQ(static_cast<double>(value), expected[op]) << type << " " << op;
      }
    for (std::int32_t op = REGATTA_COLL_SUM; op <= REGATTA_COLL_AVERAGE; ++op) {
      float narrow = rank == 0 ? 2 : 4;
      double wide = rank == 0 ? 2 : 4;
      ASSERT_EQ(regatta_coll_all_reduce(comm, &narrow, &narrow, 1, REGATTA_COLL_F32, op, nullptr,
                                        nullptr),
                0);
      ASSERT_EQ(
          regatta_coll_all_reduce(comm, &wide, &wide, 1, REGATTA_COLL_F64, op, nullptr, nullptr),
          0);
      EXPECT_EQ(narrow, expected[op]);
      EXPECT_EQ(wide, expected[op]);
    }
    std::uint16_t half = rank == 0 ? 0x4000 : 0x4400;   // 2, 4
    std::uint16_t brain = rank == 0 ? 0x4000 : 0x4080;  // 2, 4
    ASSERT_EQ(regatta_coll_all_reduce(comm, &half, &half, 1, REGATTA_COLL_F16, REGATTA_COLL_AVERAGE,
                                      nullptr, nullptr),
              0);
    ASSERT_EQ(regatta_coll_all_reduce(comm, &brain, &brain, 1, REGATTA_COLL_BF16,
                                      REGATTA_COLL_AVERAGE, nullptr, nullptr),
              0);
    EXPECT_EQ(half, 0x4200);   // 3
    EXPECT_EQ(brain, 0x4040);  // 3
  });
}

TEST_P(CApi, MovesThePartsOfEveryRank) {
  run_ranks(2, GetParam(), [](regatta_coll_comm* comm, int rank) {
    const auto i32 = REGATTA_COLL_I32;
    const std::vector<std::int32_t> in = {10 * rank + 1, 10 * rank + 2};
    std::vector<std::int32_t> out(2);
    ASSERT_EQ(regatta_coll_all_gather(comm, in.data(), out.data(), 1, i32, nullptr, nullptr), 0);
    EXPECT_THAT(out, ElementsAre(1, 11));
    ASSERT_EQ(regatta_coll_reduce_scatter(comm, in.data(), out.data(), 1, i32, REGATTA_COLL_SUM,
                                          nullptr, nullptr),
              0);
    EXPECT_EQ(out[0], rank == 0 ? 12 : 14);
    ASSERT_EQ(regatta_coll_all_to_all(comm, in.data(), out.data(), 1, i32, nullptr, nullptr), 0);
    EXPECT_THAT(out, rank == 0 ? ElementsAre(1, 11) : ElementsAre(2, 12));
    out = in;
    ASSERT_EQ(regatta_coll_broadcast(comm, out.data(), 2, i32, 1, nullptr, nullptr), 0);
    EXPECT_THAT(out, ElementsAre(11, 12));
  });
}

TEST_P(CApi, AsksForTheBuffersOfTheRootAtTheRootAlone) {
  run_ranks(2, GetParam(), [](regatta_coll_comm* comm, int rank) {
    const auto i32 = REGATTA_COLL_I32;
    const std::vector<std::int32_t> in = {10 * rank + 1, 10 * rank + 2};
    std::vector<std::int32_t> out(2);
    std::int32_t* at_root = rank == 1 ? out.data() : nullptr;
    ASSERT_EQ(regatta_coll_reduce(comm, in.data(), at_root, 2, i32, REGATTA_COLL_MAX, 1, nullptr,
                                  nullptr),
              0);
    if (rank == 1) {
      EXPECT_THAT(out, ElementsAre(11, 12));
    }
    ASSERT_EQ(regatta_coll_gather(comm, in.data(), at_root, 1, i32, 1, nullptr, nullptr), 0);
    if (rank == 1) {
      EXPECT_THAT(out, ElementsAre(1, 11));
    }
    const std::int32_t* from_root = rank == 1 ? in.data() : nullptr;
    ASSERT_EQ(regatta_coll_scatter(comm, from_root, out.data(), 1, i32, 1, nullptr, nullptr), 0);
    EXPECT_EQ(out[0], 11 + rank);
  });
}

TEST_P(CApi, SendsAndReceivesWithHandles) {
  run_ranks(2, GetParam(), [](regatta_coll_comm* comm, int rank) {
    const double mine = rank + 0.5;
    double theirs = 0;
    regatta_coll_handle* send = nullptr;
    regatta_coll_handle* recv = nullptr;
    ASSERT_EQ(regatta_coll_send(comm, &mine, 1, REGATTA_COLL_F64, 1 - rank, &send, nullptr), 0);
    ASSERT_EQ(regatta_coll_recv(comm, &theirs, 1, REGATTA_COLL_F64, 1 - rank, &recv, nullptr), 0);
    EXPECT_EQ(regatta_coll_wait(send, nullptr), 0);
    EXPECT_EQ(regatta_coll_wait(recv, nullptr), 0);
    std::int32_t done = 0;
    EXPECT_EQ(regatta_coll_test(recv, &done, nullptr), 0);
    EXPECT_EQ(done, 1);
    EXPECT_EQ(theirs, 1.5 - rank);
    regatta_coll_handle_free(send);
    regatta_coll_handle_free(recv);
  });
}

TEST_P(CApi, SplitsIntoPartsThatWorkAlone) {
  run_ranks(3, GetParam(), [](regatta_coll_comm* comm, int rank) {
    regatta_coll_comm* part = nullptr;
    ASSERT_EQ(regatta_coll_split(comm, rank == 1 ? -1 : 0, &part, nullptr), 0);
    EXPECT_EQ(regatta_coll_world_size(part), rank == 1 ? 0 : 2);
    if (rank != 1) {
      EXPECT_EQ(regatta_coll_rank(part), rank / 2);
      std::int64_t value = rank + 1;
      ASSERT_EQ(regatta_coll_all_reduce(part, &value, &value, 1, REGATTA_COLL_I64,
                                        REGATTA_COLL_PRODUCT, nullptr, nullptr),
                0);
      EXPECT_EQ(value, 3);
    }
    ASSERT_EQ(regatta_coll_barrier(comm, nullptr, nullptr), 0);
    regatta_coll_comm_free(part);
  });
}

TEST_P(CApi, CountsTheBytesSentToEachRank) {
  run_ranks(2, GetParam(), [](regatta_coll_comm* comm, int rank) {
    std::vector<std::int64_t> before(4);
    std::vector<std::int64_t> after(4);
    ASSERT_EQ(regatta_coll_traffic(comm, before.data(), before.data() + 2, 2, nullptr), 0);
    std::vector<char> data(1000);
    ASSERT_EQ(regatta_coll_broadcast(comm, data.data(), 1000, REGATTA_COLL_U8, 0, nullptr, nullptr),
              0);
    ASSERT_EQ(regatta_coll_traffic(comm, after.data(), after.data() + 2, 2, nullptr), 0);
    const std::size_t way = GetParam() ? 3 : 1;
    if (rank == 0) {
      EXPECT_EQ(after[way] - before[way], 1000);
    }
  });
}

TEST_P(CApi, ShrinksToTheRanksThatAreLeftAndGrowsAgain) {
  Table second(3);
  run_ranks(3, GetParam(), [&](regatta_coll_comm* comm, int rank) {
    regatta_coll_error error{};
    ASSERT_EQ(regatta_coll_barrier(comm, nullptr, &error), 0);
    if (rank == 1) return;  // and frees its communicator
    EXPECT_EQ(regatta_coll_barrier(comm, nullptr, &error), REGATTA_COLL_UNAVAILABLE);
    regatta_coll_comm* rest = nullptr;
    ASSERT_EQ(regatta_coll_shrink(comm, &rest, &error), 0) << error.text;
    EXPECT_EQ(regatta_coll_world_size(rest), 2);
    EXPECT_EQ(regatta_coll_rank(rest), rank / 2);
    const auto count_ranks = [](regatta_coll_comm* ranks) {
      std::int32_t one = 1;
      const std::int32_t status = regatta_coll_all_reduce(ranks, &one, &one, 1, REGATTA_COLL_I32,
                                                          REGATTA_COLL_SUM, nullptr, nullptr);
      return status == 0 ? one : -1;
    };
    EXPECT_EQ(count_ranks(rest), 2);
    std::thread newcomer;
    if (rank == 0)
      newcomer = std::thread([&] {
        RankContext context_of_rank{&second, 2};
        regatta_coll_comm* joined = nullptr;
        ASSERT_EQ(regatta_coll_connect(2, 3, exchange, &context_of_rank, nullptr, &joined, nullptr),
                  0);
        EXPECT_EQ(count_ranks(joined), 3);
        regatta_coll_comm_free(joined);
      });
    RankContext context_of_rank{&second, regatta_coll_rank(rest)};
    regatta_coll_comm* grown = nullptr;
    ASSERT_EQ(regatta_coll_grow(rest, 3, exchange, &context_of_rank, &grown, &error), 0)
        << error.text;
    regatta_coll_comm_free(rest);
    EXPECT_EQ(count_ranks(grown), 3);
    regatta_coll_comm_free(grown);
    if (newcomer.joinable()) newcomer.join();
  });
}

TEST_P(CApi, MovesPartsOfAnyLength) {
  run_ranks(2, GetParam(), [](regatta_coll_comm* comm, int rank) {
    const auto i32 = REGATTA_COLL_I32;
    // Rank r gives 1 element to rank 0 and 2 to rank 1.
    const std::vector<std::int32_t> in = {10 * rank + 1, 10 * rank + 2, 10 * rank + 3};
    const std::uint64_t given[] = {1, 2};
    const std::uint64_t own = given[rank];
    const std::uint64_t taken[] = {own, own};
    std::vector<std::int32_t> out(4, -1);
    ASSERT_EQ(regatta_coll_all_to_all_v(comm, in.data(), given, nullptr, out.data(), taken, nullptr,
                                        i32, nullptr, nullptr),
              0);
    EXPECT_THAT(out, rank == 0 ? ElementsAre(1, 11, -1, -1) : ElementsAre(2, 3, 12, 13));
    out.assign(4, -1);
    const std::uint64_t offsets[] = {3, 0};
    ASSERT_EQ(regatta_coll_all_gather_v(comm, in.data(), out.data(), given, offsets, i32, nullptr,
                                        nullptr),
              0);
    EXPECT_THAT(out, ElementsAre(11, 12, -1, 1));
    out.assign(4, -1);
    ASSERT_EQ(regatta_coll_reduce_scatter_v(comm, in.data(), given, nullptr, out.data(), i32,
                                            REGATTA_COLL_SUM, nullptr, nullptr),
              0);
    EXPECT_THAT(out, rank == 0 ? ElementsAre(12, -1, -1, -1) : ElementsAre(14, 16, -1, -1));
  });
}

TEST_P(CApi, BeginsAGroupOfCallsTogether) {
  run_ranks(2, GetParam(), [](regatta_coll_comm* comm, int rank) {
    regatta_coll_comm* twin = nullptr;
    ASSERT_EQ(regatta_coll_duplicate(comm, &twin, nullptr), 0);
    const auto i64 = REGATTA_COLL_I64;
    std::vector<std::int64_t> mine(300000, rank + 1);
    std::vector<std::int64_t> theirs(mine.size());
    std::int64_t sums[2] = {rank + 1, rank + 1};
    const auto reduce = [&](int which) {
      return regatta_coll_all_reduce(which == 0 ? comm : twin, &sums[which], &sums[which], 1, i64,
                                     REGATTA_COLL_SUM, nullptr, nullptr);
    };
    ASSERT_EQ(regatta_coll_group_start(nullptr), 0);
    EXPECT_EQ(reduce(rank), 0);
    EXPECT_EQ(regatta_coll_send(comm, mine.data(), mine.size(), i64, 1 - rank, nullptr, nullptr),
              0);
    EXPECT_EQ(regatta_coll_recv(comm, theirs.data(), mine.size(), i64, 1 - rank, nullptr, nullptr),
              0);
    EXPECT_EQ(reduce(1 - rank), 0);
    regatta_coll_handle* all = nullptr;
    ASSERT_EQ(regatta_coll_group_end(&all, nullptr), 0);
    EXPECT_EQ(regatta_coll_wait(all, nullptr), 0);
    regatta_coll_handle_free(all);
    EXPECT_EQ(theirs.back(), 2 - rank);
    EXPECT_EQ(sums[0] + sums[1], 6);
    ASSERT_EQ(regatta_coll_send_recv(comm, mine.data(), mine.size(), 1 - rank, theirs.data(),
                                     mine.size(), 1 - rank, i64, nullptr, nullptr),
              0);
    EXPECT_EQ(theirs.front(), 2 - rank);
    regatta_coll_comm_free(twin);
  });
}

INSTANTIATE_TEST_SUITE_P(TuningSpace, CApi, testing::Bool(),
                         [](const auto& way) { return way.param ? "Shm" : "Tcp"; });

TEST(CApiErrors, NameTheArgumentThatIsWrong) {
  run_ranks(1, true, [](regatta_coll_comm* comm, int) {
    regatta_coll_error error{};
    float x = 0;
    const auto reduce = [&](std::uint64_t count, std::int32_t type, std::int32_t op) {
      return regatta_coll_all_reduce(comm, &x, &x, count, type, op, nullptr, &error);
    };
    EXPECT_EQ(reduce(1, 8, 0), REGATTA_COLL_INVALID_INPUT);
    EXPECT_THAT(error.text, HasSubstr("all_reduce: there is no type 8: use one of"));
    EXPECT_EQ(error.status, REGATTA_COLL_INVALID_INPUT);
    EXPECT_EQ(reduce(1, 0, -1), REGATTA_COLL_INVALID_INPUT);
    EXPECT_THAT(error.text, HasSubstr("there is no reduction -1"));
    EXPECT_EQ(reduce(static_cast<std::uint64_t>(-4), 0, 0), REGATTA_COLL_INVALID_INPUT);
    EXPECT_THAT(error.text, HasSubstr("more than memory can hold"));
    EXPECT_EQ(regatta_coll_send(comm, &x, 1, 0, 5, nullptr, &error), REGATTA_COLL_INVALID_INPUT);
    EXPECT_THAT(error.text, HasSubstr("rank 5 is not in the communicator"));
    EXPECT_EQ(reduce(1, 0, 0), REGATTA_COLL_OK);
    EXPECT_STREQ(error.text, "");
  });
}

TEST(CApiErrors, NameWhatIsWrongWithPartsAndGroups) {
  run_ranks(1, true, [](regatta_coll_comm* comm, int) {
    regatta_coll_error error{};
    float x = 0;
    const std::uint64_t one = 1;
    const auto negative = static_cast<std::uint64_t>(-4);
    const auto exchange_parts = [&](const std::uint64_t* counts, const std::uint64_t* offsets,
                                    void* out) {
      return regatta_coll_all_to_all_v(comm, &x, counts, offsets, out, &one, nullptr, 0, nullptr,
                                       &error);
    };
    EXPECT_EQ(exchange_parts(nullptr, nullptr, &x), REGATTA_COLL_INVALID_INPUT);
    EXPECT_THAT(error.text, HasSubstr("all_to_all_v: the array of counts is NULL"));
    EXPECT_EQ(exchange_parts(&negative, nullptr, &x), REGATTA_COLL_INVALID_INPUT);
    EXPECT_THAT(error.text, HasSubstr("more than memory can hold"));
    EXPECT_EQ(exchange_parts(&one, &negative, &x), REGATTA_COLL_INVALID_INPUT);
    EXPECT_THAT(error.text, HasSubstr("more than memory can hold"));
    EXPECT_EQ(exchange_parts(&one, nullptr, nullptr), REGATTA_COLL_INVALID_INPUT);
    EXPECT_THAT(error.text, HasSubstr("a buffer is NULL"));
    EXPECT_EQ(regatta_coll_group_end(nullptr, &error), REGATTA_COLL_INVALID_INPUT);
    EXPECT_THAT(error.text, HasSubstr("no group is open"));
    EXPECT_EQ(regatta_coll_duplicate(comm, nullptr, &error), REGATTA_COLL_INVALID_INPUT);
  });
}

TEST(CApiErrors, TakesNoNullForWhatItNeeds) {
  regatta_coll_error error{};
  float x = 0;
  EXPECT_EQ(regatta_coll_all_reduce(nullptr, &x, &x, 1, 0, 0, nullptr, &error),
            REGATTA_COLL_INVALID_INPUT);
  EXPECT_THAT(error.text, HasSubstr("the communicator is NULL"));
  EXPECT_EQ(regatta_coll_wait(nullptr, nullptr), REGATTA_COLL_INVALID_INPUT);
  EXPECT_EQ(regatta_coll_connect(0, 1, nullptr, nullptr, nullptr, nullptr, nullptr),
            REGATTA_COLL_INVALID_INPUT);
  EXPECT_EQ(regatta_coll_rank(nullptr), -1);
  regatta_coll_comm_free(nullptr);
  regatta_coll_handle_free(nullptr);
  regatta_coll_memory_free(nullptr);
}

TEST(CApiErrors, NameWhatShrinkAndGrowMiss) {
  regatta_coll_error error{};
  regatta_coll_comm* comm = nullptr;
  EXPECT_EQ(regatta_coll_shrink(nullptr, &comm, &error), REGATTA_COLL_INVALID_INPUT);
  EXPECT_STREQ(error.text, "shrink: the communicator is NULL: give one");
  EXPECT_EQ(regatta_coll_grow(nullptr, 2, exchange, nullptr, &comm, &error),
            REGATTA_COLL_INVALID_INPUT);
  EXPECT_STREQ(error.text, "grow: the communicator is NULL: give one");
}

TEST(CApiErrors, PassesOnWhyAnExchangeFailed) {
  regatta_coll_error error{};
  regatta_coll_comm* comm = nullptr;
  EXPECT_EQ(regatta_coll_connect(0, 2, refuse, nullptr, nullptr, &comm, &error),
            REGATTA_COLL_UNAVAILABLE);
  EXPECT_STREQ(error.text, "connect: the exchange failed: the store is closed");
  EXPECT_EQ(regatta_coll_connect(0, 2, forget, nullptr, nullptr, &comm, &error),
            REGATTA_COLL_INVALID_INPUT);
  EXPECT_THAT(error.text, HasSubstr("no endpoint of rank 0"));
  EXPECT_EQ(comm, nullptr);
}

TEST(CApiOptions, TakesThoseOfACallerThatKnowsFewerFields) {
  Table table(1);
  RankContext context_of_rank{&table, 0};
  regatta_coll_options options;
  std::memset(&options, 0xff, sizeof options);
  regatta_coll_options_init(&options, offsetof(regatta_coll_options, peer_timeout_s));
  regatta_coll_comm* comm = nullptr;
  EXPECT_EQ(regatta_coll_connect(0, 1, exchange, &context_of_rank, &options, &comm, nullptr), 0);
  regatta_coll_comm_free(comm);
  options.struct_bytes = 0;
  EXPECT_EQ(regatta_coll_connect(0, 1, exchange, &context_of_rank, &options, &comm, nullptr),
            REGATTA_COLL_INVALID_INPUT);
}

TEST(CApiOptions, SetTheDeterministicMode) {
  Table table(1);
  RankContext context_of_rank{&table, 0};
  regatta_coll_options options;
  regatta_coll_options_init(&options, sizeof options);
  options.sums_in_f64 = 1;
  regatta_coll_comm* comm = nullptr;
  regatta_coll_error error{};
  EXPECT_EQ(regatta_coll_connect(0, 1, exchange, &context_of_rank, &options, &comm, &error),
            REGATTA_COLL_INVALID_INPUT);
  EXPECT_THAT(error.text, HasSubstr("set deterministic too"));
  options.deterministic = 1;
  EXPECT_EQ(regatta_coll_connect(0, 1, exchange, &context_of_rank, &options, &comm, nullptr), 0);
  regatta_coll_comm_free(comm);
}

TEST(CApiOptions, RefusesAChoiceOfRdmaThatThereIsNot) {
  Table table(1);
  RankContext context_of_rank{&table, 0};
  regatta_coll_options options;
  regatta_coll_options_init(&options, sizeof options);
  options.rdma = 9;
  regatta_coll_comm* comm = nullptr;
  regatta_coll_error error{};
  EXPECT_EQ(regatta_coll_connect(0, 1, exchange, &context_of_rank, &options, &comm, &error),
            REGATTA_COLL_INVALID_INPUT);
  EXPECT_THAT(error.text, HasSubstr("options.rdma is 9"));
}

TEST(CApiLibrary, ShowsNothingButTheInterface) {
  Dl_info info{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&regatta_coll_version), &info), 0);
  const std::unique_ptr<void, int (*)(void*)> library(dlopen(info.dli_fname, RTLD_LAZY), dlclose);
  ASSERT_NE(library, nullptr);
  EXPECT_NE(dlsym(library.get(), "regatta_coll_wait"), nullptr);
  // regatta::comm::size_of and Handle::wait.
  EXPECT_EQ(dlsym(library.get(), "_ZN7regatta4coll7size_ofENS0_8DataTypeE"), nullptr);
  EXPECT_EQ(dlsym(library.get(), "_ZN7regatta4coll6Handle4waitEv"), nullptr);
}

}  // namespace
