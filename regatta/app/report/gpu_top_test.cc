#include <string>

#include <gtest/gtest.h>

#include "regatta/app/report/gpu_report.h"
#include "regatta/base/core/text.h"

namespace regatta::report {
namespace {

constexpr const char* kAnswer = R"({
  "policy": "fixed",
  "gpus": [{"memory_bytes": 85899345920, "drained": false}, {"memory_bytes": null, "drained": true}],
  "tenants": [
    {"name": "a", "share_percent": 30, "priority": "high",
     "memory": [{"gpu": 0, "limit_bytes": 4294967296, "used_bytes": 1073741824, "spare_bytes": 0}],
     "time": [{"gpu": 0, "last_second_percent": 29.5, "seconds": 12}],
     "engines": [{"gpu": 0, "engine": "copy_to_device", "last_second": 7500000000, "total": 9},
                 {"gpu": 1, "engine": "copy_from_device", "last_second": 5, "total": 9},
                 {"gpu": 0, "engine": "decode", "last_second": 62208000, "total": 9}],
     "processes": [{"pid": 7, "name": "python3", "memory": [{"gpu": 0, "used_bytes": 1073741824}]},
                   {"pid": 8, "name": "sh", "memory": []}]},
    {"name": "b", "share_percent": 70, "priority": "normal",
     "memory": [{"gpu": 0, "limit_bytes": 4294967296, "used_bytes": 0, "spare_bytes": 0},
                {"gpu": 1, "limit_bytes": 1048576, "used_bytes": 1048576, "spare_bytes": 0}],
     "time": [{"gpu": 0, "last_second_percent": 60, "seconds": 12}], "engines": [], "processes": []}]})";

Result<GpuTop> parse_gpu_top(const std::string& text) {
  return parse_daemon_answer(text).and_then(read_gpu_top);
}

GpuTop sample() {
  auto top = parse_gpu_top(kAnswer);
  EXPECT_TRUE(top);
  return top.value_or(GpuTop());
}

int columns_of(const std::string& line) {
  int columns = 0;
  for (const char letter : line)
    columns += (static_cast<unsigned char>(letter) & 0xc0U) != 0x80U ? 1 : 0;
  return columns;
}

std::vector<std::string> lines_of(const std::string& picture) {
  std::vector<std::string> lines = split(picture, '\n');
  EXPECT_EQ(lines.back(), "");
  lines.pop_back();
  return lines;
}

std::string line_with(const std::string& picture, const std::string& word) {
  for (const std::string& line : lines_of(picture)) {
    if (line.find(word) != std::string::npos) return line;
  }
  return "";
}

TEST(GpuTop, TheAnswerOfTheDaemonIsRead) {
  const GpuTop top = sample();
  EXPECT_EQ(top.policy, "fixed");
  ASSERT_EQ(top.gpus.size(), 2U);
  EXPECT_FALSE(top.gpus[1].memory);
  EXPECT_TRUE(top.gpus[1].is_drained);
  ASSERT_EQ(top.tenants.size(), 3U);
  EXPECT_DOUBLE_EQ(top.tenants[0].used_percent, 29.5);
  ASSERT_EQ(top.tenants[0].processes.size(), 1U);  // the other has nothing there
  EXPECT_EQ(top.tenants[0].processes[0].pid, 7);
}

TEST(GpuTop, AnAnswerOfAnotherVersionIsNoPicture) {
  for (const char* const text :
       {"", "[]", "{}", R"({"policy":1,"gpus":[],"tenants":[]})",
        R"({"policy":"fixed","gpus":[{}],"tenants":[]})",
        R"({"policy":"fixed","gpus":[],"tenants":[{"name":"a","memory":[{"gpu":0}]}]})"}) {
    const auto top = parse_gpu_top(text);
    ASSERT_FALSE(top) << text;
    EXPECT_EQ(top.error().code, Code::kInvalidInput);
  }
}

TEST(DaemonAnswer, NamesATenantThatHasMoreThanIsCounted) {
  const auto answer = parse_daemon_answer(
      R"({"policy": "fixed", "gpus": [{"memory_bytes": null, "drained": false}],
  "tenants": [{"name": "a", "compute_percent": 10, "share_percent": 30, "priority": "high",
     "memory": [{"gpu": 0, "limit_bytes": 104857600, "used_bytes": 104857600,
                 "uncounted_bytes": 524288000}],
     "time": [], "processes": [], "cgroups": []}]})");
  ASSERT_TRUE(answer);
  const auto text = gpu_tenants_table(*answer);
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("tenant a: has 500 MiB of GPU 0 beyond what is counted"), std::string::npos)
      << *text;
}

TEST(DaemonAnswer, OfAnotherVersionIsAnErrorOfEveryText) {
  for (const char* const text : {"[]", "{}", R"({"policy":"fixed","gpus":[{"gpu":"0"}]})",
                                 R"({"policy":"fixed","gpus":[],"tenants":[{"name":"a"}]})"}) {
    const auto answer = parse_daemon_answer(text);
    ASSERT_TRUE(answer) << text;
    EXPECT_FALSE(gpu_tenants_table(*answer)) << text;
  }
  EXPECT_EQ(
      gpu_tenant_text(*parse_daemon_answer(R"({"name":"a","memory":[{"gpu":0,"used_bytes":1}]})"))
          .error()
          .message,
      "answer of the GPU daemon (after an update, restart regatta gpu daemon): "
      "memory[0].limit_bytes: missing");
  EXPECT_EQ(read_drained_gpus(*parse_daemon_answer(R"({"gpus":[{"gpu":0,"drained":1}]})"))
                .error()
                .message,
            "answer of the GPU daemon (after an update, restart regatta gpu daemon): "
            "gpus[0].drained: expected true or false, found 1");
  EXPECT_FALSE(parse_daemon_answer("not JSON"));
}

