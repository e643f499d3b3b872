#include "regatta/platform/packing/placer.h"

#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include "regatta/platform/packing/test_random_cluster.h"

namespace regatta::packing {
namespace {

Placer make_placer(const std::vector<GpuNode>& nodes, const std::vector<Pod>& demand,
                   const PlacementPolicy& policy, std::uint64_t seed = 1) {
  auto placer = Placer::create(nodes, demand, policy, seed);
  EXPECT_TRUE(placer) << placer.error().message;
  return std::move(*placer);
}

PlacementPolicy policy_called(const std::string& name) {
  return *find_placement_policy(name);
}

// The fragment of a node in thousandths of a GPU, from its definition. Every pod is typical.
double fragment_of(const GpuNode& node, const std::vector<Pod>& typical) {
  double fragment = 0;
  for (Pod pod : typical) {
    pod.memory_mib = 0;
    const bool is_usable = pod.gpus > 0 && pod_fits(pod, node);
    for (int gpu = 0; gpu < node.gpus; ++gpu) {
      const int free = node.gpu_free_milli[static_cast<std::size_t>(gpu)];
      if (!is_usable || free < pod.gpu_milli) fragment += free;
    }
  }
  return fragment / static_cast<double>(typical.size());
}

TEST(Placer, NoGpuAndNoNodeIsOverItsCapacityInAThousandRandomReplays) {
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    for (const std::string& name : placement_policy_names()) {
      RandomSequence random(seed);
      const std::vector<GpuNode> nodes = random_nodes(random, 5);
      const std::vector<Pod> pods = random_pods(random, 40);
      Placer placer = make_placer(nodes, pods, policy_called(name), seed);
      std::vector<GpuNode> expected = nodes;
      for (const Pod& pod : pods) {
        const auto placement = placer.place(placer.pod_class(pod));
        if (!placement) continue;
        ASSERT_EQ(std::popcount(placement->gpus), pod.gpus);
        GpuNode& node = expected[static_cast<std::size_t>(placement->node)];
        ASSERT_TRUE(pod_fits(pod, node));
        node = node_with(node, pod, placement->gpus);
        for (int gpu = 0; gpu < kNodeGpusMax; ++gpu)
          ASSERT_GE(node.gpu_free_milli[static_cast<std::size_t>(gpu)], 0);
        ASSERT_EQ(placer.nodes()[static_cast<std::size_t>(placement->node)].gpu_free_milli,
                  node.gpu_free_milli);
      }
    }
  }
}

TEST(Placer, APodIsPlacedWheneverItFitsOnSomeNode) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    for (const std::string& name : placement_policy_names()) {
      RandomSequence random(seed);
      const std::vector<GpuNode> nodes = random_nodes(random, 4);
      const std::vector<Pod> pods = random_pods(random, 30);
      Placer placer = make_placer(nodes, pods, policy_called(name));
      for (const Pod& pod : pods) {
        bool is_possible = false;
        for (const GpuNode& node : placer.nodes())
          is_possible |= pod_fits(pod, node);
        ASSERT_EQ(placer.place(placer.pod_class(pod)).has_value(), is_possible) << name;
      }
    }
  }
}

// The first node and GPU with the best integer score of FGD; `pod` needs at most one GPU.
std::optional<PodPlacement> fgd_choice(const Pod& pod, const std::vector<GpuNode>& nodes,
                                       const std::vector<Pod>& typical) {
  int best = -1;
  std::optional<PodPlacement> choice;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const GpuNode& node = nodes[i];
    if (!pod_fits(pod, node)) continue;
    for (int gpu = 0; gpu < (pod.gpus == 0 ? 1 : node.gpus); ++gpu) {
      const std::uint32_t gpus = pod.gpus == 0 ? 0 : 1U << gpu;
      const GpuNode after = node_with(node, pod, gpus);
      if (after.gpu_free_milli[static_cast<std::size_t>(gpu)] < 0) continue;
      const double growth = fragment_of(after, typical) - fragment_of(node, typical);
      // A hair above, as sums in another order differ in the last bits.
      const int score = static_cast<int>(100 / (1 + std::exp(growth / 1000)) + 1e-9);
      if (score <= best) continue;
      best = score;
      choice = {static_cast<int>(i), gpus};
    }
  }
  return choice;
}

