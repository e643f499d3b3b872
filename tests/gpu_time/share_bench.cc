// How well parts of a device's time are kept: each row a set of unchanged programs on a stand-in
// device, measured by the device's log. Words: which rows (all when none), rounds=N, seconds=N. Set
// the machine aside.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "regatta/base/core/stats.h"
#include "tests/gpu_time/time_shared_machine.h"

namespace regatta::gpu_time {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Row {
  std::string name;
  std::string policy;
  std::vector<Tenant> tenants;
  std::vector<Work> works;
  std::vector<double> parts;
  unsigned processors = 132;
};

// When the device was idle: between two programs, and between two intervals of one.
struct Idle {
  double within = 0;   // of the time
  double between = 0;  // of the time
  int changes = 0;     // from one program to another
  double gap_p50_us = 0;
  double gap_p90_us = 0;
};

Idle idle_of(const std::vector<Interval>& log, Time begin, Time end) {
  Idle idle;
  Time within{};
  Time between{};
  std::vector<double> gaps;
  const Interval* last = nullptr;
  for (const Interval& one : log) {
    if (one.start < begin || one.end > end) continue;
    if (last != nullptr) {
      const Time gap = std::max(Time{}, one.start - last->end);
      (one.pid == last->pid ? within : between) += gap;
      if (one.pid != last->pid) gaps.push_back(1e-3 * static_cast<double>(gap.count()));
    }
    last = &one;
  }
  std::ranges::sort(gaps);
  const auto whole = static_cast<double>((end - begin).count());
  return {.within = static_cast<double>(within.count()) / whole,
          .between = static_cast<double>(between.count()) / whole,
          .changes = static_cast<int>(gaps.size()),
          .gap_p50_us = quantile(gaps, 0.5),
          .gap_p90_us = quantile(gaps, 0.9)};
}

struct Result {
  Idle idle;
  double longest_wait_s = 0;
  double worst = 0;     // miss of a part over any second
  double busy = 0;      // of what the parts sum to
  double relative = 0;  // worst miss of a part of the time that the device was busy
};

Result measure(const Row& row, Time length) {
  TimeSharedMachine machine({.processors = row.processors});
  machine.set_policy(row.policy);
  for (std::size_t i = 0; i < row.tenants.size(); ++i)
    machine.run(row.tenants[i], row.works[i]);
  machine.wait_until_ready();
  const Time begin = clock_now();
  sleep_until(begin + length);
  const std::vector<Interval> log = machine.log();
  Result result{.idle = idle_of(log, begin, begin + length)};
  double whole = 0;
  for (std::size_t i = 0; i < row.parts.size(); ++i) {
    result.worst = std::max(result.worst,
                            worst_miss(log, machine.pid(i), row.parts[i], begin, begin + length));
    result.busy += share(log, machine.pid(i), begin, begin + length);
    whole += row.parts[i];
    result.longest_wait_s = std::max(
        result.longest_wait_s,
        std::chrono::duration<double>(longest_wait(log, machine.pid(i), begin, begin + length))
            .count());
  }
  for (std::size_t i = 0; i < row.parts.size(); ++i)
    result.relative = std::max(
        result.relative, std::abs(share(log, machine.pid(i), begin, begin + length) / result.busy -
                                  row.parts[i] / whole));
  result.busy /= whole;
  return result;
}

Row equal_row(int count, const std::function<Work(int)>& work, unsigned processors = 132) {
  Row row{.name = "", .policy = "equal", .processors = processors};
  for (int i = 0; i < count; ++i) {
    row.tenants.push_back({.name = "t" + std::to_string(i), .compute = "6"});
    row.works.push_back(work(i));
    row.parts.push_back(1.0 / count);
  }
  return row;
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  const auto add = [&](const std::string& name, Row row) {
    row.name = name;
    rows.push_back(std::move(row));
  };
  for (const int count : {2, 4, 8, 16}) {
    add("equal, " + std::to_string(count) + " tenants, 100 us to 800 us",
        equal_row(count, [](int i) { return Work{.kernel = microseconds(100) * (1 + i % 8)}; }));
  }
  for (const Time kernel : {Time(microseconds(5)), Time(microseconds(50)), Time(microseconds(500)),
                            Time(milliseconds(5))}) {
    add("equal, 2 tenants, " + std::to_string(kernel.count() / 1000) + " us and 1 ms",
        equal_row(2, [=](int i) { return Work{.kernel = i == 0 ? kernel : milliseconds(1)}; }));
  }
  add("equal, 2 tenants, graphs of 20 x 50 us and 5 x 300 us", equal_row(2, [](int i) {
        return Work{.kernel = microseconds(i == 0 ? 50 : 300), .graph_kernels = i == 0 ? 20 : 5};
      }));
  add("equal, 4 tenants, two of them graphs", equal_row(4, [](int i) {
        return Work{.kernel = microseconds(100 + 100 * i), .graph_kernels = i % 2 == 0 ? 0 : 8};
      }));
  for (const unsigned processors : {16U, 256U}) {
    add("equal, 2 tenants, " + std::to_string(processors) + " processors",
        equal_row(
            2,
            [](int i) { return Work{.kernel = microseconds(200), .blocks = i == 0 ? 8U : 1024U}; },
            processors));
  }
  add("equal, 2 tenants, one with 4 streams of narrow kernels", equal_row(2, [](int i) {
        return Work{
            .kernel = microseconds(400), .blocks = i == 0 ? 30U : 1024U, .threads = i == 0 ? 4 : 1};
      }));
  add("fixed, 30 and 70 %",
      {.policy = "fixed",
       .tenants = {{.name = "a", .compute = "30"}, {.name = "b", .compute = "70"}},
       .works = {{.kernel = microseconds(100)}, {.kernel = milliseconds(2)}},
       .parts = {0.3, 0.7}});
  add("fixed, 30 and 50 %",
      {.policy = "fixed",
       .tenants = {{.name = "a", .compute = "30"}, {.name = "b", .compute = "50"}},
       .works = {{.kernel = microseconds(100)}, {.kernel = milliseconds(2)}},
       .parts = {0.3, 0.5}});
  add("weight, 1 to 3", {.policy = "weight",
                         .tenants = {{.name = "a"}, {.name = "b", .weight = 3}},
                         .works = {{.kernel = microseconds(200)}, {.kernel = microseconds(500)}},
                         .parts = {0.25, 0.75}});
  add("burst-weight, 1 to 3, one more idle",
      {.policy = "burst-weight",
       .tenants = {{.name = "a", .compute = "1"}, {.name = "b", .compute = "1", .weight = 3}},
       .works = {{.kernel = microseconds(200)}, {.kernel = microseconds(500)}},
       .parts = {0.25, 0.75}});
  add("fixed, alone with 30 %", {.policy = "fixed",
                                 .tenants = {{.name = "a", .compute = "30"}},
                                 .works = {{.kernel = microseconds(100)}},
                                 .parts = {0.3}});
  return rows;
}

}  // namespace
}  // namespace regatta::gpu_time

