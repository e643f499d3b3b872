#include "regatta/replay/published.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "regatta/core/check.h"
#include "regatta/core/text.h"
#include "regatta/replay/table.h"
#include "regatta/topo/presets.h"

namespace regatta::replay {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace): 200_Gbps reads as the source
using workload::Recompute;

topo::ServerType a100_server(int nics, BytesPerSecond rate) {
  const topo::ServerType* preset = topo::find_server_preset("dgx-a100-80g");
  REGATTA_CHECK(preset != nullptr);
  topo::ServerType server = *preset;
  server.nic_count = nics;
  server.nic_rate = rate;
  return server;
}

// Reads whole numbers of a row; remembers the first column that has none.
class Reader {
 public:
  explicit Reader(const Row& row) : row_(row) {}

  int whole(const char* column) {
    const auto value = row_.number(column);
    if (value && *value >= 1 && *value <= 1e7 && *value == std::floor(*value))
      return static_cast<int>(*value);
    if (missing_.empty()) missing_ = column;
    return 1;
  }
  const std::string& missing() const { return missing_; }

 private:
  const Row& row_;
  std::string missing_;
};

// A GPT of the usual form, its output layer tied to the token table.
workload::ModelShape gpt(Reader& reader, int seq, int vocab) {
  workload::ModelShape model;
  model.layers = reader.whole("layers");
  model.hidden = reader.whole("hidden");
  model.ffn_hidden = 4 * model.hidden;
  model.seq = seq;
  model.vocab = vocab;
  model.tied_embeddings = true;
  return model;
}

workload::Strategy strategy_of(Reader& reader) {
  return {.tp = reader.whole("tp"),
          .pp = reader.whole("pp"),
          .dp = reader.whole("dp"),
          .micro_batch = reader.whole("mbs"),
          .recompute = Recompute::kFull};
}

void interleave(workload::Strategy& strategy, int parts) {
  if (parts == 1) return;
  strategy.schedule = workload::Schedule::kInterleaved;
  strategy.virtual_stages = parts;
}

Published vtrain(const Row&, Reader& reader) {
  Published run;
  run.model = gpt(reader, reader.whole("seq"), 51200);
  run.model.heads = reader.whole("heads");
  run.strategy = strategy_of(reader);
  run.stack = "megatron-deepspeed-fp16";
  run.server = a100_server(4, 200_Gbps);
  return run;
}

int bloom_heads(const Row& row, int hidden) {
  if (const auto stated = row.number("heads")) return static_cast<int>(*stated);
  return hidden == 12288 || hidden == 14400 ? 96 : 64;
}

Published bloom(const Row& row, Reader& reader) {
  Published run;
  run.model = gpt(reader, 2048, 250880);
  run.model.heads = bloom_heads(row, run.model.hidden);
  run.model.positions = workload::Positions::kNone;
  run.strategy = strategy_of(reader);
  // One row states a dp that its 320 devices cannot have.
  run.strategy.dp = reader.whole("gpus") / (run.strategy.tp * run.strategy.pp);
  run.strategy.zero = 1;
  run.stack = "megatron-deepspeed-bf16";
  run.server = a100_server(4, 100_Gbps);
  return run;
}

Published korthikanti(const Row& row, Reader& reader) {
  Published run;
  run.model = gpt(reader, 2048, 51200);
  run.model.heads = reader.whole("heads");
  run.strategy = strategy_of(reader);
  interleave(run.strategy, reader.whole("interleave"));
  run.strategy.sequence_parallel = row.text("recompute") != "full";
  if (run.strategy.sequence_parallel) run.strategy.recompute = Recompute::kSelective;
  run.stack = "megatron-lm-fp16";
  run.server = a100_server(8, 200_Gbps);
  return run;
}

Published megatron(const Row&, Reader& reader) {
  Published run;
  run.model = gpt(reader, 2048, 51200);
  run.model.heads = reader.whole("heads");
  run.strategy = {.tp = reader.whole("tp"),
                  .pp = reader.whole("pp"),
                  .dp = reader.whole("dp"),
                  .micro_batch = 0,
                  .recompute = Recompute::kFull};
  if (run.strategy.pp > 1) interleave(run.strategy, 2);
  run.stack = "megatron-lm-fp16";
  run.server = a100_server(8, 200_Gbps);
  return run;
}

enum class Split { kCalibration, kEverySecond, kHeldOut };

struct Set {
  const char* name;
  Published (*read)(const Row&, Reader&);
  const char* time;  // the column
  double seconds;    // of its unit
  Split split;
};

constexpr std::array kSets = {
    Set{"vtrain_single_a100", vtrain, "iter_ms", 1e-3, Split::kCalibration},
    Set{"vtrain_multi_a100_part", vtrain, "iter_ms", 1e-3, Split::kEverySecond},
    Set{"bloom_176b_part", bloom, "sec_per_iter", 1, Split::kEverySecond},
    Set{"korthikanti_table5", korthikanti, "iter_s", 1, Split::kHeldOut},
    Set{"megatron_sc21_table1", megatron, "step_s_derived", 1, Split::kHeldOut},
};

// ZeRO 0 is the one row that its set flags as not to be used.
bool is_usable(const Row& row, const Set& set) {
  const auto time = row.number(set.time);
  return time && *time > 0 && row.text("zero_stage") != "0";
}

std::string name_of(const Published& run) {
  std::string strategy = to_string(run.strategy);
  const std::size_t open = strategy.find(" mb0");
  if (open != std::string::npos) strategy.replace(open, 4, " mb=auto");
  return fmt::format("{} layers of {}, {} heads: {}", run.model.layers, run.model.hidden,
                     run.model.heads, strategy);
}

std::string group_of(const Published& run) {
  return fmt::format("{}-{}-{} on {}", run.model.layers, run.model.hidden, run.model.heads,
                     run.strategy.world_size());
}

}  // namespace

std::vector<std::string> set_names() {
  std::vector<std::string> names;
  names.reserve(kSets.size());
  for (const Set& set : kSets)
    names.emplace_back(set.name);
  return names;
}

Result<std::vector<Published>> read_published(const std::string& name, std::string_view text) {
  const auto* const set =
      std::find_if(kSets.begin(), kSets.end(), [&](const Set& one) { return name == one.name; });
  if (set == kSets.end()) {
    return Error{Code::kInvalidInput, fmt::format("{}: no set of published runs is called so; the "
                                                  "sets are {}",
                                                  printable(name, 60), join(set_names(), ", "))};
  }
  REGATTA_TRY(table, Table::parse(text, name));
  std::vector<Published> runs;
  int number = 0;
  for (const Row& row : table.rows()) {
    ++number;
    if (!is_usable(row, *set)) continue;
    Reader reader(row);
    Published run = set->read(row, reader);
    run.global_batch = reader.whole("gbs");
    if (!reader.missing().empty()) {
      return Error{
          Code::kInvalidInput,
          fmt::format("{}: row {}: \"{}\" is no whole number from 1; write it as published", name,
                      number, reader.missing())};
    }
    run.measured = Seconds{*row.number(set->time) * set->seconds};
    run.is_calibration = set->split == Split::kCalibration ||
                         (set->split == Split::kEverySecond && runs.size() % 2 == 0);
    run.name = name_of(run);
    run.group = group_of(run);
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace regatta::replay
