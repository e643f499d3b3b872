// replay/internal/published_run_rows.h: for the files of this folder that turn a row of a set into
// runs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "regatta/planning/replay/internal/csv_table.h"
#include "regatta/planning/replay/internal/published_run.h"

namespace regatta::replay {

// Reads numbers of a row; remembers the first column that has none.
class RowReader {
 public:
  explicit RowReader(const CsvRow& row, const RunDefaults& defaults = {})
      : row_(row), defaults_(defaults) {}

  // From 1 to 1e8.
  int whole(const char* column);
  int whole_or(const char* column, int otherwise) {
    return text(column).empty() ? otherwise : whole(column);
  }
  // Above 0.
  double positive(const char* column);
  // Nothing measured: the row has no such run.
  bool has(const char* column) const;
  std::string text(const char* column) const { return row_.text(column); }
  const RunDefaults& defaults() const { return defaults_; }
  // The column does not hold `wanted`: "a multiple of tp".
  void refuse(const char* column, const char* wanted);
  // The row is no run that can be planned: "on DGX-GB300 (no such server preset)".
  void leave_out(std::string reason) { left_out_ = std::move(reason); }
  const std::string& left_out() const { return left_out_; }
  const std::string& missing() const { return missing_; }
  const std::string& wanted() const { return wanted_; }

 private:
  const CsvRow& row_;
  RunDefaults defaults_;
  std::string missing_;
  std::string wanted_;
  std::string left_out_;
};

// Every run that a row describes, with what was measured; names, groups and the split are added by
// read_published().
using RowParser = std::vector<PublishedRun> (*)(RowReader&);

std::vector<PublishedRun> vtrain_row(RowReader& reader);
std::vector<PublishedRun> bloom_row(RowReader& reader);
std::vector<PublishedRun> korthikanti_time_row(RowReader& reader);
std::vector<PublishedRun> korthikanti_memory_row(RowReader& reader);
std::vector<PublishedRun> megatron_row(RowReader& reader);
std::vector<PublishedRun> zero3_row(RowReader& reader);
std::vector<PublishedRun> fsdp_row(RowReader& reader);
std::vector<PublishedRun> nemo_row(RowReader& reader);
std::vector<PublishedRun> nemo_context_row(RowReader& reader);
std::vector<PublishedRun> amp_row(RowReader& reader);
std::vector<PublishedRun> bridge_row(RowReader& reader);
std::vector<PublishedRun> run_row(RowReader& reader);

// The mean number of tokens of a sample of SQuAD: contexts of some 120 words (Rajpurkar et al.,
// 2016), a question, an answer and the prompt around them.
inline constexpr int kSquadTokens = 200;

// Eight devices of a preset with `nics` of `rate`; 0: those of the preset.
topo::ServerType server_of(const char* preset, int nics = 0, BytesPerSecond rate = {});
// A GPT of the usual form, its output layer tied to the token table.
workload::ModelShape gpt(int layers, int hidden, int heads, int seq, int vocab);
void interleave(workload::Strategy& strategy, int parts);

}  // namespace regatta::replay
