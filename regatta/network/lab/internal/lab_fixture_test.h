// lab/internal/lab_fixture_test.h: a lab for one test, and what its tests do inside.
#pragma once

#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/base/os/process.h"
#include "regatta/network/lab/internal/lab_probe_test.h"
#include "regatta/network/lab/lab.h"

namespace regatta::lab {

// A lab for one test, taken down at its end, and by itself when the test is aborted; skips the test
// where namespaces are not allowed.
class Lab : public testing::Test {
 protected:
  void bring_up(const topo::Cluster& cluster) {
    cluster_ = cluster;
    auto lab = up(cluster, {.die_with_caller = true});
    if (!lab && lab.error().code == Code::kUnsupported) GTEST_SKIP() << lab.error().message;
    ASSERT_TRUE(lab) << lab.error().message;
    lab_ = *lab;
  }

  void TearDown() override {
    if (!lab_.name.empty()) {
      EXPECT_TRUE(down(lab_.name));
    }
    for (const pid_t pid : background_)
      EXPECT_TRUE(os::wait_for(pid, Seconds{5}));
  }

  pid_t start(const std::string& node, const std::vector<std::string>& arguments,
              const ExecOptions& options = {}) {
    const auto pid = spawn(lab_, node, arguments, options);
    EXPECT_TRUE(pid) << (pid ? "" : pid.error().message);
    if (!pid) return -1;
    background_.push_back(*pid);
    return *pid;
  }

  void serve(const std::string& node) {
    start(node, {probe_program(), "--probe", "serve", "5000"});
  }

  // The output of the probe; "" when it fails.
  std::string probe(const std::string& node, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {probe_program(), "--probe"});
    auto pipe = os::make_pipe();
    ExecOptions options;
    options.stdout_fd = pipe->write_end.get();
    const auto pid = spawn(lab_, node, arguments, options);
    EXPECT_TRUE(pid) << (pid ? "" : pid.error().message);
    pipe->write_end.reset();
    std::string text;
    char letter = 0;
    while (::read(pipe->read_end.get(), &letter, 1) == 1)
      text += letter;
    return os::wait_for(*pid)->is_success() ? text + "." : "";
  }

  bool can_reach(const std::string& node, const std::string& address) {
    return !probe(node, {"reach", address, "5000"}).empty();
  }

  std::string address(std::size_t server) const { return lab_.servers[server].nic_addresses[0]; }

  double seconds_to_send(const std::string& from, std::size_t to, int bytes, int connections = 1) {
    const std::string text = probe(
        from, {"send", address(to), "5000", std::to_string(bytes), std::to_string(connections)});
    return text.empty() ? -1 : std::atof(text.c_str());
  }

  // How many of `count` datagrams, each from a port of its own, come back.
  int echoes(const std::string& from, std::size_t to, int count) {
    return std::atoi(probe(from, {"echo", address(to), "5000", std::to_string(count)}).c_str());
  }

  std::map<std::string, LinkState> links() const {
    std::map<std::string, LinkState> found;
    const auto states = link_states(lab_);
    EXPECT_TRUE(states);
    if (states) {
      for (const LinkState& state : *states)
        found[state.name] = state;
    }
    return found;
  }

  std::vector<LabProcess> inside() const {
    const auto found = processes(lab_);
    EXPECT_TRUE(found);
    return found ? *found : std::vector<LabProcess>();
  }

  topo::Cluster cluster_;
  LabInfo lab_;
  std::vector<pid_t> background_;
};

}  // namespace regatta::lab
