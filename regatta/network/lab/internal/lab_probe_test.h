// lab/internal/lab_probe_test.h: the program that lab_test runs on the servers of a lab: the test
// binary itself, started with --probe, so that traffic comes from real processes inside.
#pragma once

#include <string>
#include <vector>

#include "regatta/model/topo/cluster.h"

namespace regatta::lab {

// Cluster file of the tests: `servers` of one CPU device at 10 % of a core, `per_leaf`
// servers a leaf, `spines` spines (0: one leaf tier), 100 Mbps everywhere. The name begins with
// "test-PID-".
std::string test_cluster_text(const std::string& name, int servers, int per_leaf, int spines);
topo::Cluster test_cluster(const std::string& name, int servers, int per_leaf, int spines);

// Modes:
//   serve PORT              counts TCP bytes until the end of each connection and answers with the
//                           count; echoes UDP datagrams
//   reach ADDRESS PORT      succeeds when TCP and UDP get an answer within 2 s
//   send ADDRESS PORT BYTES CONNECTIONS   prints the seconds until all counts came back
//   echo ADDRESS PORT COUNT prints how many of COUNT datagrams, each from a port of its own, came
//                           back within 0.3 s
//   ask FILE                for each line "INTERFACE FROM PORT TO PORT PROTOCOL" prints where a
//                           packet leaves that enters there: the interface, or none
//   scenario                up, reach, fault, down with the rights of the caller
//   hold NAME               brings a lab up that dies with it, and waits
int request_traces(const std::string& path);  // lab_ask_test.cc
int run_probe(const std::vector<std::string>& arguments);

// The path of this test binary.
std::string probe_program();

}  // namespace regatta::lab
