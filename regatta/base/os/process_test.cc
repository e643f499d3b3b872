#include "regatta/base/os/process.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"

namespace regatta::os {
namespace {

std::string output_of(const std::vector<std::string>& argv, SpawnOptions options = {}) {
  auto pipe = make_pipe();
  options.stdout_fd = pipe->write_end.get();
  const auto pid = spawn(argv, options);
  if (!pid) return pid.error().message;
  pipe->write_end.reset();
  std::string text;
  char letter = 0;
  while (::read(pipe->read_end.get(), &letter, 1) == 1)
    text += letter;
  EXPECT_TRUE(wait_for(*pid, Seconds{10}));
  return text;
}

TEST(Spawn, RunsAProgramFromThePath) {
  EXPECT_EQ(output_of({"echo", "hello"}), "hello\n");
}

TEST(Spawn, AddsToTheEnvironmentAndOverridesIt) {
  ::setenv("REGATTA_TEST_OLD", "old", 1);
  SpawnOptions options;
  options.environment = {"REGATTA_TEST_OLD=new", "REGATTA_TEST_ADDED=1"};
  EXPECT_EQ(output_of({"sh", "-c", "echo $REGATTA_TEST_OLD $REGATTA_TEST_ADDED"}, options),
            "new 1\n");
}

TEST(Spawn, NamesAProgramThatIsMissing) {
  const auto pid = spawn({"regatta-no-such-program"}, {});
  ASSERT_FALSE(pid);
  EXPECT_EQ(pid.error().code, Code::kNotFound);
  EXPECT_EQ(pid.error().message,
            "regatta-no-such-program: cannot be started: no such file or directory");
  EXPECT_EQ(spawn({}, {}).error().code, Code::kInvalidInput);
}

TEST(Spawn, StartsInTheWorkingFolder) {
  SpawnOptions options;
  options.working_folder = "/proc";
  EXPECT_EQ(output_of({"pwd"}, options), "/proc\n");
}

TEST(Spawn, KeepsTheDescriptorsOpenThatItIsTold) {
  const auto kept = make_pipe();
  const auto other = make_pipe();
  const std::string kept_fd = std::to_string(kept->read_end.get());
  const std::string other_fd = std::to_string(other->read_end.get());
  SpawnOptions options;
  options.open_fds = {kept->read_end.get()};
  EXPECT_EQ(output_of({"sh", "-c",
                       "test -e /proc/self/fd/" + kept_fd +
                           " && echo kept; test -e /proc/self/fd/" + other_fd + " || echo not"},
                      options),
            "kept\nnot\n");
}

// Two forks: the second one is tied to the first one by itself.
TEST(DieWith, EndsThisProcessWithItsParent) {
  auto open_in_child = make_pipe();
  const pid_t parent = ::fork();
  if (parent == 0) {
    if (const pid_t self = ::getpid(); ::fork() == 0) {
      static_cast<void>(die_with(self).has_value());
      for (;;)
        ::pause();
    }
    ::usleep(50'000);
    ::_exit(0);
  }
  open_in_child->write_end.reset();
  ASSERT_TRUE(wait_for(parent, Seconds{10}));
  char letter = 0;
  EXPECT_EQ(::read(open_in_child->read_end.get(), &letter, 1), 0);
}

TEST(DieWith, EndsAProcessWhoseParentIsGone) {
  const pid_t child = ::fork();
  if (child == 0) {
    static_cast<void>(die_with(1'000'000'000).has_value());
    ::_exit(0);
  }
  const auto end = wait_for(child, Seconds{10});
  ASSERT_TRUE(end);
  EXPECT_EQ(end->signal, SIGKILL);
}

TEST(Spawn, OutlivesTheThreadThatCalledIt) {
  pid_t pid = -1;
  std::thread([&] { pid = *spawn({"sleep", "30"}, {}); }).join();
  sleep_for(Seconds{0.1});
  auto state = try_wait(pid);
  ASSERT_TRUE(state);
  EXPECT_FALSE(state->has_value());
  ASSERT_TRUE(terminate(pid));
}

// Run by the next test in a process of its own: starts a child, tells its id and stays.
TEST(SpawnHelper, DISABLED_StartsAChildAndStays) {
  const auto child = spawn({"sleep", "30"}, {});
  ASSERT_TRUE(child);
  ASSERT_TRUE(write_file_atomically(std::getenv("REGATTA_TEST_FILE"), std::to_string(*child)));
  sleep_for(Seconds{30});
}

TEST(Spawn, EndsTheChildWithItsParent) {
  auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  const std::string file = folder->path() + "/child";
  SpawnOptions options;
  options.environment = {"REGATTA_TEST_FILE=" + file};
  const auto parent = spawn({std::filesystem::read_symlink("/proc/self/exe").string(),
                             "--gtest_also_run_disabled_tests", "--gtest_filter=SpawnHelper.*"},
                            options);
  ASSERT_TRUE(parent);
  for (int i = 0; i < 500 && !read_file(file); ++i)
    sleep_for(Seconds{0.02});
  const auto text = read_file(file);
  ASSERT_TRUE(text);
  const auto child = static_cast<pid_t>(std::atoi(text->c_str()));
  ASSERT_GT(child, 0);
  ASSERT_TRUE(send_signal(*parent, SIGKILL));
  ASSERT_TRUE(wait_for(*parent, Seconds{10}));
  bool ended = false;
  for (int i = 0; i < 100 && !ended; ++i) {
    const auto entry = read_process(child);
    ended = !entry || entry->state == 'Z';
    sleep_for(Seconds{0.02});
  }
  EXPECT_TRUE(ended);
}

TEST(Wait, TellsStatusAndSignal) {
  const auto failing = wait_for(*spawn({"sh", "-c", "exit 3"}, {}), Seconds{10});
  EXPECT_EQ(failing->status, 3);
  EXPECT_EQ(to_string(*failing), "exit status 3");
  const auto killed = wait_for(*spawn({"sh", "-c", "kill -9 $$"}, {}), Seconds{10});
  EXPECT_EQ(killed->signal, SIGKILL);
  EXPECT_EQ(killed->shell_status(), 137);
  EXPECT_EQ(to_string(*killed), "signal 9 (Killed)");
  const auto by_real_time = wait_for(*spawn({"sh", "-c", "kill -40 $$"}, {}), Seconds{10});
  EXPECT_EQ(to_string(*by_real_time), "signal 40 (unknown)");
}

TEST(Wait, TimesOutAndRefusesStrangers) {
  const pid_t pid = *spawn({"sleep", "30"}, {});
  EXPECT_EQ(wait_for(pid, Seconds{0.05}).error().code, Code::kTimeout);
  EXPECT_EQ(terminate(pid)->signal, SIGTERM);
  EXPECT_EQ(wait_for(pid).error().code, Code::kNotFound);
}

TEST(Terminate, EndsAStoppedProcessAndADeafOne) {
  const pid_t stopped = *spawn({"sleep", "30"}, {});
  ASSERT_TRUE(send_signal(stopped, SIGSTOP));
  EXPECT_EQ(terminate(stopped, Seconds{5})->signal, SIGTERM);
  const pid_t deaf = *spawn({"sh", "-c", "trap '' TERM; while :; do sleep 1; done"}, {});
  sleep_for(Seconds{0.2});
  EXPECT_EQ(terminate(deaf, Seconds{0.2})->signal, SIGKILL);
}

TEST(ProcessTable, KnowsThisProcess) {
  const auto self = read_process(::getpid());
  ASSERT_TRUE(self);
  EXPECT_EQ(self->command, "os_test");
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_TRUE(is_alive(self->pid, self->start_time));
  EXPECT_FALSE(is_alive(self->pid, self->start_time + 1));
  EXPECT_TRUE(network_namespace_of(self->pid));
  bool found = false;
  for (const auto& entry : list_processes())
    found = found || entry.pid == self->pid;
  EXPECT_TRUE(found);
}

TEST(ProcessTable, TellsTheAgeOfAProcessSinceItsStart) {
  const pid_t child = *spawn({"sleep", "60"}, {});
  const Seconds young = age_of(*read_process(child));
  sleep_for(Seconds{0.1});
  const Seconds older = age_of(*read_process(child));
  EXPECT_GE(young.value, 0);
  EXPECT_LT(young.value, 30);
  EXPECT_GE((older - young).value, 0.1);
  EXPECT_TRUE(terminate(child));
}

TEST(ProcessTable, ReadsCommandsWithSpacesAndBrackets) {
  auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  ASSERT_TRUE(make_folder(folder->path() + "/7"));
  ASSERT_TRUE(write_file(folder->path() + "/7/stat",
                         "7 (a) b (c) T 3 7 7 0 -1 4194560 104 0 0 0 0 0 0 0 20 0 1 0 4242 2 3\n"));
  const auto entry = read_process(7, folder->path());
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->command, "a) b (c");
  EXPECT_EQ(entry->state, 'T');
  EXPECT_EQ(entry->parent, 3);
  EXPECT_EQ(entry->start_time, 4242ULL);
  EXPECT_EQ(list_processes(folder->path()).size(), 1U);
  EXPECT_EQ(read_process(8, folder->path()).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace regatta::os
