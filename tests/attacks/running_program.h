// tests/attacks/running_program.h: a random program that runs as one more process of a tenant: it
// goes on until its next step, or its end.
#pragma once

#include <string>
#include <vector>

#include "regatta/gpu/sharing/internal/daemon/test_daemon.h"
#include "tests/attacks/random_options.h"

namespace regatta::attacks {

// The path of the random program, and its words.
std::vector<std::string> command_of(const ProgramOptions& options);

class RunningProgram {
 public:
  enum class State { kRuns, kWaits, kEnded };

  // `words`: with the program's path. `tenant` is there already.
  RunningProgram(const sharing::TestDaemon& daemon, const std::string& tenant,
                 const std::vector<std::string>& words,
                 const std::vector<std::string>& environment);
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;
  ~RunningProgram();

  State state() const { return state_; }
  int output() const { return output_.get(); }  // readable when it has come to a step, or ended
  void read();
  // Reads until it waits or has ended; false: that does not come to pass within half a minute.
  bool wait();
  void go_on();
  void kill();
  void signal(int number) const;

  const std::string& step() const { return step_; }    // that it waits at
  const std::string& wrong() const { return wrong_; }  // what it said besides, and its end

 private:
  void end();

  pid_t pid_ = -1;
  os::UniqueFd input_;
  os::UniqueFd output_;
  State state_ = State::kRuns;
  bool is_killed_ = false;
  std::string line_;  // as far as it was read
  std::string step_;
  std::string wrong_;
};

}  // namespace regatta::attacks
