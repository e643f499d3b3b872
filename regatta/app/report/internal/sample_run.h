// report/internal/sample_run.h: a made-up run for the tests: 8 ranks on 4 servers, predicted and
// "measured" by a toy pipeline, with comparison, sweep, losers and losses. Every figure is a
// function of the arguments.
#pragma once

#include "regatta/app/report/run_result.h"

namespace regatta::report {

// 4 servers x 2 devices, 2 leaves, 2 spines.
topo::Cluster sample_cluster();

// With --compare pure-dp and --sweep 8.
RunResult sample_run_result();

}  // namespace regatta::report
