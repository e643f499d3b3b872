// plan/internal/launch/test_launch_facts.h: for tests: what a framework accepts, as
// testdata/launch/facts/README.md writes it, and the arguments that a script gives.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace regatta::plan {

using Words = std::vector<std::string>;
// By name; "" for a flag; "?" for a value that only the machine knows.
using Arguments = std::map<std::string, std::string>;

class LaunchFacts {
 public:
  // Fails the test for a line that it does not know.
  explicit LaunchFacts(const std::string& name);

  // A sentence for each thing that the framework refuses; none for what it accepts.
  std::vector<std::string> refusals(const Arguments& given) const;

 private:
  std::string type_refusal(const std::string& name, const std::string& value) const;
  std::string refusal(const Words& relation, const Arguments& given) const;

  std::map<std::string, Words> types_;  // by argument
  std::vector<Words> relations_;
};

// The arguments of torchrun or `deepspeed`, and those of the program that it starts.
struct ScriptArguments {
  Arguments launcher;
  Arguments program;
};
ScriptArguments shell_arguments(const std::string& script);
// The fields of a recipe, "model.num_layers".
Arguments recipe_fields(const std::string& script);
// The keys of the configuration that a script of DeepSpeed writes, "zero_optimization.stage".
Arguments deepspeed_keys(const std::string& script);

}  // namespace regatta::plan
