#include "regatta/platform/trainer/training_request.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/text.h"
#include "regatta/model/workload/runtime_support.h"

namespace regatta::trainer {

Result<workload::Job> parse_training(std::string_view json) {
  nlohmann::json tree = nlohmann::json::parse(json, nullptr, false);
  if (!tree.is_object())
    return Error{Code::kInvalidInput, "train: no map; write the keys of a job file below it"};
  if (!tree.contains("name")) tree["name"] = "training";
  REGATTA_TRY(job, workload::parse_job(tree.dump(), "train"));
  for (const auto& [key, path] : {std::pair("data.text", job.data_text),
                                  std::pair("checkpoint.folder", job.checkpoint.folder)})
    if (!path.empty() && path.front() != '/')
      return Error{Code::kInvalidInput,
                   fmt::format("train: {}: '{}' is no absolute path; begin it with /", key,
                               printable(path, 80))};
  if (!job.placement.empty())
    return Error{Code::kInvalidInput,
                 "train: placement: the platform chooses the devices; leave it out"};
  if (const Status runnable = workload::check_runnable(job); !runnable)
    return Error{runnable.error().code, "train: " + runnable.error().message};
  return job;
}

}  // namespace regatta::trainer
