#include "regatta/platform/sched/internal/quota_yaml.h"

#include <string>

#include <gtest/gtest.h>

namespace regatta::sched {
namespace {

std::vector<QuotaQueue> queues_of(const std::string& text) {
  const auto document = YamlDocument::parse(text, "q.yaml");
  EXPECT_TRUE(document);
  auto queues = read_queues(document->root(), "queues");
  EXPECT_TRUE(document->status()) << document->status().error().message;
  return queues;
}

std::string error_of(const std::string& text) {
  const auto document = YamlDocument::parse(text, "q.yaml");
  EXPECT_TRUE(document);
  read_queues(document->root(), "queues");
  return document->status() ? "" : document->status().error().message;
}

TEST(ReadQueues, ReadsEveryKeyInTheUnitsOfTheTree) {
  const auto queues = queues_of(
      "queues:\n"
      "  - {name: lab, weight: 2.5}\n"
      "  - name: vision\n"
      "    parent: lab\n"
      "    guaranteed: {gpus: 2.5, gpu_memory: 200GiB, cpus: 32, memory: 1TiB, nics: 0.5}\n"
      "    limit: {gpus: 16}\n"
      "    user_limit: {cpus: 0.25, gpus: 0}\n");
  ASSERT_EQ(queues.size(), 2U);
  EXPECT_EQ(queues[0].name, "lab");
  EXPECT_EQ(queues[0].parent, "");
  EXPECT_EQ(queues[0].weight, 2.5);
  EXPECT_EQ(queues[0].guaranteed, ResourceAmounts{});
  EXPECT_EQ(queues[1].parent, "lab");
  EXPECT_EQ(queues[1].weight, 1);
  EXPECT_EQ(queues[1].guaranteed, (ResourceAmounts{{2500, 200 << 10, 32'000, 1 << 20, 500}}));
  EXPECT_EQ(queues[1].limit[0], 16'000);
  EXPECT_FALSE(queues[1].limit[1]);
  EXPECT_EQ(queues[1].user_limit[0], 0);  // a limit of nothing is a limit
  EXPECT_EQ(queues[1].user_limit[2], 250);
}

TEST(ReadQueues, ReadsLeases) {
  const auto queues =
      queues_of("queues: [{name: a}, {name: b, lease: 3s}, {name: c, lease: never}]\n");
  ASSERT_EQ(queues.size(), 3U);
  EXPECT_EQ(queues[0].lease, Seconds{0});
  EXPECT_EQ(queues[1].lease, Seconds{3});
  EXPECT_EQ(queues[2].lease, kLeaseNever);
  EXPECT_NE(error_of("queues: [{name: a, lease: 1s}]\n").find("lease"), std::string::npos);
}

TEST(ReadQueues, ReadsQuotasOfDeviceTypes) {
  const auto queues = queues_of(
      "queues:\n"
      "  - name: a\n"
      "    device_types:\n"
      "      h100-sxm: {guaranteed: 16, limit: 32}\n"
      "      a100: {user_limit: 5}\n");
  ASSERT_EQ(queues.size(), 1U);
  ASSERT_EQ(queues[0].device_types.size(), 2U);
  EXPECT_EQ(queues[0].device_types[0].type, "h100-sxm");
  EXPECT_EQ(queues[0].device_types[0].guaranteed, 16'000);
  EXPECT_EQ(queues[0].device_types[0].limit, 32'000);
  EXPECT_FALSE(queues[0].device_types[0].user_limit);
  EXPECT_EQ(queues[0].device_types[1].user_limit, 5'000);
}

TEST(ReadQueues, NamesLineAndKeyOfAQuotaOfADeviceType) {
  EXPECT_EQ(error_of("queues:\n  - name: a\n    device_types:\n      h100: {guaranteed: -1}\n"),
            "q.yaml:4: queues[0].device_types.h100.guaranteed: '-1' is out of range; write a "
            "whole number from 0 to 1000000000");
  EXPECT_EQ(error_of("queues:\n  - name: a\n    device_types:\n      h100: {user_limit: 0.5}\n"),
            "q.yaml:4: queues[0].device_types.h100.user_limit: '0.5' is not a whole number; write "
            "a whole number from 0 to 1000000000");
  EXPECT_EQ(error_of("queues:\n  - name: a\n    device_types: {h100: {limits: 1}}\n"),
            "q.yaml:3: queues[0].device_types.h100.limits: unknown key; did you mean 'limit'?");
  EXPECT_EQ(error_of("queues:\n  - name: a\n    device_types: {h100: 8}\n"),
            "q.yaml:3: queues[0].device_types.h100: found a single value where a map of keys is "
            "expected");
}

TEST(ReadQueues, NamesLineKeyAndRemedy) {
  EXPECT_EQ(error_of("queues:\n  - {name: a, guarantee: {gpus: 1}}\n"),
            "q.yaml:2: queues[0].guarantee: unknown key; did you mean 'guaranteed'?");
  EXPECT_EQ(error_of("queues:\n  - {parent: a}\n"),
            "q.yaml:2: queues[0].name: missing; add a text");
  EXPECT_EQ(error_of("queues:\n  - name: a\n    guaranteed: {gpus: -1}\n"),
            "q.yaml:3: queues[0].guaranteed.gpus: '-1' is out of range; write a number from 0 to "
            "1000000000");
  EXPECT_EQ(error_of("queues:\n  - name: a\n    limit: {memory: 64}\n"),
            "q.yaml:3: queues[0].limit.memory: '64' has no unit; write it like 80GiB");
  EXPECT_EQ(error_of("queues:\n  - name: a\n    limit: {gpu: 64}\n"),
            "q.yaml:3: queues[0].limit.gpu: unknown key; did you mean 'gpus'?");
  EXPECT_EQ(error_of("queues:\n  - name: a\n    user_limit: {gpus: 2e9}\n"),
            "q.yaml:3: queues[0].user_limit.gpus: '2e9' is out of range; write a number from 0 to "
            "1000000000");
  EXPECT_EQ(error_of("queues:\n  - name: a\n    limit: 64\n"),
            "q.yaml:3: queues[0].limit: found a single value where a map of keys is expected");
  EXPECT_EQ(error_of("queues:\n  - name: a\n    weight: 0\n"),
            "q.yaml:3: queues[0].weight: '0' is out of range; write a number from 1e-06 to "
            "1000000");
  EXPECT_EQ(error_of("queues: {a: 1}\n"),
            "q.yaml:1: queues: found a map where a list is expected; begin each item with '- '");
}

}  // namespace
}  // namespace regatta::sched
