#include "regatta/app/cli/internal/probe_command.h"

#include <memory>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/probe_run.h"
#include "regatta/app/cli/internal/probe_target.h"
#include "regatta/app/cli/internal/time_flag.h"

namespace regatta::cli {

void add_probe_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<ProbeOptions>();
  CLI::App* probe = add_command(
      app, "probe", "Probe every link in both directions and name the broken parts",
      "regatta lab up examples/cluster.yaml\n"
      "  regatta probe --lab lab-4x2 --duration 10s\n"
      "Inject faults meanwhile with regatta lab fault. On real servers, start on each one\n  "
      "regatta-prober cluster.yaml --server NAME --collector head-1:27899\nand on head-1:\n  "
      "regatta probe cluster.yaml --listen 27899\nProbes find lost packets, not lower rates "
      "(regatta lab fault slow): regatta rates\nprobe finds those. Counters of switches tell "
      "apart what looks the same to probes:\n  "
      "regatta probe cluster.yaml --listen 27899 --counters counters.csv",
      [=, &exit_status] {
        const Status status = run_probe(*options);
        exit_status = status ? 0 : report_error(status.error());
      });
  probe->add_option("CLUSTER", options->cluster, "Cluster file of a lab that is up, or of servers")
      ->check(not_empty());
  probe->add_option("--lab", options->lab, "Name of a lab that is up, instead of the cluster file")
      ->type_name("LAB")
      ->check(not_empty());
  probe
      ->add_option("--listen", options->listen,
                   "Real servers: the address where their probers report, PORT or ADDRESS:PORT")
      ->type_name("PLACE")
      ->check(not_empty());
  probe
      ->add_option("--transport", options->transport,
                   "With --listen: the transport of probes, udp or rdma")
      ->type_name("NAME")
      ->check(one_of({"udp", "rdma"}))
      ->capture_default_str();
  probe
      ->add_option("--wait", options->wait,
                   "With --listen: how long to wait for all servers to report, like 20s")
      ->type_name("TIME")
      ->check(not_empty());
  probe->add_option("--period", options->period, kProbePeriodHelp)
      ->type_name("TIME")
      ->capture_default_str();
  probe
      ->add_option("--duration", options->duration,
                   "Duration, like 10s; until Ctrl-C when left out")
      ->type_name("TIME")
      ->check(not_empty());
  probe->add_flag("--heal", options->heals,
                  "Report broken parts to regatta heal, which withdraws them");
  probe
      ->add_option("--heal-socket", options->heal_socket,
                   "The same, with the --socket of regatta heal")
      ->type_name("PATH")
      ->check(not_empty());
  probe
      ->add_option("--counters", options->counters,
                   "Counters and neighbors of switches as a collector writes them "
                   "(docs/formats/switch_counters.md): a file that grows, a pipe, or - for "
                   "standard input")
      ->type_name("FILE")
      ->check(not_empty());
  probe->add_flag("--coverage", options->lists_overlaps,
                  "Also list the links that probes alone cannot distinguish");
  probe->add_flag("--json", options->json, "Print a JSON object per event");
}

}  // namespace regatta::cli
