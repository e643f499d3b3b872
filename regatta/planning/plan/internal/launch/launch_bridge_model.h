// plan/internal/launch/launch_bridge_model.h: Python for Megatron Bridge: calls with one named
// argument a line, and the model as one of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "regatta/planning/plan/internal/launch/launch_script.h"

namespace regatta::plan {

// A string of Python.
std::string python_word(std::string_view text);
std::string python_word(bool is_true);

// NAME(field=value, ...), a line each.
class PythonCall {
 public:
  explicit PythonCall(std::string name) : name_(std::move(name)) {}

  // As it is: a number or an expression.
  template <typename Value>
  void add(std::string_view field, const Value& value) {
    lines_.push_back(fmt::format("{}={},", field, value));
  }
  void add_word(std::string_view field, std::string_view text) { add(field, python_word(text)); }
  void add_truth(std::string_view field, bool is_true) { add(field, python_word(is_true)); }

  // Its lines but the first are indented by so many spaces.
  std::string text(int indent) const;

 private:
  std::string name_;
  std::vector<std::string> lines_;
};

// The class that makes the model, and its module below megatron.bridge.models.
struct BridgeProvider {
  const char* module;
  const char* name;
};
BridgeProvider bridge_provider(const workload::ModelShape& model);
// As Python names it; what is not of torch has to be imported.
std::string activation_function(const workload::ModelShape& model);

// A call of its provider.
PythonCall bridge_model(const LaunchInput& input);

}  // namespace regatta::plan
