#include "regatta/app/cli/internal/lab_polarisation.h"

#include <algorithm>

#include "regatta/network/diag/polarisation.h"

namespace regatta::cli {
namespace {

std::vector<std::uint64_t> bytes_of(const std::vector<lab::LinkState>& states) {
  std::vector<std::uint64_t> bytes;  // by fabric::number_of()
  for (const lab::LinkState& one : states) {
    bytes.push_back(static_cast<std::uint64_t>(one.sent_by_a.value));
    bytes.push_back(static_cast<std::uint64_t>(one.sent_by_b.value));
  }
  return bytes;
}

}  // namespace

Result<std::vector<std::uint64_t>> bytes_of_cables(const lab::LabInfo& lab) {
  REGATTA_TRY(states, lab::link_states(lab));
  return bytes_of(states);
}

Result<std::vector<std::string>> find_polarisation(const lab::LabInfo& lab,
                                                   const std::vector<std::uint64_t>& before) {
  REGATTA_TRY(states, lab::link_states(lab));
  REGATTA_TRY(graph, lab::graph_of(lab));
  std::vector<std::string> found;
  if (!std::ranges::all_of(states, &lab::LinkState::up)) return found;
  std::vector<std::uint64_t> bytes = bytes_of(states);
  for (std::size_t link = 0; link < bytes.size(); ++link)
    bytes[link] -= std::min(bytes[link], before[link]);
  for (const diag::Polarisation& one : diag::find_polarisation(graph, bytes))
    found.push_back(diag::to_string(graph, one));
  return found;
}

}  // namespace regatta::cli