int main(int argc, char** argv) {
  using namespace regatta::gpu_time;
  std::vector<std::string> wanted;
  int rounds = 3;
  int length = 3;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("rounds="))
      rounds = std::atoi(word.c_str() + 7);
    else if (word.starts_with("seconds="))
      length = std::atoi(word.c_str() + 8);
    else
      wanted.push_back(word);
  }
  std::printf("%-58s %28s %14s %10s\n", "", "worst of any second, points", "of the busy",
              "busy, %");
  for (const Row& row : all_rows()) {
    const auto is_of_row = [&](const std::string& word) {
      return row.name.find(word) != std::string::npos;
    };
    if (!wanted.empty() && std::ranges::none_of(wanted, is_of_row)) continue;
    std::vector<double> worst;
    double relative = 0;
    Idle idle;  // of the last round
    double wait_s = 0;
    std::vector<double> busy;
    for (int round = 0; round < rounds; ++round) {
      const Result result = measure(row, std::chrono::seconds(length));
      worst.push_back(100 * result.worst);
      busy.push_back(100 * result.busy);
      idle = result.idle;
      wait_s = std::max(wait_s, result.longest_wait_s);
      relative = std::max(relative, 100 * result.relative);
    }
    std::ranges::sort(worst);
    std::ranges::sort(busy);
    std::printf("%-58s %10.2f (%5.2f to %6.2f) %14.2f %10.1f\n", row.name.c_str(),
                regatta::quantile(worst, 0.5), worst.front(), worst.back(), relative,
                regatta::quantile(busy, 0.5));
    std::printf(
        "%58s idle within turns %.2f %%, between %.2f %%: %d changes, p50 %.0f us, p90 %.0f us; "
        "longest wait %.0f ms\n",
        "", 100 * idle.within, 100 * idle.between, idle.changes, idle.gap_p50_us, idle.gap_p90_us,
        1e3 * wait_s);
    std::fflush(stdout);
  }
  return 0;
}