TEST(Placer, FgdTakesTheFirstNodeAndGpuWithTheBestIntegerScoreOfItsDefinition) {
  PlacementPolicy policy = policy_called("fgd");
  policy.typical_share = 1;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomSequence random(seed);
    const std::vector<GpuNode> nodes = random_nodes(random, 4);
    const std::vector<Pod> pods = random_pods(random, 20);
    Placer placer = make_placer(nodes, pods, policy);
    for (const Pod& pod : pods) {
      if (pod.gpus > 1) continue;
      const auto expected = fgd_choice(pod, placer.nodes(), pods);
      ASSERT_EQ(placer.place(placer.pod_class(pod)), expected) << seed;
    }
  }
}

TEST(Placer, BestFitLeavesTheLeastCpuAndGpuFree) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomSequence random(seed);
    const std::vector<GpuNode> nodes = random_nodes(random, 6);
    const std::vector<Pod> pods = random_pods(random, 20);
    Placer placer = make_placer(nodes, pods, policy_called("best_fit"));
    for (const Pod& pod : pods) {
      const auto left = [&pod](const GpuNode& node) {
        double gpu = -pod.gpu_request_milli();
        for (const int free : node.gpu_free_milli)
          gpu += free;
        return (node.cpu_milli - pod.cpu_milli) / 128000.0 + gpu / 8000.0;
      };
      double least = 1e9;
      const std::vector<GpuNode> before = placer.nodes();
      for (const GpuNode& node : before)
        if (pod_fits(pod, node)) least = std::min(least, left(node));
      const auto placement = placer.place(placer.pod_class(pod));
      if (!placement) continue;
      ASSERT_NEAR(left(before[static_cast<std::size_t>(placement->node)]), least, 1e-6);
    }
  }
}

TEST(Placer, KeptScoresChooseWhatFreshScoresChoose) {
  PlacementPolicy policy = policy_called("regatta");
  policy.weights.pool_price = 0;  // prices depend on what was placed before
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomSequence random(seed);
    const std::vector<Pod> pods = random_pods(random, 40);
    Placer placer = make_placer(random_nodes(random, 8), pods, policy);
    for (const Pod& pod : pods) {
      Placer fresh = make_placer(placer.nodes(), pods, policy);
      ASSERT_EQ(placer.place(placer.pod_class(pod)), fresh.place(fresh.pod_class(pod)));
    }
  }
}

TEST(Placer, TwoRunsChooseTheSamePlacements) {
  for (const std::string& name : placement_policy_names()) {
    std::vector<std::optional<PodPlacement>> runs[2];
    for (auto& run : runs) {
      RandomSequence random(7);
      const std::vector<GpuNode> nodes = random_nodes(random, 20);
      const std::vector<Pod> pods = random_pods(random, 200);
      Placer placer = make_placer(nodes, pods, policy_called(name), 5);
      for (const Pod& pod : pods)
        run.push_back(placer.place(placer.pod_class(pod)));
    }
    EXPECT_EQ(runs[0], runs[1]) << name;
  }
}

TEST(Placer, AReleasedPodLeavesTheNodeAsItWas) {
  for (const std::string& name : placement_policy_names()) {
    RandomSequence random(3);
    const std::vector<Pod> pods = random_pods(random, 30);
    GpuNode node{"n0", 16000, 65536, 2, {1000, 1000}, "T4"};
    Placer placer = make_placer({node}, pods, policy_called(name));
    const Pod whole{1000, 1024, 2, 1000, {}};
    const int whole_class = placer.pod_class(whole);
    const auto placement = placer.place(whole_class);
    ASSERT_TRUE(placement);
    EXPECT_FALSE(placer.place(whole_class));
    placer.release(whole_class, *placement);
    EXPECT_EQ(placer.nodes()[0].cpu_milli, node.cpu_milli);
    EXPECT_EQ(placer.nodes()[0].gpu_free_milli, node.gpu_free_milli);
    EXPECT_TRUE(placer.place(whole_class)) << name;
  }
}