TEST(GpuTop, ListsTheLargestUserFirst) {
  const std::string picture = gpu_top_screen(sample(), {}, {.columns = 120, .is_utf8 = false});
  EXPECT_LT(picture.find("\n  b "), picture.find("\n  a "));
  const std::string line = line_with(picture, "  a ");
  EXPECT_NE(line.find("1 GiB of      4 GiB"), std::string::npos) << line;
  EXPECT_NE(line.find("29.5 of  30.0 %"), std::string::npos) << line;
  EXPECT_NE(line.find(" ! "), std::string::npos) << line;
  EXPECT_NE(line_with(picture, "GPU 0").find("1 GiB of 80 GiB"), std::string::npos);
  EXPECT_NE(line_with(picture, "GPU 0").find(" 90 %"), std::string::npos);
  EXPECT_NE(line_with(picture, "GPU 1").find("drained"), std::string::npos);
  EXPECT_EQ(line_with(picture, "to the GPU"), "    7.50 GB/s to the GPU, decodes 62.21 Mpixel/s");
  EXPECT_NE(line_with(picture, "7 python3").find("1 GiB"), std::string::npos);
}

TEST(GpuTop, NoLineIsWiderThanTheScreenAndNoPictureHigher) {
  GpuTop top = sample();
  top.tenants[1].name = std::string(47, 'x');
  top.tenants[1].used_percent = 250;  // never, but a picture is drawn of anything
  GpuTopHistory history;
  for (int i = 0; i < 100; ++i)
    history.add(top);
  for (int columns = 1; columns < 300; columns += 7) {
    for (const int rows : {0, 1, 2, 5, 40}) {
      for (const bool is_utf8 : {false, true}) {
        const auto lines = lines_of(gpu_top_screen(
            top, history, {.columns = columns, .rows = rows, .is_utf8 = is_utf8, .title = "now"}));
        EXPECT_TRUE(rows == 0 || lines.size() <= static_cast<std::size_t>(rows));
        for (const std::string& line : lines)
          EXPECT_LE(columns_of(line), columns);
      }
    }
  }
}

TEST(GpuTop, WhatIsAwayIsNotOnTheGpu) {
  GpuTop top = sample();
  top.tenants[0].swapped_out = Bytes{512LL << 20};
  const std::string picture = gpu_top_screen(top, {}, {.columns = 120, .is_utf8 = false});
  EXPECT_NE(line_with(picture, "GPU 0").find("512 MiB of 80 GiB"), std::string::npos);
  EXPECT_NE(line_with(picture, "  a ").find("1 GiB of      4 GiB"), std::string::npos);
  EXPECT_NE(line_with(picture, "512 MiB away, 7.50 GB/s to the GPU"), "");
}

TEST(GpuTop, WhatHasNoRoomIsCounted) {
  const std::string whole = gpu_top_screen(sample(), {}, {.columns = 120});
  const auto count = static_cast<int>(lines_of(whole).size());
  const auto lines = lines_of(gpu_top_screen(sample(), {}, {.columns = 120, .rows = count - 2}));
  EXPECT_EQ(lines.back(), "and 3 lines more; make the window higher");
  EXPECT_EQ(lines_of(gpu_top_screen(sample(), {}, {.columns = 120, .rows = count})),
            lines_of(whole));
}

TEST(GpuTop, BarsAreFullOnlyWhenAllIsUsedAndEmptyOnlyWhenNothingIs) {
  GpuTop top = sample();
  top.tenants.resize(1);
  const auto bars = [&](double had) {
    top.tenants[0].used_percent = had;
    const std::string line =
        line_with(gpu_top_screen(top, {}, {.columns = 100, .is_utf8 = false}), "  a ");
    const std::size_t begin = line.find("4 GiB ") + 6;
    return line.substr(begin, line.find(' ', begin) - begin);
  };
  EXPECT_EQ(bars(0).find('#'), std::string::npos);
  EXPECT_EQ(bars(0.1).find_last_of('#'), 0U);
  EXPECT_EQ(bars(99.9).find_first_of('.'), bars(99.9).size() - 1);
  EXPECT_EQ(bars(100).find('.'), std::string::npos);
}

TEST(GpuTop, ATenantThatLeftLosesItsPast) {
  GpuTopHistory history;
  GpuTop top = sample();
  for (int i = 0; i < 70; ++i)
    history.add(top);
  EXPECT_EQ(history.used_percent("a", 0).size(), GpuTopHistory::kSamples);
  EXPECT_TRUE(history.used_percent("a", 1).empty());
  top.tenants.erase(top.tenants.begin());
  history.add(top);
  EXPECT_TRUE(history.used_percent("a", 0).empty());
  EXPECT_EQ(history.used_percent("b", 0).back(), 60);
}

}  // namespace
}  // namespace regatta::report
