#include "regatta/runtime/train/internal/train_spec_json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/runtime/train/test_run.h"

namespace regatta::train {
namespace {

nlohmann::json full_spec() {
  TrainSpec spec;
  spec.job = test::tiny_job();
  spec.strategy = {.tp = 2, .pp = 2, .micro_batch = 2};
  spec.resume = true;
  spec.trace_from_step = 3;
  spec.trace_to_step = 5;
  spec.flight_dir = "/run/out";
  nlohmann::json json = spec_to_json(spec);
  json.update({{"rank", 3},
               {"world_size", 4},
               {"rank_names", {"s0/0", "s0/1", "s1/0", "s1/1"}},
               {"server", "s1"},
               {"address", "10.0.0.2"},
               {"link_rate_Bps", 25e6},
               {"device_index", 1},
               {"cpu_share", 0.15},
               {"compute_cgroup", "/group"},
               {"job_token", "secret"}});
  return json;
}

TEST(TrainSpecJson, GivesBackWhatWasWritten) {
  const auto spec = spec_from_json(full_spec());
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->job.model.hidden, 32);
  EXPECT_EQ(spec->job.seed, 7U);
  EXPECT_EQ(spec->strategy, (workload::Strategy{.tp = 2, .pp = 2, .micro_batch = 2}));
  EXPECT_TRUE(spec->resume);
  EXPECT_EQ(spec->trace_from_step, 3);
  EXPECT_EQ(spec->trace_to_step, 5);
  EXPECT_EQ(spec->rank, Rank{3});
  EXPECT_EQ(spec->rank_names.size(), 4U);
  EXPECT_EQ(spec->server, "s1");
  EXPECT_EQ(spec->address, "10.0.0.2");
  EXPECT_EQ(spec->link_rate, BytesPerSecond{25e6});
  EXPECT_EQ(spec->device_index, 1);
  EXPECT_EQ(spec->cpu_share, 0.15);
  EXPECT_EQ(spec->compute_cgroup, "/group");
  EXPECT_EQ(spec->job_token, "secret");
  EXPECT_EQ(spec->flight_dir, "/run/out");
}

TEST(TrainSpecJson, NamesTheKeyThatIsWrong) {
  nlohmann::json json = full_spec();
  json.erase("rank");
  EXPECT_EQ(spec_from_json(json).error().message, "worker: spec: rank: missing");
  json = full_spec();
  json["server"] = 7;
  EXPECT_EQ(spec_from_json(json).error().message,
            "worker: spec: server: expected a string, found 7");
  json = full_spec();
  json["world_size"] = 5;
  EXPECT_EQ(spec_from_json(json).error().message,
            "worker: the strategy tp2 pp2 dp1 mb2 recompute=none needs 4 ranks, not 5");
  json = full_spec();
  json["rank"] = 4;
  EXPECT_EQ(spec_from_json(json).error().message, "worker: there is no rank 4 in a world of 4");
  EXPECT_FALSE(spec_from_json(nlohmann::json::array()));
}

}  // namespace
}  // namespace regatta::train
