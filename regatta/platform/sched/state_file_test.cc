#include "regatta/platform/sched/state_file.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/platform/sched/test_states.h"

namespace regatta::sched {
namespace {

Result<topo::Cluster> no_cluster(const std::string& name) {
  return Error{Code::kNotFound, name + ": there is no such file"};
}

// The example of docs/formats/sched_state.md.
constexpr const char* kExample = R"(nodes:
  - {name: n, count: 4, devices: 8, device_type: h100-sxm, device_memory: 80GiB, cpus: 96, memory: 1TiB, nics: 8}
queues:
  - {name: research, guaranteed: {gpus: 16}}
  - {name: service, guaranteed: {gpus: 8}, limit: {gpus: 16}}
running:
  - name: a
    queue: research
    roles: [{devices: 8}]
    checkpoint: {interval: 30min, restart: 2min}
    run_time: {median: 4h, log_spread: 0.5}
    running_for: 90min
    since_checkpoint: 12min
    replicas: [{node: n0, devices: [0, 1, 2, 3, 4, 5, 6, 7]}]
pending:
  - name: b
    queue: service
    priority: 5
    class: online
    roles: [{replicas: 2, devices: 8}]
    topology: {required: leaf}
    waited: 3min
)";

// The example with `to` instead of `from`.
std::string example_with(const std::string& from, const std::string& to) {
  std::string text = kExample;
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

std::string error_of(const std::string& text) {
  const auto state = parse_state(text, "s.yaml", no_cluster);
  return state ? "no error" : state.error().message;
}

TEST(ParseState, ReadsTheExampleWhichDecides) {
  const auto state = parse_state(kExample, "s.yaml", no_cluster);
  ASSERT_TRUE(state) << state.error().message;
  ASSERT_EQ(state->snapshot.nodes.size(), 4U);
  EXPECT_EQ(state->snapshot.nodes[3].name, "n3");
  EXPECT_EQ(state->snapshot.nodes[3].device_memory_mib, 80 << 10);
  EXPECT_EQ(state->snapshot.nodes[3].cpu_milli, 96'000);
  EXPECT_EQ(state->snapshot.now, Seconds{0});
  ASSERT_EQ(state->snapshot.running.size(), 1U);
  EXPECT_EQ(state->snapshot.running[0].started, Seconds{-5400});
  EXPECT_EQ(state->snapshot.running[0].checkpointed, Seconds{-720});
  EXPECT_EQ(state->snapshot.running[0].replicas[0].devices, 0xFFU);
  ASSERT_EQ(state->queue.jobs.size(), 1U);
  EXPECT_FALSE(state->queue.jobs[0].request.is_preemptible);
  EXPECT_EQ(state->queue.jobs[0].request.submitted, Seconds{-180});
  const int service = *state->queue.quotas.find_leaf("service");
  EXPECT_EQ(state->queue.quotas.queue(service).limit[0], 16'000);

  const auto decision = decide(state->snapshot, state->queue, *find_scheduling_policy("regatta"));
  ASSERT_TRUE(decision);
  const SchedulingAction* const start = find_action(*decision, "b");
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(start->kind, ActionKind::kStart);
  EXPECT_EQ(start->replicas.size(), 2U);
}

TEST(ParseState, NamesTheLineAndTheRemedyForNodes) {
  EXPECT_EQ(error_of(example_with("memory: 1TiB", "memory: 1024")),
            "s.yaml:2: nodes[0].memory: '1024' has no unit; write it like 80GiB");
  EXPECT_EQ(error_of(example_with("nics: 8}", "nics: 8, health: broken}")),
            "s.yaml:2: nodes[0].health: 'broken' is not one of ready, cordoned, draining, failed");
  EXPECT_EQ(error_of(example_with("nodes:\n", "nodes:\n  - {name: n2}\n")),
            "s.yaml:3: nodes[1].name: there are two nodes 'n2'; give each a name of its own");
  EXPECT_EQ(error_of(example_with("nics: 8}", "nics: 8, leaf: 7}")),
            "s.yaml:1: nodes: node n0: leaf 7 of at most 4; number leaves from 0 without gaps");
  EXPECT_EQ(error_of("cluster: c.yaml\n"), "s.yaml:1: cluster: c.yaml: there is no such file");
  EXPECT_EQ(error_of("nodes: []\n"), "s.yaml:1: nodes: it is empty; give a node");
}

topo::Cluster two_servers() {
  topo::Cluster cluster;
  cluster.server_types["t"] = {};
  cluster.servers = {{.name = "a", .type = "t", .address = {}},
                     {.name = "b", .type = "t", .address = {}}};
  return cluster;
}

TEST(ParseState, TakesWhatIsSaidOfAServerFromOnePlace) {
  const auto read = [](const std::string& text) {
    return parse_state("cluster: c.yaml\n" + text, "s.yaml",
                       [](const std::string&) -> Result<topo::Cluster> { return two_servers(); });
  };
  const auto state = read("nodes: [{name: b, health: cordoned}]\n");
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->snapshot.nodes[1].health, NodeHealth::kCordoned);
  EXPECT_EQ(read("nodes:\n  - {name: b, watched_for: 9d, failed_ago: [8d]}\n"
                 "  - {name: b, watched_for: 1d}\n")
                .error()
                .message,
            "s.yaml:4: nodes[1].name: server b is listed twice; give all its keys in one place");
}

TEST(ParseState, NamesTheLineAndTheRemedyForQueues) {
  EXPECT_EQ(error_of(example_with("queue: service", "queue: servise")),
            "s.yaml:17: pending[0].queue: queue 'servise': there is no such queue; use one like "
            "research");
  EXPECT_EQ(error_of(example_with("    queue: service\n", "")),
            "s.yaml:16: pending[0].queue: missing; name the queue in which the job waits");
  EXPECT_EQ(error_of(example_with("{name: research,", "{name: research, parent: research,")),
            "s.yaml:4: queues[0].name: queue research: it is its own ancestor (research below "
            "research); give one of them another parent, or none");
  EXPECT_EQ(error_of(example_with("{gpus: 16}}\n", "{gpus: -16}}\n")),
            "s.yaml:4: queues[0].guaranteed.gpus: '-16' is out of range; write a number from 0 to "
            "1000000000");
  EXPECT_EQ(error_of(example_with("name: service", "name: service, parent: lab")),
            "s.yaml:5: queues[1].name: queue service: its parent lab does not exist; add that "
            "queue or leave the parent out");
  EXPECT_EQ(error_of(example_with("name: service", "name: research")),
            "s.yaml:5: queues[1].name: queue research: it is there twice; give each queue a name "
            "of its own");
  EXPECT_EQ(error_of(example_with("guaranteed: {gpus: 8}", "device_types: {h100: {limit: 8}}")),
            "s.yaml:5: queues[1].device_types.h100: no node has devices of this type; use "
            "h100-sxm");
  EXPECT_EQ(error_of(example_with("limit: {gpus: 16}",
                                  "device_types: {h100-sxm: {guaranteed: 9, limit: 9}}")),
            "s.yaml:5: queues[1].name: queue service: it is guaranteed 8 devices, but 9 devices by "
            "device type and for the queues below it; raise its guarantee or lower those");
}

TEST(ParseState, NamesTheLineAndTheRemedyForJobs) {
  EXPECT_EQ(error_of(example_with("node: n0", "node: m0")),
            "s.yaml:14: running[0].replicas[0].node: no node is called 'm0'; name one of nodes");
  EXPECT_EQ(error_of(example_with("pending:", R"(  - name: c
    queue: research
    roles: [{devices: 1}]
    replicas: [{node: n1, devices: [7]}]
  - name: d
    queue: research
    roles: [{devices: 2}]
    replicas: [{node: n0, devices: [6, 7]}]
pending:)")),
            "s.yaml:22: running[2].replicas: node n0: device 6 is taken twice, the second time by "
            "job d; give one of them another device");
  EXPECT_EQ(
      error_of(example_with("devices: [0, 1, 2, 3, 4, 5, 6, 7]", "devices: [0, 1]")),
      "s.yaml:14: running[0].replicas: job a: a replica on node n0 has 2 devices, and its role "
      "worker takes 8; list 8 different ones");
  EXPECT_EQ(
      error_of(example_with("5, 6, 7]", "5, 6, 9]")),
      "s.yaml:14: running[0].replicas: job a: a replica on node n0 has device 9, and the node "
      "has 8, numbered from 0; correct the number");
  EXPECT_EQ(
      error_of(example_with("replicas: [{",
                            "replicas: [{node: n1, devices: [0, 1, 2, 3, 4, 5, "
                            "6, 7]}, {")),
      "s.yaml:14: running[0].replicas: job a: its role worker runs with 2 replicas, and the gang "
      "has at most 1; list fewer, or raise replicas_max");
  EXPECT_EQ(
      error_of(example_with("    roles: [{devices: 8}]", "    roles: [{devices: 8, replicas: 2}]")),
      "s.yaml:14: running[0].replicas: job a: its role worker runs with 1 replica, and the gang "
      "has at least 2; list all of them, or lower replicas");
  EXPECT_EQ(error_of(example_with("name: b", "name: a")),
            "s.yaml:16: pending[0].name: another job has this name; give each a name of its own");
  EXPECT_EQ(error_of(example_with("priority", "priorty")),
            "s.yaml:18: pending[0].priorty: unknown key; did you mean 'priority'?");
  EXPECT_EQ(error_of(example_with("roles: [{replicas: 2, devices: 8}]", "roles: [{}]")),
            "s.yaml:16: pending[0]: job b: role worker: it asks for nothing; give devices or cpus");
  EXPECT_EQ(
      error_of(example_with("{replicas: 2, devices: 8}", "{devices: 8}, {cpus: 4}")),
      "s.yaml:16: pending[0]: job b: two roles are called worker; give each a name of its own");
  EXPECT_EQ(error_of(example_with("{replicas: 2, devices: 8}",
                                  "{replicas: 4, replicas_max: 2, devices: 8}")),
            "s.yaml:16: pending[0]: job b: role worker: it starts with 4 replicas and grows to at "
            "most 2; give 0 or more, and replicas_max of 1 or more that is not less");
  EXPECT_EQ(error_of(example_with("{required: leaf}", "{slowdown: {leaf: 1.2, group: 1.1}}")),
            "s.yaml:21: pending[0].topology.slowdown.group: it is below that of a narrower level; "
            "write 1.2 or more");
  EXPECT_EQ(error_of(example_with(
                "    waited: 3min\n",
                "    throughput: [{devices: 16, throughput: 2}, {devices: 8, throughput: 1}]\n")),
            "s.yaml:16: pending[0]: job b: its throughput on 8 devices is listed after that on 16; "
            "list each number once, by rising devices");
  EXPECT_EQ(error_of(example_with("    waited: 3min\n",
                                  "    throughput: [{devices: 8}, {devices: 16}]\n")),
            "s.yaml:22: pending[0].throughput[0].throughput: missing; add a number");
  EXPECT_EQ(
      error_of(example_with("{replicas: 2, devices: 8}", "{cpus: 4, share: 50%}")),
      "s.yaml:20: pending[0].roles[0].share: it is of the devices of a replica; give devices, "
      "or leave it out");
  EXPECT_EQ(
      error_of(example_with("interval: 30min", "write: 10s")),
      "s.yaml:10: running[0].checkpoint.write: it is of each checkpoint; give their interval, "
      "or leave it out");
  EXPECT_EQ(error_of(example_with("median: 4h, ", "")),
            "s.yaml:11: running[0].run_time.median: missing; add a time like 4h");
  EXPECT_EQ(error_of(example_with("waited: 3min", "device_types: []")),
            "s.yaml:22: pending[0].device_types: it is empty; name a device type, or leave it out "
            "for any");
  EXPECT_EQ(error_of(example_with("waited: 3min", "device_types: [h100-sxm, h100-sxm]")),
            "s.yaml:22: pending[0].device_types: a type is listed twice; list each once");
  EXPECT_EQ(error_of(example_with("waited: 3min", "waited: 180")),
            "s.yaml:22: pending[0].waited: '180' has no unit; write it like 180s");
}

TEST(ParseState, KeepsAGangOnOneDeviceTypeAndWithinItsLevel) {
  const auto error = [](const std::string& job, const std::string& replicas) {
    return error_of(
        "nodes:\n"
        "  - {name: n, count: 2, devices: 8, device_type: h100}\n"
        "  - {name: m, devices: 8, device_type: a100}\n"
        "running:\n"
        "  - name: a\n"
        "    roles: [{devices: 1, replicas_max: 2}]\n" +
        job + "    replicas: [" + replicas + "]\n");
  };
  const std::string first = "{node: n0, devices: [0]}";
  EXPECT_EQ(error("", first + ", {node: n1, devices: [0]}"), "no error");
  EXPECT_EQ(error("", first + ", {node: m, devices: [0]}"),
            "s.yaml:7: running[0].replicas: they are on devices of types h100 and a100, and a gang "
            "has one type; give nodes of one");
  EXPECT_EQ(error("    device_types: [a100]\n", first),
            "s.yaml:8: running[0].replicas: node n0 has devices of type h100, which device_types "
            "does not list; list it, or give another node");
  EXPECT_EQ(error("    topology: {required: server}\n", first + ", {node: n1, devices: [0]}"),
            "s.yaml:8: running[0].replicas: they are not below one server, which topology "
            "requires; give nodes below one, or require leaf");
}

// It is right as a state, and the decision says what is wrong with it.
TEST(ParseState, LeavesAGangThatNoNodeHoldsToTheDecision) {
  const auto state = parse_state(
      example_with("{replicas: 2, devices: 8}", "{replicas: 1, devices: 9}"), "s.yaml", no_cluster);
  ASSERT_TRUE(state) << state.error().message;
  const auto decision = decide(state->snapshot, state->queue, *find_scheduling_policy("regatta"));
  ASSERT_TRUE(decision);
  ASSERT_EQ(decision->waiting.size(), 1U);
  EXPECT_EQ(decision->waiting[0].cause, WaitCause::kNeverFits);
}

TEST(ParseState, ReadsTheHistoryOfANodeAndRefusesOneThatIsWrong) {
  const auto with = [](const std::string& keys) {
    return parse_state("nodes:\n  - {name: n, devices: 8, device_type: h, " + keys + "}\n",
                       "s.yaml", no_cluster);
  };
  const auto state = with("failed_ago: [3d, 20h], watched_for: 30d");
  ASSERT_TRUE(state) << state.error().message;
  const ClusterNode& node = state->snapshot.nodes[0];
  EXPECT_EQ(node.failures, (std::vector<Seconds>{{-3 * 86400.0}, {-20 * 3600.0}}));
  EXPECT_EQ(node.watched_since, Seconds{-30 * 86400.0});
  EXPECT_EQ(with("failed_ago: [3d]").error().message,
            "s.yaml:2: nodes[0].failed_ago: it does not say for how long the node was seen; give "
            "watched_for, like 90d");
  EXPECT_EQ(with("failed_ago: [20h, 3d], watched_for: 1d").error().message,
            "s.yaml:2: nodes[0].failed_ago: a failure was 3 d ago, and the node is watched for 1 d "
            "alone; correct one of them");
  EXPECT_EQ(with("failed_ago: [soon], watched_for: 1d").error().message,
            "s.yaml:2: nodes[0].failed_ago: 'soon' is no time from 0 s to 11574 d; write how long "
            "ago each failure was, like [20h, 3d]");
  EXPECT_FALSE(with("failed_ago: [-3d], watched_for: 30d"));
  EXPECT_FALSE(with("failed_ago: [nan], watched_for: 30d"));
  EXPECT_FALSE(with("watched_for: -1d"));
}

// Two mixable jobs on one device.
constexpr const char* kMixed = R"(nodes:
  - {name: n, count: 1, devices: 2, device_type: h100, device_memory: 80GiB}
running:
  - name: a
    class: tidal
    roles: [{devices: 1, device_memory: 20GiB, duty: {shares: [5%, 0.25], day: [0.5, 1.5]}}]
    demand: {interval: 5min, history: [120, 140.5], per_replica: 60}
    replicas: [{node: n0, devices: [1]}]
  - name: b
    roles: [{devices: 1, device_memory: 20GiB, duty: {shares: [100%]}}]
    replicas: [{node: n0, devices: [1]}]
mixes:
  - {node: n0, device: 1, mode: preemptive}
)";

std::string mixed_error(const std::string& from, const std::string& to) {
  std::string text = kMixed;
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return error_of(text.replace(place, from.size(), to));
}

TEST(ParseState, ReadsDutyDemandAndMixes) {
  const auto state = parse_state(kMixed, "s.yaml", no_cluster);
  ASSERT_TRUE(state) << state.error().message;
  const JobRequest& job = state->snapshot.running[0].request;
  ASSERT_EQ(job.roles[0].duty.shares.size(), 2U);
  EXPECT_FLOAT_EQ(job.roles[0].duty.shares[1], 0.25F);
  EXPECT_FLOAT_EQ(job.roles[0].duty.day[1], 1.5F);
  EXPECT_TRUE(job.roles[0].is_mixable());
  ASSERT_TRUE(job.demand);
  EXPECT_EQ(job.demand->interval, Seconds{300});
  EXPECT_EQ(job.demand->history, (std::vector<double>{120, 140.5}));
  EXPECT_EQ(job.demand->per_replica, 60);
  ASSERT_EQ(state->snapshot.mixes.size(), 1U);
  EXPECT_EQ(state->snapshot.mixes[0].mode, mixing::MixMode::kPreemptive);
  EXPECT_EQ(state->snapshot.mixes[0].device, 1);
}

TEST(ParseState, NamesLineKeyAndRemedyOfWrongMixes) {
  EXPECT_EQ(mixed_error("shares: [5%, 0.25]", "shares: [5%, 1.5]"),
            "s.yaml:6: running[0].roles[0].duty.shares: '1.5' is no number from 0 to 1; write a "
            "list like [5%, 10%, 60%]");
  EXPECT_EQ(
      mixed_error("shares: [5%, 0.25]", "shares: [50%, 0.25]"),
      "s.yaml:6: running[0].roles[0].duty.shares: the shares of its duty are not from 0 to 1, or "
      "do not rise; sort them");
  EXPECT_EQ(mixed_error("day: [0.5, 1.5]", "day: [1, 2]"),
            "s.yaml:6: running[0].roles[0].duty.day: the parts of the day of its duty have the "
            "mean 1.5, and not 1; divide each by their mean");
  EXPECT_EQ(mixed_error("1, device_memory: 20GiB, duty", "1, duty"),
            "s.yaml:6: running[0].roles[0].duty: a role whose devices others may use says its "
            "memory; give device_memory");
  EXPECT_EQ(mixed_error("node: n0, device: 1", "node: x, device: 1"),
            "s.yaml:13: mixes[0].node: no node is called 'x'; name one of nodes");
  EXPECT_EQ(mixed_error("mode: preemptive", "mode: fast"),
            "s.yaml:13: mixes[0].mode: 'fast' is not one of shared, preemptive, time-slice, tidal");
  EXPECT_EQ(mixed_error("device: 1, mode", "device: 3, mode"),
            "s.yaml:13: mixes[0].device: node n0 has 2 devices, numbered from 0; correct the "
            "number");
  EXPECT_EQ(
      mixed_error("mode: preemptive}", "mode: shared}\n  - {node: n0, device: 1, mode: tidal}"),
      "s.yaml:14: mixes[1].device: device 1 of node n0 is listed twice; leave one out");
  EXPECT_EQ(mixed_error("device: 1, mode", "device: 0, mode"),
            "s.yaml:11: running[1].replicas: node n0: device 1 is taken twice, the second time by "
            "job b; give one of them another device");
  EXPECT_EQ(
      mixed_error("mode: preemptive}", "mode: shared}\n  - {node: n0, device: 0, mode: tidal}"),
      "s.yaml:14: mixes[1].device: no job runs on device 0 of node n0; leave the mix out, or "
      "list the device in replicas of its jobs");
  EXPECT_EQ(
      mixed_error("mixes:\n",
                  "  - name: c\n    roles: [{devices: 1}]\n    replicas: [{node: n0, devices: "
                  "[0]}]\nmixes:\n  - {node: n0, device: 0, mode: shared}\n"),
      "s.yaml:16: mixes[0].device: job c on device 0 of node n0 cannot be mixed; give its "
      "role duty and device_memory, or leave the mix out");
  EXPECT_EQ(mixed_error("history: [120, 140.5]", "history: [120, -1]"),
            "s.yaml:7: running[0].demand.history: '-1' is no number from 0 to 1e+12; write a list "
            "like [120, 140, 135]");
}

}  // namespace
}  // namespace regatta::sched
