// `regatta rates counters`: links that counters of switches show to be broken or slow.
#include <memory>
#include <string>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/print_now.h"
#include "regatta/app/cli/internal/rates_command.h"
#include "regatta/app/cli/internal/rates_fabric.h"
#include "regatta/app/report/network_report.h"

namespace regatta::cli {
namespace {

struct CountersOptions {
  std::string file;
  std::string cluster;
  std::string lab;
  bool json = false;
};

// Whether a link is at fault.
Result<bool> run(const CountersOptions& options) {
  REGATTA_TRY(fabric, find_rates_fabric(options.cluster, options.lab));
  link_rates::SwitchCounterTotals totals(fabric.graph);
  REGATTA_TRY_DO(read_switch_counters(options.file, totals));
  const report::RateEventFormat format(fabric.graph, options.json);
  const auto faults = find_counter_faults(fabric.graph, totals);
  for (const link_rates::CounterFault& fault : faults)
    print_now(format.counter_fault(fault));
  print_now(format.counter_summary(faults, totals));
  return !faults.empty();
}

}  // namespace

void add_rates_counters(CLI::App& rates, int& exit_status) {
  const auto options = std::make_shared<CountersOptions>();
  CLI::App* command = add_command(
      rates, "counters", "Name links with errors, drops or a low rate, from counters of switches",
      "regatta rates counters counters.csv cluster.yaml\nA collector writes such a file: "
      "examples/sflow_counters.py. The exit status is 1 if a link is\nnamed.",
      [=, &exit_status] {
        const auto is_faulty = run(*options);
        exit_status = is_faulty ? (*is_faulty ? 1 : 0) : report_error(is_faulty.error());
      });
  command
      ->add_option(
          "FILE", options->file,
          "Counters of switch ports (docs/formats/switch_counters.md); - is standard input")
      ->required()
      ->check(not_empty());
  command->add_option("CLUSTER", options->cluster, "Cluster file of the switches")
      ->check(not_empty());
  command
      ->add_option("--lab", options->lab, "Name of a lab that is up, instead of the cluster file")
      ->type_name("LAB")
      ->check(not_empty());
  command->add_flag("--json", options->json, "Print a JSON object per event");
}

}  // namespace regatta::cli
