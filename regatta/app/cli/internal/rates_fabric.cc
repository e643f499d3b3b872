#include "regatta/app/cli/internal/rates_fabric.h"

#include <utility>
#include <variant>

#include <fmt/core.h>
#include <unistd.h>

#include "regatta/app/cli/internal/cluster_file.h"
#include "regatta/app/cli/internal/find_lab.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/socket.h"
#include "regatta/model/topo/addresses.h"

namespace regatta::cli {
namespace {

using link_rates::kSwitchCountersLineMost;

Status add_line(std::string_view text, const std::string& file, int number,
                link_rates::SwitchCounterTotals& totals) {
  const std::string place = fmt::format("{}:{}: ", file, number);
  if (number == 1 && !link_rates::is_switch_counters_heading(trim(text)))
    return Error{Code::kInvalidInput, place + "the first line must be the heading " +
                                          std::string(link_rates::kSwitchCountersHeading)};
  REGATTA_TRY(line, link_rates::parse_switch_line(text, file, number));
  const auto* const reading = std::get_if<link_rates::SwitchPortCounters>(&line);
  if (reading == nullptr) return {};
  if (const Status added = totals.add(*reading); !added)
    return Error{added.error().code, place + added.error().message};
  return {};
}

}  // namespace

Result<RatesFabric> find_rates_fabric(const std::string& cluster_file, const std::string& lab) {
  if (lab.empty() == cluster_file.empty())
    return Error{Code::kInvalidInput,
                 lab.empty()
                     ? "rates: give a cluster file, or name a lab with --lab"
                     : "--lab " + lab + ": the lab has a cluster file of its own; leave out " +
                           cluster_file};
  RatesFabric found;
  if (lab.empty()) {
    REGATTA_TRY(cluster, load_cluster(cluster_file));
    found.name = cluster.name;
    found.graph = build_graph(cluster);
  } else {
    REGATTA_TRY(info, find_lab(lab));
    REGATTA_TRY(graph, lab::graph_of(info));
    found.name = lab;
    found.lab = std::move(info);
    found.graph = std::move(graph);
  }
  for (const topo::Node& node : found.graph.nodes)
    found.seeds.push_back(topo::hash_seed(found.name, node.name));
  return found;
}

Status read_switch_counters(const std::string& path, link_rates::SwitchCounterTotals& totals) {
  const bool is_input = path == "-";
  const std::string name = is_input ? "standard input" : path;
  Result<os::LineReader> lines =
      is_input ? os::LineReader(os::UniqueFd(STDIN_FILENO), name, kSwitchCountersLineMost)
               : os::LineReader::open(path, kSwitchCountersLineMost);
  if (!lines)
    return Error{Code::kInvalidInput, lines.error().message + "; name a file of counters"};
  const std::atomic<bool>& stop = watch_stop_signals();
  for (int number = 1;; ++number) {
    REGATTA_TRY(line, lines->next(stop));
    if (!line) break;
    REGATTA_TRY_DO(add_line(*line, name, number, totals));
  }
  if (totals.ports() == 0 && !stop)
    return Error{Code::kInvalidInput,
                 name + ": no counters are in it; write the heading and a line for each reading"};
  return {};
}

}  // namespace regatta::cli
