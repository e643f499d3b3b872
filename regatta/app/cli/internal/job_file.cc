#include "regatta/app/cli/internal/job_file.h"

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <unistd.h>

#include "regatta/base/core/json.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/workload/hf_config.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/onnx_model.h"

namespace regatta::cli {
namespace {

std::string absolute_path(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path absolute = std::filesystem::absolute(path, failed);
  return failed ? path : absolute.lexically_normal().string();
}

// Its tensors may take 2 GiB, which are skipped rather than read.
Result<workload::ModelShape> load_onnx(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return Error{Code::kInvalidInput, os::errno_error(path).message + "; check the path"};
  google::protobuf::io::FileInputStream bytes(descriptor);
  bytes.SetCloseOnDelete(true);
  std::error_code failed;
  const auto size = static_cast<long long>(std::filesystem::file_size(path, failed));
  if (failed) return Error{Code::kInvalidInput, path + ": is no file; check the path"};
  REGATTA_TRY(graph, workload::read_onnx_graph(bytes, size, path));
  return workload::model_of_graph(graph, path);
}

// The model that `from:` names in a job.
Result<workload::ModelShape> load_model(const std::string& path) {
  if (path.ends_with(".onnx")) return load_onnx(path);
  REGATTA_TRY(text, read_named_file(path, JsonLimits{}.size_max));
  return workload::parse_hf_config(text, path);
}

}  // namespace

Result<workload::Job> load_job(const std::string& path) {
  REGATTA_TRY(text, read_named_file(path, kYamlMaxBytes));
  if (has_key(text, "servers") && !has_key(text, "model"))
    return Error{Code::kInvalidInput, path + ": this is a cluster file; give a job file here"};
  REGATTA_TRY(job, workload::parse_job(text, path, load_model));
  if (!job.data_text.empty())
    job.data_text = absolute_path(workload::resolve_path(path, job.data_text));
  if (!job.checkpoint.folder.empty())
    job.checkpoint.folder = absolute_path(workload::resolve_path(path, job.checkpoint.folder));
  return job;
}

Status check_writable(const std::string& folder, const std::string& flag) {
  const std::string path = folder.empty() ? "." : folder;
  if (::access(path.c_str(), W_OK | X_OK) == 0) return {};
  return Error{Code::kInvalidInput,
               os::errno_error(path).message + "; choose another place with " + flag};
}

int report_error(const Error& error) {
  std::fprintf(stderr, "regatta: %s\n", error.message.c_str());
  return exit_status(error);
}

}  // namespace regatta::cli
