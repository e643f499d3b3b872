// Scripts of random plans beside what the frameworks accept, as typed from their sources.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/planning/plan/internal/launch/test_launch_cases.h"
#include "regatta/planning/plan/internal/launch/test_launch_facts.h"
#include "regatta/planning/plan/launch.h"

namespace regatta::plan {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kPlans = 50;

// Counts of models that only some frameworks run.
struct SpecialModels {
  int windows = 0;
  int patterns = 0;  // of layers with state spaces
  int modules = 0;   // that predict
  int adapters = 0;
  int packed = 0;

  void count(const workload::ModelShape& model) {
    windows += model.window.tokens > 0 ? 1 : 0;
    patterns += model.layer_pattern.empty() ? 0 : 1;
    modules += model.mtp_layers > 0 ? 1 : 0;
    adapters += is_frozen(model) ? 1 : 0;
    packed += model.packed > 0 ? 1 : 0;
  }
  bool has_all(bool with_tuning) const {
    return std::min({windows, patterns, modules}) >= 3 &&
           (!with_tuning || std::min(adapters, packed) >= 3);
  }
};

struct LaunchedPlan {
  LaunchCase one;
  std::string script;
};

// Random ones that the launcher's framework can run.
std::vector<LaunchedPlan> launched_plans(Launcher launcher,
                                         workload::ModelShape (*model)(std::mt19937&)) {
  std::mt19937 random(7);
  std::vector<LaunchedPlan> plans;
  for (int tried = 0; tried < 20'000 && static_cast<int>(plans.size()) < kPlans; ++tried) {
    LaunchCase one = random_launch_case(random, model(random));
    one.placed = {.names = {"a", "b c"}, .nics = 4, .rails = 4};
    if (one.strategy.world_size() % 2 == 0) one.servers = 2;
    const auto script = one.script(launcher);
    if (script) plans.push_back({one, *script});
  }
  EXPECT_EQ(plans.size(), static_cast<std::size_t>(kPlans)) << to_string(launcher);
  return plans;
}

// A fifth of them and more have experts; as many again are of special models.
std::vector<LaunchedPlan> launched_plans(Launcher launcher) {
  std::vector<LaunchedPlan> plans = launched_plans(launcher, random_launch_model);
  const auto with_experts = std::count_if(
      plans.begin(), plans.end(), [](const auto& plan) { return has_experts(plan.one.model); });
  EXPECT_GE(with_experts, kPlans / 5) << to_string(launcher);
  if (launcher == Launcher::kTorchtitan) return plans;
  SpecialModels special;
  for (LaunchedPlan& plan : launched_plans(launcher, random_special_model)) {
    special.count(plan.one.model);
    plans.push_back(std::move(plan));
  }
  EXPECT_TRUE(special.has_all(launcher != Launcher::kMegatron)) << to_string(launcher);
  return plans;
}

std::string name_of(const LaunchCase& one) {
  return one.model.preset + " " + to_string(one.strategy) + " " + to_string(one.precision);
}

TEST(LaunchScripts, GiveMegatronWhatItAccepts) {
  const LaunchFacts torchrun("torchrun");
  const LaunchFacts megatron("megatron");
  for (const LaunchedPlan& plan : launched_plans(Launcher::kMegatron)) {
    SCOPED_TRACE(name_of(plan.one));
    const ScriptArguments given = shell_arguments(plan.script);
    EXPECT_THAT(torchrun.refusals(given.launcher), IsEmpty());
    EXPECT_THAT(megatron.refusals(given.program), IsEmpty());
  }
}

TEST(LaunchScripts, GiveMegatronBridgeWhatItAccepts) {
  const LaunchFacts bridge("megatron-bridge");
  for (const LaunchedPlan& plan : launched_plans(Launcher::kMegatronBridge)) {
    SCOPED_TRACE(name_of(plan.one));
    const Arguments fields = recipe_fields(plan.script);
    EXPECT_GT(fields.size(), 60U);
    EXPECT_THAT(bridge.refusals(fields), IsEmpty());
  }
}

TEST(LaunchScripts, GiveTorchtitanWhatItAccepts) {
  const LaunchFacts torchrun("torchrun");
  const LaunchFacts torchtitan("torchtitan");
  for (const LaunchedPlan& plan : launched_plans(Launcher::kTorchtitan)) {
    SCOPED_TRACE(name_of(plan.one));
    const ScriptArguments given = shell_arguments(plan.script);
    EXPECT_THAT(torchrun.refusals(given.launcher), IsEmpty());
    EXPECT_THAT(torchtitan.refusals(given.program), IsEmpty());
  }
}

TEST(LaunchScripts, GiveDeepspeedWhatItAccepts) {
  const LaunchFacts deepspeed("deepspeed");
  for (const LaunchedPlan& plan : launched_plans(Launcher::kDeepspeed)) {
    SCOPED_TRACE(name_of(plan.one));
    EXPECT_THAT(deepspeed.refusals(shell_arguments(plan.script).launcher), IsEmpty());
    EXPECT_THAT(deepspeed.refusals(deepspeed_keys(plan.script)), IsEmpty());
  }
}

TEST(LaunchFacts, RefuseWhatTheFrameworkRefuses) {
  const LaunchFacts megatron("megatron");
  EXPECT_THAT(megatron.refusals({{"--num-layer", "4"}}), Contains("--num-layer is no argument"));
  EXPECT_THAT(megatron.refusals({{"--num-layers", "4.5"}}), Contains(HasSubstr("is 4.5, not of")));
  EXPECT_THAT(megatron.refusals({{"--swiglu", "1"}}), Contains(HasSubstr("has no value")));
  EXPECT_THAT(megatron.refusals({{"--fp8-format", "e5m2"}}), Contains(HasSubstr("choice")));
  EXPECT_THAT(megatron.refusals({{"--overlap-param-gather", ""}, {"--overlap-grad-reduce", ""}}),
              Contains("needs --overlap-param-gather --use-distributed-optimizer"));
  EXPECT_THAT(megatron.refusals({{"--fp16", ""}, {"--bf16", ""}}),
              Contains("excludes --fp16 --bf16"));
  EXPECT_THAT(megatron.refusals({{"--num-layers", "61"}, {"--pipeline-model-parallel-size", "4"}}),
              Contains(HasSubstr("even-unless")));
  EXPECT_THAT(megatron.refusals(
                  {{"--num-experts", "8"}, {"--expert-model-parallel-size", "2"}, {"--fp16", ""}}),
              Contains(HasSubstr("above-one-excludes")));
  EXPECT_THAT(megatron.refusals({{"--num-experts", "8"}, {"--expert-model-parallel-size", "2"}}),
              IsEmpty());
}

// A folder with the scripts of all plans of a launcher.
std::filesystem::path scripts_of(Launcher launcher, const std::string& extension) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("launch-" + to_string(launcher));
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const LaunchedPlan& plan : launched_plans(launcher))
    std::ofstream(folder / (std::to_string(number++) + extension)) << plan.script;
  return folder;
}

bool runs(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

TEST(LaunchScripts, AreShell) {
  if (!runs("bash -c true")) GTEST_SKIP() << "bash is missing";
  for (const Launcher launcher :
       {Launcher::kMegatron, Launcher::kDeepspeed, Launcher::kTorchtitan}) {
    const std::filesystem::path folder = scripts_of(launcher, ".sh");
    EXPECT_TRUE(
        runs("for one in '" + folder.string() + "'/*.sh; do bash -n \"$one\" || exit 1; done"))
        << folder;
    std::filesystem::remove_all(folder);
  }
}

TEST(LaunchScripts, ArePythonForMegatronBridge) {
  if (!runs("python3 -c pass")) GTEST_SKIP() << "python3 is missing";
  const std::filesystem::path folder = scripts_of(Launcher::kMegatronBridge, ".py");
  EXPECT_TRUE(runs("python3 -m py_compile '" + folder.string() + "'/*.py")) << folder;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace regatta::plan
