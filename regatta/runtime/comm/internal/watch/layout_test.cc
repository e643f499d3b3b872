#include "regatta/runtime/comm/internal/watch/layout.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/base/os/file.h"
#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {
namespace {

using testing::ElementsAre;

std::shared_ptr<WatchFile> make_file() {
  auto file = WatchFile::create({.job = "layout-test",
                                 .server = "s0",
                                 .token_hash = hash_token("secret"),
                                 .world = 42,
                                 .rank = 1,
                                 .names = {"rank 0 at s0", "rank 1 at s0", "rank 2 at s1"}});
  EXPECT_TRUE(file);
  return *file;
}

LoggedCall reduction(std::uint64_t sequence, std::uint64_t bytes) {
  const Call call{.kind = CallKind::kAllReduce, .reduction = {DataType::kF32, ReduceOp::kSum, 3}};
  return {.sequence = sequence, .call = encode_call(call), .bytes = bytes, .started = {1.5}};
}

TEST(Record, IsNeverReadTorn) {
  Record<kLaneWords> record{};
  std::atomic<bool> ends = false;
  std::thread writer([&] {
    for (std::uint64_t value = 1; !ends; ++value)
      record.write({value, value, value, value, value, value, value});
  });
  int reads = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto words = record.read();
    if (!words) continue;
    ++reads;
    for (const std::uint64_t word : *words)
      ASSERT_EQ(word, words->front());
  }
  ends = true;
  writer.join();
  EXPECT_GT(reads, 0);
}

TEST(Record, TellsThatItsWriterNeverGotDone) {
  Record<kLaneWords> record{};
  record.write({1, 2, 3, 4, 5, 6, 7});
  EXPECT_TRUE(record.read());
  record.version.store(3);
  EXPECT_FALSE(record.read());
}

TEST(WatchFile, IsFoundAndReadFromOutside) {
  const auto file = make_file();
  const auto group = file->add_group(7, 1, {0, 1, 2});
  ASSERT_NE(group, nullptr);
  group->submit();
  group->submit();
  group->begin(reduction(1, 4096));
  group->end(reduction(1, 4096), Seconds{2.5});
  group->begin(reduction(2, 8192));
  group->move(Lane::kCollective, 1024);
  file->show_verdict("rank 2 has not called it");
  const auto views = inspect_process(getpid());
  ASSERT_TRUE(views) << views.error().message;
  ASSERT_EQ(views->size(), 1U);
  const RankView& view = views->front();
  EXPECT_EQ(view.job, "layout-test");
  EXPECT_EQ(view.name(), "rank 1 at s0");
  EXPECT_EQ(view.verdict, "rank 2 has not called it");
  EXPECT_GE(view.judged, view.started);
  ASSERT_EQ(view.groups.size(), 1U);
  const GroupView& seen = view.groups.front();
  EXPECT_EQ(seen.id, 7U);
  EXPECT_THAT(seen.members, ElementsAre(0, 1, 2));
  EXPECT_EQ(seen.submitted, 2U);
  EXPECT_EQ(seen.ended, 1U);
  EXPECT_EQ(seen.collective.status, OperationStatus::kRuns);
  EXPECT_EQ(seen.collective.sequence, 2U);
  EXPECT_EQ(seen.collective.moved, 1024U);
  ASSERT_EQ(view.flights.size(), 1U);
  EXPECT_EQ(view.flights[0].operation.bytes, 4096U);
  EXPECT_EQ(view.flights[0].operation.progressed.value, 2.5);
}

TEST(WatchFile, ShowsNoCommunicatorThatEnded) {
  const auto file = make_file();
  auto group = file->add_group(7, 1, {0, 1, 2});
  group.reset();
  EXPECT_TRUE(read_view(file->map()).groups.empty());
  EXPECT_NE(file->add_group(8, 0, {1, 2}), nullptr);
}

TEST(WatchFile, LeavesCommunicatorsOutWhenItIsFull) {
  const auto file = make_file();
  std::vector<std::shared_ptr<GroupLog>> groups;
  for (std::uint64_t id = 1; id <= kGroupSlots; ++id)
    groups.push_back(file->add_group(id, 0, {0, 1}));
  EXPECT_NE(groups.back(), nullptr);
  EXPECT_EQ(file->add_group(1000, 0, {0, 1}), nullptr);
}

