// tests/attacks/random_machine.h: a device with tenants whose random programs run at once, while
// things happen to them. When all programs wait, the books are compared with the device.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/attacks/memory_report.h"
#include "tests/attacks/random_options.h"
#include "tests/attacks/random_plan.h"
#include "tests/attacks/running_program.h"

namespace regatta::attacks {

// Counts of all that happened in rounds.
struct RandomTotals {
  std::uint64_t programs = 0;
  std::uint64_t comparisons = 0;
  std::uint64_t fills = 0;  // a tenant took all that it had left
  std::uint64_t calls = 0;
  std::uint64_t allocations = 0;
  std::uint64_t refusals = 0;
  std::uint64_t opened = 0;  // times 1 MiB: memory of others
  std::uint64_t checks = 0;  // of what was written
  std::uint64_t kills = 0;
  std::uint64_t stops = 0;
  std::uint64_t daemons = 0;  // that were killed, and started again
  std::uint64_t limits = 0;   // that were changed

  RandomTotals& operator+=(const RandomTotals& other);
};
std::string to_string(const RandomTotals& totals);

class RandomMachine {
 public:
  RandomMachine(const RoundPlan& plan, std::uint64_t seed);
  RandomMachine(const RandomMachine&) = delete;
  RandomMachine& operator=(const RandomMachine&) = delete;
  ~RandomMachine();

  // Until all programs have ended; what went wrong, "" for nothing.
  std::string run();
  RandomTotals totals() const;

 private:
  struct Program {
    std::unique_ptr<RunningProgram> running;
    std::size_t record = 0;
    double continue_at = 0;  // it is stopped until then
  };
  struct Tenant {
    TenantPlan plan;
    pid_t tenant_holder = -1;  // its first process, which does nothing
    int programs_left = 0;
    // Memory that it may have: the limit, or what it had when the limit was lowered.
    std::uint64_t bound = 0;
    std::vector<Program> programs;
    std::vector<std::size_t> records;  // of all its programs so far
  };

  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  void fail(const std::string& what);

  // random_machine.cc: programs, from one rest to the next.
  void start_tenants();
  void start_programs();
  ProgramOptions draw_program(const Tenant& tenant, std::size_t record);
  bool run_until_rest();
  void continue_beside_uncounted();
  void read_outputs(int timeout_ms);
  void collect(Program& program, const Tenant& tenant);
  void end_tenants();

  // random_machine_checks.cc: the oracle.
  void compare_at_rest();
  void check_bounds();
  void fill_a_tenant();
  std::map<std::string, std::uint64_t> opened_by_tenant(bool ever) const;
  std::string what_is_there() const;

  // random_machine_events.cc: what happens to tenants.
  void happen_while_running();
  void happen_at_rest();
  void continue_stopped(double now);
  void restart_daemon();
  void kill_one();
  void stop_some(double now);
  void change_limit();
  void change_policy();

  const RoundPlan plan_;
  std::mt19937_64 random_;
  std::string failure_;
  RandomTotals totals_;
  hook_test::DeviceProcess device_;
  os::UniqueFd records_fd_;
  ProgramRecords* records_ = nullptr;
  std::size_t next_record_ = 0;
  int exchange_[2] = {-1, -1};  // programs of all tenants inherit it
  std::unique_ptr<sharing::TestDaemon> daemon_;
  std::vector<std::string> environment_;
  std::vector<Tenant> tenants_;
};

}  // namespace regatta::attacks
