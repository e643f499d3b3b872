// The coverage proof for people.
#include <algorithm>

#include <fmt/core.h>

#include "regatta/model/topo/graph_names.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {
namespace {

constexpr std::size_t kMostNamed = 4;

std::string names(const topo::Graph& graph, std::span<const std::uint32_t> links) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostNamed, links.size()); ++i)
    text += (i == 0 ? "" : ", ") + link_text(graph, links[i]);
  if (links.size() > kMostNamed) text += fmt::format(" and {} more", links.size() - kMostNamed);
  return text;
}

}  // namespace

std::string link_text(const topo::Graph& graph, std::uint32_t directed_link) {
  return topo::to_string(graph, fabric::directed_link(directed_link));
}

std::string coverage_text(const topo::Graph& graph, const Coverage& coverage) {
  const std::size_t links = 2 * graph.links.size();
  std::size_t least = coverage.paths.size();
  std::size_t most = 0;
  for (std::uint32_t link = 0; link < links; ++link) {
    const std::size_t count = coverage.paths_of(link).size();
    if (count == 0) continue;
    least = std::min(least, count);
    most = std::max(most, count);
  }
  std::string text = fmt::format("{} of {} directed links", links - coverage.missing.size(), links);
  if (most > 0) text += fmt::format(", by {} to {} paths each", least, most);
  text += "\n";
  if (!coverage.missing.empty())
    text += "not covered, no route leads over them: " + names(graph, coverage.missing) + "\n";
  if (!coverage.thin.empty())
    text += "by fewer than three paths: " + names(graph, coverage.thin) + "\n";
  return text;
}

std::string overlaps_text(const topo::Graph& graph, const Coverage& coverage) {
  std::string text;
  for (const auto& [link, other] : coverage.hidden)
    text += fmt::format("always together: {}, and {}\n", link_text(graph, link),
                        link_text(graph, other));
  for (const std::uint32_t link : coverage.hidden_by_two)
    text +=
        fmt::format("hidden when two certain others break at once: {}\n", link_text(graph, link));
  return text;
}

}  // namespace regatta::probe
