// experimental/remote/internal/serve.h: `regatta gpu serve`: lends slices of this server's GPUs to
// programs of other machines. A reservation is a tenant of the local daemon and lives as long as
// its connection; each program in it gets a host process of its own (host_main.cc).
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"

namespace regatta::remote {

// The user of host processes whose server is root.
inline constexpr const char* kHostUser = "nobody";

struct GpuServerOptions {
  std::string listen;         // HOST:PORT
  std::string token;          // who knows it may reserve
  std::string daemon_socket;  // of regatta gpu daemon
  std::string driver;         // the CUDA driver's library
  std::string regatta;        // this program: `regatta gpu run` makes the tenants
  std::string host_program;   // regatta-gpu-host
  std::string rdma_address;   // of the RDMA device; "": the local address of the connection
  std::string host_user = kHostUser;
  bool is_plain = false;  // without encryption; RDMA needs it
};

// Serves until `stop`.
Status serve_gpus(const GpuServerOptions& options, const std::atomic<bool>& stop);

// Takes the same time wherever the texts differ.
bool is_same_secret(std::string_view given, std::string_view right);

// Reads the token of the file: at least 16 letters besides blanks; the file is this user's or
// root's, and readable by its owner only.
Result<std::string> read_token(const std::string& path);

}  // namespace regatta::remote
