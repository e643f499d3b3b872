// cli/internal/find_lab.h: the lab that a flag names.
#pragma once

#include <string>

#include "regatta/base/core/result.h"
#include "regatta/network/lab/lab.h"

namespace regatta::cli {

// A lab, server or link that does not exist was named by the user: that is wrong input.
inline Error as_input(Error error) {
  if (error.code == Code::kNotFound) error.code = Code::kInvalidInput;
  return error;
}

inline Result<lab::LabInfo> find_lab(const std::string& name) {
  auto lab = lab::find(name);
  return lab ? std::move(lab) : as_input(lab.error());
}

}  // namespace regatta::cli