TEST(Placer, ManyPlacementsAndReleasesKeepTheScoresCurrent) {
  const GpuNode node{"n0", 16000, 65536, 2, {1000, 1000}, "T4"};
  const Pod half{1000, 1024, 1, 500, {}};
  Placer placer = make_placer({node, node}, {half}, policy_called("regatta"));
  const int half_class = placer.pod_class(half);
  for (int round = 0; round < 100; ++round) {
    std::vector<PodPlacement> placed;
    while (const auto placement = placer.place(half_class))
      placed.push_back(*placement);
    ASSERT_EQ(placed.size(), 8U) << round;
    for (const PodPlacement& placement : placed)
      placer.release(half_class, placement);
  }
}

TEST(Placer, AfterAResetChoosesWhatANewPlacerChooses) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (const std::string& name : placement_policy_names()) {
      SCOPED_TRACE(name + ", seed " + std::to_string(seed));
      RandomSequence random(seed);
      const std::vector<GpuNode> nodes = random_nodes(random, 8);
      const std::vector<Pod> pods = random_pods(random, 60);
      Placer placer = make_placer(nodes, pods, policy_called(name), seed);
      for (int i = 0; i < 40; ++i)
        placer.place(placer.pod_class(pods[static_cast<std::size_t>(i)]));
      std::vector<GpuNode> now = placer.nodes();
      std::vector<Placer::NodeChange> changed;
      for (std::size_t node = random.below(2); node < now.size(); node += 2) {
        now[node].cpu_milli = nodes[node].cpu_milli / 2;
        now[node].gpu_free_milli = nodes[node].gpu_free_milli;
        changed.push_back({static_cast<int>(node), now[node]});
      }
      ASSERT_TRUE(placer.reset(changed));
      Placer fresh = make_placer(now, pods, policy_called(name), seed);
      for (const Pod& pod : pods)
        ASSERT_EQ(placer.place(placer.pod_class(pod)), fresh.place(fresh.pod_class(pod)));
    }
  }
}

TEST(Placer, RegattaKeepsAModelForThePodsThatNeedIt) {
  std::vector<GpuNode> nodes(40, {"n", 64000, 65536, 2, {1000, 1000}, "G2"});
  for (std::size_t i = 0; i < 20; ++i)
    nodes[i].gpu_model = "T4";
  // Half of the pods accept T4 alone, so the others belong on G2 although T4 stands first.
  const Pod any{4000, 1024, 1, 1000, {}};
  const Pod picky{4000, 1024, 1, 1000, {"T4"}};
  Placer placer = make_placer(nodes, {any, picky}, policy_called("regatta"));
  for (int i = 0; i < 40; ++i)
    ASSERT_TRUE(placer.place(placer.pod_class(any)));
  for (int i = 0; i < 40; ++i)
    ASSERT_TRUE(placer.place(placer.pod_class(picky))) << i;
}

TEST(Placer, ImpossibleAmountsAreNamedWithTheRemedy) {
  const GpuNode broken{"n0", 16000, 65536, 1, {1001}, "T4"};
  const auto nodes = Placer::create({broken}, {}, policy_called("fgd"), 1);
  ASSERT_FALSE(nodes);
  EXPECT_EQ(
      nodes.error().message,
      "node n0: a free amount is negative or larger than a node has; give CPU and memory of at "
      "least 0 and up to 16 GPUs with 0 to 1000 each");
  const auto pods = Placer::create({}, {Pod{1000, 1, 1, 0, {}}}, policy_called("fgd"), 1);
  ASSERT_FALSE(pods);
  EXPECT_EQ(
      pods.error().message,
      "a pod requests 1000 CPU, 1 MiB, 1 GPUs of 0; give amounts of at least 0 and 1 to 1000 of "
      "each GPU");
}

TEST(PlacementPolicy, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  const auto policy = find_placement_policy("worst_fit");
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().message,
            "policy 'worst_fit' is not known; choose one of random, best_fit, fgd, regatta");
}

}  // namespace
}  // namespace regatta::packing
