// comm/tuner.h: chooses the settings of all calls of one group: one search per operation and
// size class (powers of two of the whole vector). Pure, as setting_search.h: ranks with the same
// times choose the same settings.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/collective/candidates.h"
#include "regatta/model/collective/setting.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/tuning/setting_search.h"

namespace regatta::comm {

// The reason of a choice.
enum class ChoiceReason { kForced, kOnlyOne, kModel, kMeasured, kLoaded };
std::string to_string(ChoiceReason reason);
std::optional<ChoiceReason> reason_named(const std::string& name);

// The setting that is chosen for one operation and size class, and the others that were tried.
struct TuningChoice {
  CallKind kind = CallKind::kBarrier;
  std::size_t bytes_from = 0;  // of the whole vector; up to twice as many
  int ranks = 0;
  int servers = 0;
  ChoiceReason reason = ChoiceReason::kModel;
  bool is_settled = true;
  std::size_t chosen = 0;  // of `tried`
  std::vector<MeasuredSetting> tried;
  long long calls = 0;
};

struct TunerSetup {
  int ranks = 1;
  int servers = 1;
  TuningSpace space;
  Algorithm forced = Algorithm::kAutomatic;
  Measure measure = Measure::kAll;
};

class Tuner {
 public:
  explicit Tuner(TunerSetup setup) : setup_(std::move(setup)) {}

  // A call that is timed: give() its time.
  struct Ticket {
    std::size_t search = 0;
    int number = -1;

    bool is_timed() const { return number >= 0; }
  };
  struct Next {
    Setting setting;
    Ticket ticket;
  };
  Next next(const TunedCall& call);
  void give(const Ticket& ticket, Seconds took);
  // The call was carried out in a manner that is not searched for.
  void skip(const Ticket& ticket);
  // The next call of this kind waits for the times of earlier ones.
  bool waits(const TunedCall& call) const;
  // No trial for the kind of the last call is under way or due soon.
  bool is_settled() const { return entries_.empty() || entries_[last_].search.is_settled(); }

  std::vector<TuningChoice> choices() const;
  // Takes over the choices of an earlier run on the same number of ranks and servers; others are
  // ignored. Before the first call.
  void load(const std::vector<TuningChoice>& choices);

 private:
  struct Entry {
    TuningChoice about;
    SettingSearch search;
  };
  Entry& entry_for(const TunedCall& call);
  SettingSearch make_search(const TunedCall& call, TuningChoice& about) const;
  bool can_be(const Setting& setting, const TunedCall& call) const;

  const TunerSetup setup_;
  std::map<std::pair<CallKind, int>, std::size_t> index_;
  std::vector<Entry> entries_;
  std::size_t last_ = 0;
  std::vector<TuningChoice> loaded_;
};

// Gives the reason kForced to choices whose chunks or connections are those of `forced` and that
// had nothing else to try. The tuner does not know that they were given and reports them as the
// only setting.
void mark_forced(std::vector<TuningChoice>& choices, const Setting& forced);

// The tuning file: choices and their measurements as JSON for the next run
// (docs/formats/tuning.md).

// The values that a file may have beside 0, the default of the algorithm; trials stay inside them.
inline constexpr std::size_t kChunkBytesLeast = std::size_t{4} << 10;
inline constexpr std::size_t kChunkBytesMost = std::size_t{64} << 20;
inline constexpr int kConnectionsMost = 64;

// "private" or "shared": the buffers that the choice is for, those of a program or those of
// Communicator::allocate(); "" for both.
std::string buffers_of(const TuningChoice& choice);

nlohmann::json tuning_json(const std::vector<TuningChoice>& choices);
// The same as the text of a file.
std::string format_tuning(const std::vector<TuningChoice>& choices);
// "" has no choices. kInvalidInput names the path of the key that is missing or wrong.
Result<std::vector<TuningChoice>> parse_tuning(const std::string& text);

}  // namespace regatta::comm
