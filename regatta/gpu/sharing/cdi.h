// sharing/cdi.h: the specification of a device that container runtimes give to containers: the
// library, the daemon's socket and the hooks. Source: Container Device Interface, 0.6.0.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta::sharing {

inline constexpr const char* kCdiKind = "regatta.gpu/slice";

struct CdiOptions {
  std::string name;                 // of the device: `--device regatta.gpu/slice=NAME`
  std::string socket;               // of the daemon, on the host
  std::string library;              // libregatta_gpu.so, on the host and in the container
  std::string preload;              // a file that names the library; "": LD_PRELOAD instead
  std::string program;              // regatta
  std::vector<std::string> limits;  // arguments of the hook: {"--memory", "4GiB"}
};

nlohmann::ordered_json cdi_spec(const CdiOptions& options);

// JSON values as YAML, for people to read. Maps must not be empty.
std::string yaml_text(const nlohmann::ordered_json& value);

}  // namespace regatta::sharing
