#include "tests/attacks/random_machine.h"

#include <algorithm>
#include <new>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

namespace regatta::attacks {
namespace {

using hook_test::kMiB;

std::vector<std::string> device_words(const RoundPlan& plan) {
  return {"--memory",         std::to_string(plan.memory_mib) + "MiB",
          "--context-memory", std::to_string(plan.context_mib) + "MiB",
          "--copy-speed",     "4000MB/s"};
}

sharing::DaemonOptions daemon_options(const RoundPlan& plan) {
  sharing::DaemonOptions options{.policy = REGATTA_SHARE_BURST_WEIGHT};
  options.nvml = plan.has_nvml ? REGATTA_DRIVER "/libnvidia-ml.so.1" : "";
  if (!plan.has_overcommit()) return options;
  options.host_memory = Bytes{1LL << 32};
  options.residency = {.link = BytesPerSecond{4e9},
                       .longest_wait = Seconds{0.1},
                       .timeout = Seconds{5.0},
                       .checkpoints = {.timeout = Seconds{5.0}}};
  options.residency.checkpoints.library =
      plan.has_checkpoints ? REGATTA_DRIVER "/libcuda.so.1" : "";
  return options;
}

}  // namespace

RandomMachine::RandomMachine(const RoundPlan& plan, std::uint64_t seed)
    : plan_(plan), random_(seed), device_(device_words(plan)) {
  records_fd_ = os::UniqueFd(::memfd_create("records", 0));
  if (::ftruncate(records_fd_.get(), sizeof(ProgramRecords)) != 0) std::abort();
  void* const memory = ::mmap(nullptr, sizeof(ProgramRecords), PROT_READ | PROT_WRITE, MAP_SHARED,
                              records_fd_.get(), 0);
  if (memory == MAP_FAILED) std::abort();
  records_ = new (memory) ProgramRecords;
  if (::socketpair(AF_UNIX, SOCK_DGRAM, 0, exchange_) != 0) std::abort();
  // The daemon, and its helpers, find the device as programs do.
  ::setenv("REGATTA_STANDIN", device_.socket().c_str(), 1);
  daemon_ = std::make_unique<sharing::TestDaemon>(
      std::vector<Bytes>{Bytes{static_cast<long long>(plan.memory_mib * kMiB)}},
      daemon_options(plan));
  environment_ = hook_test::environment_on(device_, hook_test::HookMode::kPreloaded);
}

RandomMachine::~RandomMachine() {
  for (Tenant& tenant : tenants_) {
    tenant.programs.clear();
    if (tenant.tenant_holder <= 0) continue;
    ::kill(tenant.tenant_holder, SIGKILL);
    sharing::wait_status(tenant.tenant_holder);
  }
  ::munmap(records_, sizeof(ProgramRecords));
  ::close(exchange_[0]);
  ::close(exchange_[1]);
}

void RandomMachine::fail(const std::string& what) {
  failure_ += (failure_.empty() ? "" : "; ") + what;
}

std::string RandomMachine::run() {
  start_tenants();
  while (failure_.empty()) {
    start_programs();
    if (!run_until_rest()) break;
    const bool is_over = std::ranges::all_of(tenants_, [](const Tenant& tenant) {
      return tenant.programs.empty() && tenant.programs_left == 0;
    });
    compare_at_rest();
    if (is_over || !failure_.empty()) break;
    if (one_in(3)) fill_a_tenant();
    happen_at_rest();
    for (Tenant& tenant : tenants_)
      for (Program& program : tenant.programs)
        program.running->go_on();
  }
  if (failure_.empty()) end_tenants();
  return failure_.empty() ? "" : failure_ + " [" + to_string(plan_) + "]" + what_is_there();
}

void RandomMachine::start_tenants() {
  for (const TenantPlan& plan : plan_.tenants) {
    Tenant& tenant = tenants_.emplace_back();
    tenant.plan = plan;
    tenant.programs_left = plan.programs;
    tenant.bound = plan.quota_mib * kMiB;
    auto ready = os::make_pipe();
    tenant.tenant_holder = daemon_->start_tenant(
        plan.name, Bytes{static_cast<long long>(tenant.bound)},
        [&](int) {
          [[maybe_unused]] const auto said = ::write(ready->write_end.get(), "\n", 1);
          for (;;)
            ::pause();
          return 0;
        },
        {{"overcommit", plan.is_overcommitted}});
    ready->write_end.reset();
    char letter = 0;
    if (::read(ready->read_end.get(), &letter, 1) != 1) fail("tenant " + plan.name + " is refused");
  }
}

ProgramOptions RandomMachine::draw_program(const Tenant& tenant, std::size_t record) {
  ProgramOptions options{
      .seed = random_(),
      .calls = 15 + below(50),
      .quota_mib = tenant.plan.quota_mib,
      .is_small = plan_.is_exact() && !plan_.shows_memory && !plan_.changes_limits ? 0U : 1U,
      .has_hidden = plan_.has_hidden_modules ? 1U : 0U,
      .is_swappable = tenant.plan.is_overcommitted ? 1U : 0U,
      .is_checked = 0,
      .records = static_cast<std::uint64_t>(records_fd_.get()),
      .record_number = record};
  if (!plan_.shows_memory) return options;
  options.sender = static_cast<std::uint64_t>(exchange_[0]);
  options.receiver = static_cast<std::uint64_t>(exchange_[1]);
  return options;
}

void RandomMachine::start_programs() {
  for (Tenant& tenant : tenants_) {
    while (tenant.programs_left > 0 &&
           tenant.programs.size() < static_cast<std::size_t>(tenant.plan.at_once)) {
      --tenant.programs_left;
      ++totals_.programs;
      const std::size_t record = next_record_++ % ProgramRecords::kMost;
      tenant.records.push_back(record);
      tenant.programs.push_back(
          {std::make_unique<RunningProgram>(*daemon_, tenant.plan.name,
                                            command_of(draw_program(tenant, record)), environment_),
           record});
    }
  }
}

// Until every program waits at a step or has ended; false: that does not come to pass, or something
// is wrong.
bool RandomMachine::run_until_rest() {
  const Seconds end = os::monotonic_now() + Seconds{60.0};
  const auto is_at_rest = [](const Tenant& tenant) {
    return std::ranges::all_of(tenant.programs, [](const Program& program) {
      return program.running->state() == RunningProgram::State::kWaits;
    });
  };
  int events = 6;  // a daemon that is always killed decides nothing
  double next_event = os::monotonic_now().value + 1e-3 * static_cast<double>(below(40));
  double next_count = os::monotonic_now().value + 10;
  while (!std::ranges::all_of(tenants_, is_at_rest)) {
    const double now = os::monotonic_now().value;
    if (now > end.value) fail("programs come to no step within 60 s");
    if (!failure_.empty()) return false;
    continue_stopped(now);
    if (now >= next_event && events > 0) {
      --events;
      happen_while_running();
      next_event = now + 1e-3 * static_cast<double>(5 + below(100));
    }
    if (now >= next_count) {
      continue_beside_uncounted();
      next_count = now + 1;
    }
    read_outputs(2);
  }
  continue_stopped(1e18);
  return failure_.empty();
}

// Memory that cannot leave and memory that nobody counts may leave too little for who waits until
// others go on, and these wait at a step of the test.
void RandomMachine::continue_beside_uncounted() {
  const auto report = read_report(*daemon_, device_);
  const bool is_any = report && std::ranges::any_of(report->tenants, [](const auto& one) {
                        return one.second.device > one.second.here();
                      });
  if (!is_any) return;
  for (const Tenant& tenant : tenants_)
    for (const Program& program : tenant.programs)
      program.running->go_on();
}

void RandomMachine::read_outputs(int timeout_ms) {
  std::vector<pollfd> outputs;
  for (const Tenant& tenant : tenants_)
    for (const Program& program : tenant.programs)
      outputs.push_back({program.running->output(), POLLIN, 0});
  ::poll(outputs.data(), outputs.size(), timeout_ms);
  std::size_t next = 0;
  for (Tenant& tenant : tenants_) {
    for (Program& program : tenant.programs) {
      if (outputs[next++].revents == 0) continue;
      program.running->read();
      collect(program, tenant);
    }
    std::erase_if(tenant.programs, [](const Program& program) {
      return program.running->state() == RunningProgram::State::kEnded;
    });
  }
}

void RandomMachine::collect(Program& program, const Tenant& tenant) {
  if (program.running->state() == RunningProgram::State::kEnded)
    records_->all[program.record].opened = 0;
  if (program.running->wrong().empty()) return;
  fail("tenant " + tenant.plan.name + ", program " + std::to_string(program.record) + ": " +
       program.running->wrong());
}

// All programs have ended: nothing is left of them.
void RandomMachine::end_tenants() {
  for (Tenant& tenant : tenants_) {
    ::kill(tenant.tenant_holder, SIGKILL);
    sharing::wait_status(tenant.tenant_holder);
    tenant.tenant_holder = -1;
  }
  std::optional<MemoryReport> report;
  for (const Seconds end = os::monotonic_now() + Seconds{5.0}; os::monotonic_now() < end;) {
    report = read_report(*daemon_, device_);
    if (report && report->tenants.empty() && report->device == 0) return;
    os::sleep_for(Seconds{0.002});
  }
  if (!report) return fail("no daemon answers at the end");
  fail("at the end there are " + std::to_string(report->tenants.size()) + " tenants, and " +
       std::to_string(report->device) + " bytes on the device");
}

}  // namespace regatta::attacks
