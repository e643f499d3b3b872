// replay/internal/published_rows.h: for the files of this folder that turn a row of a set into
// runs.
#pragma once

#include <string>
#include <vector>

#include "regatta/planning/replay/internal/published.h"
#include "regatta/planning/replay/internal/table.h"

namespace regatta::replay {

// Reads numbers of a row; remembers the first column that has none.
class Reader {
 public:
  explicit Reader(const Row& row) : row_(row) {}

  // From 1 to 1e8.
  int whole(const char* column);
  // Above 0.
  double positive(const char* column);
  // Nothing measured: the row has no such run.
  bool has(const char* column) const;
  std::string text(const char* column) const { return row_.text(column); }
  // The column does not hold `wanted`: "a multiple of tp".
  void refuse(const char* column, const char* wanted);
  const std::string& missing() const { return missing_; }
  const std::string& wanted() const { return wanted_; }

 private:
  const Row& row_;
  std::string missing_;
  std::string wanted_;
};

// Every run that a row describes, with what was measured; names, groups and the split are added by
// read_published().
using RowReader = std::vector<Published> (*)(Reader&);

std::vector<Published> vtrain_row(Reader& reader);
std::vector<Published> bloom_row(Reader& reader);
std::vector<Published> korthikanti_time_row(Reader& reader);
std::vector<Published> korthikanti_memory_row(Reader& reader);
std::vector<Published> megatron_row(Reader& reader);
std::vector<Published> zero3_row(Reader& reader);
std::vector<Published> fsdp_row(Reader& reader);
std::vector<Published> nemo_row(Reader& reader);
std::vector<Published> nemo_context_row(Reader& reader);
std::vector<Published> amp_row(Reader& reader);
std::vector<Published> run_row(Reader& reader);

// Eight devices of a preset with `nics` of `rate`; 0: those of the preset.
topo::ServerType server_of(const char* preset, int nics = 0, BytesPerSecond rate = {});
// A GPT of the usual form, its output layer tied to the token table.
workload::ModelShape gpt(int layers, int hidden, int heads, int seq, int vocab);
void interleave(workload::Strategy& strategy, int parts);

}  // namespace regatta::replay
