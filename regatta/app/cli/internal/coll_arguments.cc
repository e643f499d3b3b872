#include "regatta/app/cli/internal/coll_arguments.h"

#include <iterator>

#include <fmt/core.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/job_ports.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/runtime/bench/regatta_ranks.h"
#include "regatta/runtime/comm/tuner.h"

namespace regatta::cli {
namespace {

constexpr std::size_t kBytesMax = std::size_t{4} << 30;
constexpr std::size_t kTuningFileMax = bench::kTuningMax - 1;

Error bad_sizes(const std::string& text) {
  return {Code::kInvalidInput,
          fmt::format("--sizes: \"{}\" is no list of sizes from 4 to 4G and ranges; write one as "
                      "64M, several as 1K,1M, or every fourfold from the first to the last as "
                      "1K:64M",
                      text)};
}

// "64M": bytes, K, M and G being powers of 1024; nothing when it is no such number.
std::optional<std::size_t> parse_bytes(const std::string& text) {
  std::size_t end = 0;
  std::size_t bytes = 0;
  while (end < text.size() && end < 12 && text[end] >= '0' && text[end] <= '9')
    bytes = bytes * 10 + static_cast<std::size_t>(text[end++] - '0');
  const std::string unit = text.substr(end);
  if (unit == "K")
    bytes <<= 10;
  else if (unit == "M")
    bytes <<= 20;
  else if (unit == "G")
    bytes <<= 30;
  else if (!unit.empty())
    return std::nullopt;
  return bytes;
}

// One that can be called with.
std::optional<std::size_t> parse_size(const std::string& text) {
  const auto bytes = parse_bytes(text);
  const bool fits = bytes && *bytes >= sizeof(float) && *bytes <= kBytesMax;
  return fits ? bytes : std::nullopt;
}

Result<std::vector<std::size_t>> parse_sizes(const std::string& text) {
  std::vector<std::size_t> sizes;
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> ends = split(part, ':');
    const auto first = parse_size(ends.front());
    const auto last = parse_size(ends.back());
    if (!first || !last || ends.size() > 2 || *last < *first) return bad_sizes(text);
    for (std::size_t bytes = *first; bytes <= *last; bytes *= 4)
      sizes.push_back(bytes);
  }
  if (sizes.size() > bench::kSizesMax) return bad_sizes(text);
  return sizes;
}

Result<std::size_t> parse_chunk(const std::string& text) {
  if (text.empty()) return std::size_t{0};
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes < comm::kChunkBytesLeast || *bytes > comm::kChunkBytesMost)
    return Error{Code::kInvalidInput,
                 fmt::format("--chunk: \"{}\" is no size from 4K to 64M; write it as 512K", text)};
  return *bytes;
}

// A fault in a file that the user named is kInvalidInput.
Result<std::string> read_tuning(const std::string& path) {
  const auto wrong = [&](const std::string& problem) {
    return Error{Code::kInvalidInput,
                 path + problem + "; save it again with `regatta coll explain --save`"};
  };
  auto text = os::read_text_file(path, JsonLimits{}.size_max);
  if (!text)
    return Error{Code::kInvalidInput, text.error().message +
                                          "; give --tuning a file that `regatta coll explain "
                                          "--save` wrote"};
  if (text->empty()) return wrong(": the tuning file is empty");
  if (text->size() > kTuningFileMax) return wrong(": too long for a tuning file");
  if (const auto tuning = comm::parse_tuning(*text); !tuning)
    return Error{Code::kInvalidInput, path + ": " + tuning.error().message};
  return text;
}

}  // namespace

void add_coll_arguments(CLI::App& command, CollArguments& arguments) {
  std::vector<std::string> names;
  names.reserve(std::size(bench::kCollectiveOps));
  for (const bench::CollectiveOp op : bench::kCollectiveOps)
    names.push_back(to_string(op));
  command.add_option("op", arguments.op, "The collective: " + join(names, ", "))
      ->required()
      ->option_text(names.front())
      ->check(one_of(names));
  command
      .add_option("--sizes", arguments.sizes,
                  "Bytes of the whole vector, K, M and G being powers of 1024: 64M, several as "
                  "1K,1M, every fourfold as 1K:64M")
      ->capture_default_str();
  command.add_option("--ranks", arguments.ranks, "Processes")
      ->check(whole_number(2, bench::kRanksMax))
      ->capture_default_str();
  command.add_option("--cluster", arguments.cluster,
                     "Run on the emulated servers of this cluster file instead");
  command.add_flag("--round-robin,--go-round", arguments.go_round,
                   "In a cluster, one rank on each server in turn instead of filling them "
                   "(--go-round is the old name)");
  std::vector<std::string> algorithms;
  for (int i = 0; i <= static_cast<int>(comm::Algorithm::kInPlace); ++i)
    algorithms.push_back(to_string(static_cast<comm::Algorithm>(i)));
  command.add_option("--algorithm", arguments.algorithm, "Algorithm to use where it applies")
      ->check(one_of(algorithms))
      ->capture_default_str();
  command.add_option("--chunk", arguments.chunk, "Cut messages into chunks of this size: 512K");
  command.add_option("--connections", arguments.connections, "Connections to stripe messages over")
      ->check(whole_number(1, comm::kConnectionsMost));
  command
      .add_option("--ports", arguments.ports,
                  "With --cluster: source ports planned (default in labs), surveyed or hashed")
      ->type_name("HOW")
      ->check(one_of(port_choices()));
  command.add_flag("--model-only", arguments.model_only,
                   "Choose by the cost model alone, without measuring");
  command
      .add_option("--tuning", arguments.tuning,
                  "Tuning file that `regatta coll explain --save` wrote")
      ->check(not_empty());
}

Result<bench::BenchTask> task_of(const CollArguments& arguments) {
  bench::BenchTask task{
      .op = *bench::collective_op_named(arguments.op), .sizes = {}, .ranks = arguments.ranks};
  REGATTA_TRY(sizes, parse_sizes(arguments.sizes));
  task.sizes = std::move(sizes);
  REGATTA_TRY(chunk, parse_chunk(arguments.chunk));
  task.settings.forced = {.algorithm = *comm::algorithm_named(arguments.algorithm),
                          .chunk_bytes = chunk,
                          .connections = arguments.connections};
  if (arguments.go_round && arguments.cluster.empty())
    return Error{Code::kInvalidInput,
                 "--round-robin: it places ranks on the servers of a cluster; name one with "
                 "--cluster"};
  if (!arguments.ports.empty() && arguments.cluster.empty())
    return Error{
        Code::kInvalidInput,
        "--ports: ranks of one machine have no connections; name a cluster with --cluster"};
  if (arguments.model_only) task.settings.measure = comm::Measure::kNothing;
  if (!arguments.tuning.empty()) {
    REGATTA_TRY(tuning, read_tuning(arguments.tuning));
    task.settings.tuning = std::move(tuning);
  }
  return task;
}

Result<std::optional<bench::LabEnvironment>> open_ground(const CollArguments& arguments,
                                                         const bench::BenchTask& task) {
  std::optional<bench::LabEnvironment> environment;
  if (arguments.cluster.empty()) return environment;
  REGATTA_TRY(cluster, load_cluster(arguments.cluster));
  REGATTA_TRY(choice, choose_ports(arguments.ports, cluster));
  REGATTA_TRY(opened, bench::LabEnvironment::open(cluster, arguments.ranks, arguments.go_round));
  environment.emplace(std::move(opened));
  environment->plan_ports_with(
      bench_port_planner(choice, cluster, *environment->environment().lab, task));
  return environment;
}

}  // namespace regatta::cli
