// controller_service/page_server.h: the page for browsers: files that the build of web/ has made.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "regatta/base/core/units.h"
#include "regatta/base/http/http_server.h"
#include "regatta/base/http/static_files.h"

namespace regatta::controller_service {

// Belongs to the loop's thread. The files are read at the first request and again when index.html
// has changed, at which a request looks at most once a second.
class PageServer {
 public:
  // `folder`: empty, or without index.html: requests get a sentence that says how to build it.
  explicit PageServer(std::string folder) : folder_(std::move(folder)) {}

  void handle(http::Exchange& exchange);

 private:
  void load_if_new();

  std::string folder_;
  std::optional<http::StaticFiles> files_;
  std::filesystem::file_time_type loaded_time_;  // of index.html
  Seconds next_look_;
};

}  // namespace regatta::controller_service