TEST(WatchFile, ShowsAnOperationThatEndedAsItsFlight) {
  const auto file = make_file();
  const auto group = file->add_group(7, 1, {0, 1, 2});
  group->begin(reduction(1, 4000));
  group->end(reduction(1, 4000), Seconds{2.5});
  const RankView view = read_view(file->map());
  ASSERT_EQ(view.flights.size(), 1U);
  const OperationView& shown = view.groups.front().collective;
  EXPECT_EQ(shown.status, OperationStatus::kDone);
  EXPECT_EQ(shown.moved, 4000U);
  EXPECT_EQ(shown.moved, view.flights[0].operation.moved);
  EXPECT_EQ(shown.progressed, view.flights[0].operation.progressed);
}

TEST(WatchFile, RemembersTheLastOperations) {
  const auto file = make_file();
  const auto group = file->add_group(7, 1, {0, 1, 2});
  for (std::uint64_t sequence = 1; sequence <= kFlightSlots + 10; ++sequence)
    group->end(reduction(sequence, 64), Seconds{1});
  const RankView view = read_view(file->map());
  ASSERT_EQ(view.flights.size(), kFlightSlots);
  EXPECT_EQ(view.flights.front().operation.sequence, 11U);
  EXPECT_EQ(view.flights.back().operation.sequence, kFlightSlots + 10);
  EXPECT_FALSE(group->find(10));
  EXPECT_TRUE(group->find(11));
}

TEST(WatchFile, DoesNotHoldTheToken) {
  const auto file = make_file();
  const std::string bytes(reinterpret_cast<const char*>(file->map().memory),
                          file->map().shape.bytes());
  EXPECT_EQ(bytes.find("secret"), std::string::npos);
}

TEST(Inspect, NamesTheReasonWhereAProcessIsInNoWorld) {
  const auto none = inspect_process(getpid());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kInvalidInput);
  EXPECT_THAT(none.error().message, testing::HasSubstr("it is no rank of a regatta job"));
  EXPECT_EQ(inspect_process(0x7ffffff0).error().code, Code::kNotFound);
}

TEST(FlightFile, ComesBackAsItWas) {
  const auto file = make_file();
  const auto group = file->add_group(~std::uint64_t{0}, 1, {0, 2});
  group->submit();
  group->begin(reduction(1, 4096));
  group->end(reduction(1, 4096), Seconds{2.5}, Code::kConflict);
  file->show_verdict("rank 2 has not called it");
  file->show_error("rank 2 called barrier");
  const RankView view = read_view(file->map());
  const auto folder = os::TempFolder::create();
  ASSERT_TRUE(folder);
  ASSERT_TRUE(write_flight_file(folder->path(), view));
  EXPECT_EQ(flight_path("f", view), "f/regatta-flight-layout-test-rank1.json");
  const auto read = read_flight_file(flight_path(folder->path(), view));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(view_to_json(*read), view_to_json(view));
  EXPECT_EQ(read->judged, view.judged);
  EXPECT_EQ(read->groups[0].id, ~std::uint64_t{0});
  EXPECT_EQ(read->flights[0].operation.error, Code::kConflict);
}

TEST(FlightFile, SaysHowToNameAFolderThatCanBeWritten) {
  const auto folder = os::TempFolder::create();
  ASSERT_TRUE(folder);
  const std::string file = folder->path() + "/file";
  ASSERT_TRUE(os::write_file(file, "no folder"));
  const auto status = write_flight_file(file, read_view(make_file()->map()));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, testing::StartsWith(file + ": "));
  EXPECT_THAT(status.error().message, testing::HasSubstr("; name a folder that can be written"));
}

TEST(FlightFile, RefusesOtherFiles) {
  const auto file = make_file();
  nlohmann::json json = view_to_json(read_view(file->map()));
  EXPECT_TRUE(view_from_json(json, "f"));
  for (const char* key : {"job", "world", "rank", "peers", "communicators", "flights", "version"}) {
    nlohmann::json without = json;
    without.erase(key);
    const auto read = view_from_json(without, "f");
    ASSERT_FALSE(read) << key;
    EXPECT_EQ(read.error().message,
              std::string("f: ") + key +
                  ": missing: no flight file of this version of regatta; give files that begin "
                  "regatta-flight-");
  }
  json["rank"] = 3;
  EXPECT_EQ(view_from_json(json, "f").error().code, Code::kInvalidInput);
  EXPECT_FALSE(view_from_json(nlohmann::json::array(), "f"));
}

}  // namespace
}  // namespace regatta::comm
