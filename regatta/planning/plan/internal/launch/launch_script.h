// plan/internal/launch/launch_script.h: what the scripts of all launchers are written with.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/result.h"
#include "regatta/planning/plan/launch.h"

namespace regatta::plan {

// A part of the script's command line: a bash array of one flag a line.
class FlagArray {
 public:
  explicit FlagArray(std::string name) : name_(std::move(name)) {}

  void add(std::string_view flag) { lines_.emplace_back(flag); }
  // The value is one word: quoted where it has to be.
  template <typename Value>
  void add(std::string_view flag, const Value& value);
  // As it is: words that the shell expands.
  void add_expanded(std::string_view flag, std::string_view value);

  std::string text() const;  // NAME=(...)
  std::string use() const;   // "${NAME[@]}"

 private:
  std::string name_;
  std::vector<std::string> lines_;
};

// One word of a shell.
std::string shell_word(std::string_view text);

// Comments of a shell or of Python: what the job is, and `notes` and the bounds of the search in
// lines of their own. Control characters of names become '?', so that no line ends too early.
std::string script_head(const LaunchInput& input, const std::vector<std::string>& notes);

// One line of a comment: control characters become '?'.
std::string one_line(std::string text);

// The layers of every part of the model, in its order.
std::vector<int> layers_of_parts(const workload::ModelShape& model,
                                 const workload::Strategy& strategy);
bool are_equal(std::span<const int> layers);

// Ranks that hold a copy of the weights together, those of one sequence among them; 1 without ZeRO.
int sharing_ranks(const workload::Strategy& strategy);

Error unsupported_by(Launcher launcher, std::string_view what, std::string_view remedy);

// The launchers, for a plan that check_launch_rules() accepts. `micro_batches` as
// workload::micro_batches() counts them.
std::string megatron_script(const LaunchInput& input);
std::string megatron_bridge_script(const LaunchInput& input);
std::string deepspeed_script(const LaunchInput& input, int micro_batches);
std::string torchtitan_script(const LaunchInput& input, int micro_batches);

template <typename Value>
void FlagArray::add(std::string_view flag, const Value& value) {
  lines_.push_back(fmt::format("{} {}", flag, shell_word(fmt::format("{}", value))));
}

}  // namespace regatta::plan
