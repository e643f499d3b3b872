#include "regatta/planning/replay/internal/published_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/model/topo/presets.h"
#include "regatta/planning/replay/internal/published_run_rows.h"

namespace regatta::replay {
namespace {

enum class Split {
  kCalibration,
  kEverySecond,
  kByRow,  // the parser of the row says
  kHeldOut,
};

struct Set {
  const char* name;
  RowParser read;
  Split split;
  bool has_releases = false;  // that repeat a configuration
};

constexpr std::array kSets = {
    Set{"vtrain_single_a100", vtrain_row, Split::kCalibration},
    Set{"vtrain_multi_a100_part", vtrain_row, Split::kEverySecond},
    Set{"bloom_176b_part", bloom_row, Split::kEverySecond},
    Set{"korthikanti_table5", korthikanti_time_row, Split::kHeldOut},
    Set{"korthikanti_memory", korthikanti_memory_row, Split::kHeldOut},
    Set{"megatron_sc21_table1", megatron_row, Split::kHeldOut},
    Set{"megatron_sc21_table2_zero3", zero3_row, Split::kHeldOut},
    Set{"mosaic_fsdp", fsdp_row, Split::kHeldOut},
    Set{"nemo_2407_h100_fp8", nemo_row, Split::kHeldOut},
    Set{"nemo_2407_h100_fp8_finetune", nemo_row, Split::kHeldOut},
    Set{"nemo_context_parallel", nemo_context_row, Split::kHeldOut},
    Set{"amp_real_trials", amp_row, Split::kHeldOut},
    Set{"megatron_bridge_part", bridge_row, Split::kByRow, true},
    Set{"at_scale", run_row, Split::kHeldOut},
    Set{"experts", run_row, Split::kHeldOut},
};

// A file of any other name, whose rows say all themselves.
constexpr Set kOther{"", run_row, Split::kHeldOut};

constexpr std::array kColumns = {
    "model",     "server", "stack", "gpus",  "mbs",    "gbs",          "precision", "tp",
    "pp",        "cp",     "ep",    "etp",   "zero",   "vp",           "schedule",  "sp",
    "recompute", "heads",  "seq",   "vocab", "step_s", "tokens_s_gpu", "tflops_gpu"};
constexpr std::size_t kColumnsNeeded = 7;

std::vector<std::string> needed_columns() {
  return {kColumns.begin(), kColumns.begin() + kColumnsNeeded};
}

Error unknown_set(const std::string& name) {
  return {
      Code::kInvalidInput,
      fmt::format("{}: no set of published runs is called so, and a table of other runs has the "
                  "columns {}; see docs/formats/runs.md",
                  printable(name, 60), join(needed_columns(), ", "))};
}

// Checks the columns of a user's own table: those that rows are read by, and no others. The sets
// that others published have `columns` with names of their own.
Status check_columns(const std::string& name, const std::vector<std::string>& columns,
                     const RunDefaults& defaults = {}) {
  const std::vector<std::string> known(kColumns.begin(), kColumns.end());
  const auto has = [](const std::vector<std::string>& names, const std::string& one) {
    return std::find(names.begin(), names.end(), one) != names.end();
  };
  if (!has(columns, "model") && !has(columns, "server") && !has(columns, "stack"))
    return unknown_set(name);
  for (const std::string& column : columns) {
    if (has(known, column)) continue;
    const std::string nearest = nearest_word(column, known);
    return Error{Code::kInvalidInput,
                 fmt::format("{}: no column is called '{}'; {}", name, printable(column, 40),
                             nearest.empty() ? "the columns are " + join(known, ", ")
                                             : fmt::format("did you mean '{}'?", nearest))};
  }
  for (std::size_t i = 0; i < kColumnsNeeded; ++i) {
    const bool is_default = (known[i] == "server" && defaults.server != nullptr) ||
                            (known[i] == "stack" && !defaults.stack.empty());
    if (is_default || has(columns, known[i])) continue;
    return Error{Code::kInvalidInput,
                 fmt::format("{}: the column {} is missing; add it", name, known[i])};
  }
  return {};
}

// `number` of a row, from 1.
Error wrong_value(const std::string& name, int number, const RowReader& reader, bool is_own) {
  return {Code::kInvalidInput,
          fmt::format("{}: row {}: {} '{}' is not {}; {}", name, number, reader.missing(),
                      printable(reader.text(reader.missing().c_str()), 40), reader.wanted(),
                      is_own ? "correct it" : "write it as published")};
}

std::string machines_of(const PublishedRun& run) {
  return run.cluster ? run.cluster->name : run.server.device.name;
}

std::string name_of(const PublishedRun& run) {
  std::string strategy = to_string(run.strategy);
  const std::size_t open = strategy.find(" mb0");
  if (open != std::string::npos) strategy.replace(open, 4, " mb=auto");
  return fmt::format("{} layers of {}, {} heads, {} tokens{}, {}: {}", run.model.layers,
                     run.model.hidden, run.model.heads, run.model.seq,
                     is_frozen(run.model) ? " LoRA" : "", machines_of(run), strategy);
}

std::string group_of(const PublishedRun& run) {
  return fmt::format("{}-{}-{}-{}{} on {} {}", run.model.layers, run.model.hidden, run.model.heads,
                     run.model.seq, is_frozen(run.model) ? "-lora" : "", run.strategy.world_size(),
                     machines_of(run));
}

bool is_calibration(Split split, const PublishedRun& run, int timed) {
  if (run.quantity != MeasuredQuantity::kStep) return false;
  if (split == Split::kEverySecond) return timed % 2 == 0;
  return split == Split::kCalibration || (split == Split::kByRow && run.is_calibration);
}

// Several releases of a stack ran one configuration: how fast it can be is what the fastest shows.
void keep_fastest(PublishedTable& table) {
  std::map<std::string, std::size_t> fastest;
  std::vector<PublishedRun> kept;
  for (PublishedRun& run : table.runs) {
    const std::string configuration =
        fmt::format("{} gbs{} {} {} {}", run.name, run.global_batch, to_string(run.precision),
                    run.model.experts.capacity, run.model.mtp_layers);
    const auto [at, is_new] = fastest.emplace(configuration, kept.size());
    if (is_new) {
      kept.push_back(std::move(run));
      continue;
    }
    ++table.left_out["of slower releases of a configuration"];
    if (run.measured < kept[at->second].measured) kept[at->second] = std::move(run);
  }
  table.runs = std::move(kept);
}

// How rows are read.
struct Reading {
  const Set& set;
  RunDefaults defaults = {};
  bool is_own = false;
};

Result<PublishedTable> read_rows(const std::string& name, const CsvTable& table,
                                 const Reading& reading) {
  PublishedTable read;
  int number = 0;
  int timed = 0;
  for (const CsvRow& row : table.rows()) {
    ++number;
    RowReader reader(row, reading.defaults);
    std::vector<PublishedRun> described = reading.set.read(reader);
    if (!reader.missing().empty()) return wrong_value(name, number, reader, reading.is_own);
    if (!reader.left_out().empty()) ++read.left_out[reader.left_out()];
    for (PublishedRun& run : described) {
      run.is_calibration = is_calibration(reading.set.split, run, timed);
      timed += run.quantity == MeasuredQuantity::kStep ? 1 : 0;
      run.name = name_of(run);
      run.group = group_of(run);
      read.runs.push_back(std::move(run));
    }
  }
  if (reading.set.has_releases) keep_fastest(read);
  return read;
}

Result<PublishedTable> read_own_table(const std::string& name, std::string_view text,
                                      const RunDefaults& defaults) {
  REGATTA_TRY(columns, CsvTable::columns(text, name));
  REGATTA_TRY_DO(check_columns(name, columns, defaults));
  REGATTA_TRY(table, CsvTable::parse(text, name));
  return read_rows(name, table, {.set = kOther, .defaults = defaults, .is_own = true});
}

}  // namespace

std::string to_string(MeasuredQuantity quantity) {
  constexpr EnumNames<5> kNames = {"step", "memory", "state", "activations", "failure"};
  return enum_name(kNames, quantity);
}

int RowReader::whole(const char* column) {
  const auto value = row_.number(column);
  if (value && *value >= 1 && *value <= 1e8 && *value == std::floor(*value))
    return static_cast<int>(*value);
  refuse(column, "a whole number from 1");
  return 1;
}

void RowReader::refuse(const char* column, const char* wanted) {
  if (!missing_.empty()) return;
  missing_ = column;
  wanted_ = wanted;
}

double RowReader::positive(const char* column) {
  const auto value = row_.number(column);
  if (value && *value > 0) return *value;
  refuse(column, "a figure above 0");
  return 1;
}

bool RowReader::has(const char* column) const {
  const auto value = row_.number(column);
  return value && *value > 0;
}

topo::ServerType server_of(const char* preset, int nics, BytesPerSecond rate) {
  const topo::ServerType* found = topo::find_server_preset(preset);
  REGATTA_CHECK(found != nullptr);
  topo::ServerType server = *found;
  if (nics > 0) server.nic_count = nics;
  if (nics > 0) server.nic_rate = rate;
  return server;
}

workload::ModelShape gpt(int layers, int hidden, int heads, int seq, int vocab) {
  workload::ModelShape model;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.ffn_hidden = 4 * model.hidden;
  model.seq = seq;
  model.vocab = vocab;
  model.tied_embeddings = true;
  return model;
}

void interleave(workload::Strategy& strategy, int parts) {
  if (parts == 1) return;
  strategy.schedule = workload::PipelineSchedule::kInterleaved;
  strategy.virtual_stages = parts;
}

std::vector<std::string> set_names() {
  std::vector<std::string> names;
  names.reserve(kSets.size());
  for (const Set& set : kSets)
    names.emplace_back(set.name);
  return names;
}

Result<std::vector<PublishedRun>> read_published(const std::string& name, std::string_view text) {
  REGATTA_TRY(table, read_published_table(name, text));
  return std::move(table.runs);
}

Result<PublishedTable> read_published_table(const std::string& name, std::string_view text) {
  const auto* const found =
      std::find_if(kSets.begin(), kSets.end(), [&](const Set& one) { return name == one.name; });
  if (found == kSets.end()) return read_own_table(name, text, {});
  REGATTA_TRY(table, CsvTable::parse(text, name));
  return read_rows(name, table, {.set = *found});
}

Result<std::vector<PublishedRun>> read_own_runs(const std::string& name, std::string_view text,
                                                const RunDefaults& defaults) {
  REGATTA_TRY(table, read_own_table(name, text, defaults));
  return std::move(table.runs);
}

}  // namespace regatta::replay
