#include "regatta/runtime/bench/caveats.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "regatta/runtime/comm/shared_segment.h"

namespace regatta::bench {
namespace {

const comm::Setting& setting_of(const comm::TuningChoice& choice) {
  return choice.tried[choice.chosen].setting;
}

// "ring", "staged and in-place", "ring, halving and direct"
std::string list_words(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

// The algorithms that ran, but for `forced`; each once.
std::vector<std::string> others_than(comm::Algorithm forced,
                                     const std::vector<comm::TuningChoice>& choices) {
  std::vector<std::string> names;
  for (const comm::TuningChoice& choice : choices) {
    const std::string name = to_string(setting_of(choice).algorithm);
    const bool is_new = std::find(names.begin(), names.end(), name) == names.end();
    if (setting_of(choice).algorithm != forced && is_new) names.push_back(name);
  }
  return names;
}

}  // namespace

std::vector<comm::TuningChoice> choices_for_task(const BenchTask& task,
                                                 const std::vector<comm::TuningChoice>& all) {
  std::vector<comm::TuningChoice> choices;
  for (const comm::TuningChoice& choice : all) {
    // Slots take whatever fits in them.
    const std::size_t from = choice.bytes_from;
    const bool was_asked = std::any_of(task.sizes.begin(), task.sizes.end(), [&](std::size_t size) {
      return from == 0 ? size <= comm::kSlotBytes : size >= from && size < 2 * from;
    });
    if (to_string(choice.kind) == to_string(task.op) && was_asked) choices.push_back(choice);
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const auto& a, const auto& b) { return a.bytes_from < b.bytes_from; });
  return choices;
}

std::vector<std::string> describe_unused_settings(const BenchTask& task,
                                                  const std::vector<comm::TuningChoice>& choices) {
  std::vector<std::string> notes;
  const comm::Setting& forced = task.settings.forced;
  const std::vector<std::string> others = others_than(forced.algorithm, choices);
  if (forced.algorithm != comm::Algorithm::kAutomatic && !others.empty()) {
    const bool is_used = std::any_of(choices.begin(), choices.end(), [&](const auto& choice) {
      return setting_of(choice).algorithm == forced.algorithm;
    });
    notes.push_back("--algorithm " + to_string(forced.algorithm) +
                    (is_used ? " was not used everywhere: " : " was not used: ") +
                    list_words(others) + (is_used ? " ran too" : " ran"));
  }
  const bool has_unused = std::any_of(choices.begin(), choices.end(), [&](const auto& choice) {
    return setting_of(choice).connections != forced.connections;
  });
  if (forced.connections > 0 && has_unused)
    notes.push_back("--connections " + std::to_string(forced.connections) +
                    " was not used: inside a server nothing goes over a network");
  return notes;
}

std::vector<std::string> describe_rounding(const BenchTask& task) {
  const std::size_t least = least_bytes(task.op, task.ranks);
  const auto is_rounded = [&](std::size_t bytes) { return bytes % least != 0; };
  const auto first = std::find_if(task.sizes.begin(), task.sizes.end(), is_rounded);
  if (first == task.sizes.end()) return {};
  const auto others = std::count_if(first + 1, task.sizes.end(), is_rounded);
  std::string note = "sizes are rounded down to multiples of " + std::to_string(least) +
                     " bytes: " + std::to_string(*first) + " to " +
                     std::to_string(*first - *first % least);
  if (others > 0) note += ", and " + std::to_string(others) + " more";
  return {std::move(note)};
}

std::vector<std::string> describe_oversubscription(const BenchTask& task,
                                                   const std::vector<std::string>& peers,
                                                   int cores) {
  const bool has_mpich = std::find(peers.begin(), peers.end(), "mpich") != peers.end();
  if (!has_mpich || task.ranks <= cores) return {};
  return {"mpich never gives a core away while it waits: " + std::to_string(task.ranks) +
          " ranks on " + std::to_string(cores) + (cores == 1 ? " core" : " cores") +
          " are no fair comparison"};
}

}  // namespace regatta::bench
