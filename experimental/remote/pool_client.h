// experimental/remote/pool_client.h: queries GPU servers, and starts programs on slices of them.
#pragma once

#include <string>
#include <vector>

#include "experimental/remote/internal/pool.h"
#include "experimental/remote/internal/reservations.h"
#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::remote {

// "a:7000,b:7000"
Result<std::vector<std::string>> parse_servers(const std::string& text);

// How to reach the servers of a pool.
struct PoolAccess {
  std::string token;
  bool is_plain = false;  // without encryption
};

// The answer of each server, or the error.
struct ServerView {
  std::string server;
  Result<std::vector<PoolDevice>> devices;
};
std::vector<ServerView> view_servers(const std::vector<std::string>& servers,
                                     const PoolAccess& access);

// A slice that is reserved while the descriptor is open in any process.
struct SliceLease {
  std::string server;
  int gpu = 0;
  std::string ticket;
  os::UniqueFd connection;
};
// Reserves on the server where it fits best; when another program was faster, on the next one.
// kUnsupported: with `needs_rdma`, no server has RDMA.
Result<SliceLease> lease_slice(const std::vector<std::string>& servers, const PoolAccess& access,
                               SliceRequest request, bool needs_rdma);

// How a program talks to its host process.
struct RemoteProgramOptions {
  std::string library;  // takes the driver's place
  std::string transport = "auto";
  std::string rdma_address;  // of this end; "": the local address of its connections
  bool is_verbose = false;   // it reports the transport once
  bool is_plain = false;     // without encryption, which RDMA needs
};
// kInvalidInput: RDMA was asked for, and encryption, too.
Status check_encryption(const RemoteProgramOptions& options);
// Executes the program in this process. Returns only an Error; kUnsupported: the program needs
// RDMA, and this end has none.
Error run_with_lease(SliceLease lease, const RemoteProgramOptions& options,
                     const std::vector<std::string>& program);

}  // namespace regatta::remote
