// tests/hook/run.h: starts the test programs with and without the hook.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/base/os/process.h"

namespace regatta::hook_test {

struct ProgramResult {
  std::string output;
  int status = -1;
};

enum class HookMode { kPlain, kPreloaded, kReplaced };

// LD_PRELOAD with the hook before what is preloaded already, as `regatta gpu run` has it.
inline std::string preloading_hook() {
  const char* const others = std::getenv("LD_PRELOAD");
  return std::string("LD_PRELOAD=") + REGATTA_HOOK + (others != nullptr ? ":" : "") +
         (others != nullptr ? others : "");
}

inline std::vector<std::string> environment_for(HookMode how) {
  std::vector<std::string> environment;
  environment.push_back(std::string("LD_LIBRARY_PATH=") +
                        (how == HookMode::kReplaced ? REGATTA_REPLACED : REGATTA_DRIVER));
  if (how == HookMode::kPreloaded) environment.push_back(preloading_hook());
  return environment;
}

inline ProgramResult run(const std::vector<std::string>& words,
                         std::vector<std::string> environment) {
  auto output = os::make_pipe();
  const auto pid = os::spawn(
      words, {.environment = std::move(environment), .stdout_fd = output->write_end.get()});
  if (!pid) {
    ADD_FAILURE() << pid.error().message;
    return {};
  }
  output->write_end.reset();
  ProgramResult result;
  char part[65536];
  for (ssize_t size = 0; (size = ::read(output->read_end.get(), part, sizeof part)) > 0;)
    result.output.append(part, static_cast<std::size_t>(size));
  const auto end = os::wait_for(*pid, Seconds{60.0});
  result.status = end ? end->shell_status() : -1;
  return result;
}

}  // namespace regatta::hook_test
